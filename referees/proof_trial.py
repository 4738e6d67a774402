"""The contract between the five gates and a proof assistant: what is tried, and what a gate may find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from referees.proof_card import ProofCard
from referees.proof_room import Lab, Ran, said
from referees.proof_words import Syntax

__all__ = ["GATES", "PASSED", "Case", "Finding", "Toolchain", "Trial", "compiled", "met_limit"]

GATES = ("screen", "compile", "kernel", "statement", "axioms")
"""In order; the first that an exhibit does not pass gives the reading."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a gate found. `reading` is None where the exhibit passed it."""

    reading: str | None
    detail: str = ""
    by_clock: bool = False


PASSED = Finding(None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One exhibit against one card. `nonce` was made for this verdict, after the seat had ended."""

    card: ProofCard
    statement: bytes
    source: bytes
    nonce: str

    @property
    def check(self) -> str:
        """The name of the judge's own module, which nobody knew before."""
        return f"Proctor_{self.nonce}"

    @property
    def goals(self) -> Mapping[str, tuple[str, str]]:
        """By name in the judge's module: the theorem, and the definition that it must prove."""
        return {f"goal_{n}": pair for n, pair in enumerate(self.card.theorems.items())}


class Trial(Protocol):
    """
    Gates 2 to 5 of one case. `compile` brings out the compiled file, `parcel` to the other three, which see nothing
    else of the room it came from. Each raises `RefereeError` where the referee itself failed.
    """

    async def compile(self) -> tuple[Finding, bytes]:
        """Gate 2, and the compiled file; empty where there is none."""

    async def kernel(self, parcel: bytes) -> Finding:
        """Gate 3."""

    async def statement(self, parcel: bytes) -> Finding:
        """Gate 4."""

    async def axioms(self, parcel: bytes) -> Finding:
        """Gate 5, after gate 4."""


class Toolchain(Protocol):
    """A proof assistant. `suffix` is that of its sources; `install` says what gives its programs."""

    name: str
    suffix: str
    syntax: Syntax
    install: str

    async def open(self, lab: Lab, case: Case) -> Trial:
        """Compile what is the judge's own. Raises `RefereeError` where that can't be done."""

    def degenerates(self, card: ProofCard) -> Mapping[str, Mapping[str, str]]:
        """Files that prove nothing, by name of the candidate."""


def met_limit(ran: Ran) -> Finding | None:
    """The finding on a program that met a limit."""
    return None if ran.limit is None else Finding(ran.limit, ran.why, by_clock=ran.by_clock)


def compiled(ran: Ran, path: str, object_bytes: int) -> tuple[Finding, bytes]:
    """What came of compiling a seat's file to `path`."""
    parcel = ran.taken.get(path)
    if (over := met_limit(ran)) is not None:
        return over, b""
    if ran.status != 0:
        return Finding("COMPILE", said(ran)), b""
    if parcel is None:
        return Finding("COMPILE", f"the compiler left no regular file {path}"), b""
    if len(parcel) > object_bytes:
        return Finding("COMPILE", f"{path} has over {object_bytes} bytes"), b""
    return PASSED, parcel
