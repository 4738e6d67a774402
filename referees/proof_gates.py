"""The five gates, in order. An exhibit's reading is that of the first gate it does not pass; PASS is after all five."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from referees.proof_trial import GATES, PASSED, Finding, Toolchain, Trial
from referees.proof_words import screened

__all__ = ["Carrier", "Passage", "carried", "pass_gates", "pass_screen"]

SOURCE_BYTES = 1 << 20
"""The most that a proof's file may have; what is longer is not read at all."""

Carrier: TypeAlias = Callable[[bytes], bytes]
"""Brings the compiled file from the room that made it to those that check it: the one thing that passes between."""


def carried(parcel: bytes) -> bytes:
    """The compiled file as it is."""
    return parcel


@dataclass(frozen=True, slots=True)
class Passage:
    """What each gate found that was reached; `parcel` is the compiled file, empty where there is none."""

    findings: tuple[Finding, ...]
    parcel: bytes = b""

    @property
    def last(self) -> Finding:
        """What the last gate found that was reached."""
        return self.findings[-1]

    @property
    def reading(self) -> str:
        """PASS, if all gates were passed."""
        return self.last.reading or ("PASS" if len(self.findings) == len(GATES) else "UNSCORABLE")

    @property
    def detail(self) -> str:
        """Which gate stopped the exhibit, and why; or that none did."""
        number = len(self.findings)
        if self.last.reading is None:
            return f"all {len(GATES)} gates passed"
        return f"gate {number} of {len(GATES)}, {GATES[number - 1]}: {self.last.detail}"


def pass_screen(source: bytes, forbidden: Sequence[str], toolchain: Toolchain) -> Finding:
    """Gate 1: words and commands that the card forbids."""
    found = screened(source.decode("utf-8", "replace"), forbidden, toolchain.syntax)
    return PASSED if found is None else Finding("SCREENED", found)


async def pass_gates(trial: Trial, carry: Carrier) -> Passage:
    """Gates 2 to 5, as if gate 1 had been passed."""
    found, parcel = await trial.compile()
    findings = [PASSED, found]
    if found.reading is None:
        parcel = carry(parcel)
        for gate in (trial.kernel, trial.statement, trial.axioms):
            findings.append(await gate(parcel))
            if findings[-1].reading is not None:
                break
    return Passage(tuple(findings), parcel)
