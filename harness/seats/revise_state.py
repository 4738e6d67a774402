"""
The states of a revision loop: code under its digest, what the public tier said of it, and the last one it accepted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from harness.canonical import digest_bytes
from harness.facts import facts_json
from harness.views import PublicReading, Trace

__all__ = ["State", "States", "evidence_facts", "reading_facts"]


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """One code, and what the public tier said of exactly it; `reading` is None where there is no tier."""

    code: str
    code_sha256: str
    reading: PublicReading | None = None

    @classmethod
    def of(cls, code: str) -> State:
        """A state that nothing is known of yet."""
        return cls(code=code, code_sha256=digest_bytes(code.encode()))

    def read(self, reading: PublicReading | None) -> State:
        """The same code with what was said of it."""
        return replace(self, reading=reading)

    @property
    def verified(self) -> bool:
        """Whether the public tier accepted it."""
        return self.reading is not None and self.reading.accepted

    def trace(self, *, beside: State) -> Trace | None:
        """The evidence of this state, stale if it is shown beside another one; None where nothing was run."""
        if self.reading is None:
            return None
        return Trace(
            text=_told(self.reading),
            code_sha256=self.code_sha256,
            suite=self.reading.suite,
            execution=self.reading.execution,
            stale=self.code_sha256 != beside.code_sha256,
        )


@dataclass
class States:
    """
    The state that is, the one that evidence is carried from, and the last one that was verified.

    `carried` is the state before the last edit, whose evidence a harness would still show that runs nothing again;
    before any edit it is the state itself.
    """

    current: State
    carried: State
    verified: State | None = field(default=None)

    def __post_init__(self) -> None:
        self._retain()

    def edit(self, new: State) -> None:
        """An admitted patch: `new` is the state, and evidence is carried over from what it replaces."""
        self.carried, self.current = self.current, new
        self._retain()

    def reread(self, reading: PublicReading | None) -> None:
        """The current state was run again."""
        self.current = self.current.read(reading)
        self._retain()

    def ships(self, *, restore: bool) -> State:
        """What is left for the referee: the current state, or with `restore` the last verified one if it is not."""
        if restore and not self.current.verified and self.verified is not None:
            return self.verified
        return self.current

    def _retain(self) -> None:
        if self.current.verified:
            self.verified = self.current


def _told(reading: PublicReading) -> str:
    """A reading as the text of a trace: the class, the count, and each violated fact, never elided."""
    head = f"{reading.reading}: {reading.passed} of {reading.total} checks passed"
    return "\n".join([head, *(f"{fact.call} should give {fact.expected}" for fact in reading.facts)])


def reading_facts(reading: PublicReading | None) -> dict[str, Any] | None:
    """A reading as a transcript keeps it."""
    if reading is None:
        return None
    return {
        "reading": reading.reading,
        "accepted": reading.accepted,
        "passed": reading.passed,
        "total": reading.total,
        "facts": facts_json(reading.facts),
        "suite": reading.suite,
        "execution": reading.execution,
    }


def evidence_facts(evidence: Trace | None) -> dict[str, Any] | None:
    """What evidence rests on, and the digest of its text, as a transcript keeps it."""
    if evidence is None:
        return None
    return {
        "text_sha256": digest_bytes(evidence.text.encode()),
        "code_sha256": evidence.code_sha256,
        "suite": evidence.suite,
        "execution": evidence.execution,
        "stale": evidence.stale,
    }
