"""
A task's two halves, as two types.

What a seat, an arm or a model gets is the `OpenHalf`; the `SealedHalf` reaches referees and controls only, and no
signature of a seat or an arm mentions it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.canonical import digest_json
from harness.tree import Tree

__all__ = ["Form", "OpenHalf", "SealedHalf", "Task"]

Form = Literal["greenfield", "brownfield", "embedded", "change"]


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenHalf:
    """What the seat gets. `environment` is laid into `/workspace`; `details` are facts a packet may use, as text."""

    benchmark: str
    name: str
    instruction: str
    form: Form = "greenfield"
    environment: Tree = field(default_factory=Tree)
    extras: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 over everything that the seat may be shown."""
        return digest_json(
            {
                "benchmark": self.benchmark,
                "name": self.name,
                "instruction": self.instruction,
                "form": self.form,
                "environment": self.environment.digest,
                "extras": dict(self.extras),
                "details": dict(self.details),
            }
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SealedHalf:
    """What the seat never gets: the suite, the reference, the mutants, and what a referee needs to know of them."""

    tests: Tree = field(default_factory=Tree)
    solution: Tree = field(default_factory=Tree)
    mutants: Tree = field(default_factory=Tree)
    card: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 over everything sealed."""
        return digest_json(
            {
                "tests": self.tests.digest,
                "solution": self.solution.digest,
                "mutants": self.mutants.digest,
                "card": dict(self.card),
            }
        )

    @property
    def image(self) -> str:
        """The image of the rooms that the task is judged in, by its card; empty where the experiment's is meant."""
        return str(self.card.get("image", ""))

    def __repr__(self) -> str:
        """The digest alone: sealed material must not get into a message or a log by way of a repr."""
        return f"SealedHalf(digest={self.digest[:12]})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """Both halves, held by the harness, which hands each to those who may see it."""

    open: OpenHalf
    sealed: SealedHalf

    @property
    def key(self) -> str:
        """`benchmark/name`, for messages."""
        return f"{self.open.benchmark}/{self.open.name}"
