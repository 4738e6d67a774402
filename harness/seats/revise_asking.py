"""What a revision asks: the arm's part, the state as it stands, and how an action is written. One conversation each."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from harness.errors import SeatError, unknown_name
from harness.ports import Arm
from harness.quoting import fenced
from harness.seats.desk import Desk
from harness.seats.revise_state import State
from harness.seats.showing import prompt, round_view
from harness.views import Revision, Trace

__all__ = ["CONTRACT", "EVIDENCE", "STATE", "EvidenceStream", "asked", "evidence_stream"]

EvidenceStream: TypeAlias = Literal["none", "current", "carried"]
"""What an arm's attribute `evidence` may be; an arm without the attribute is shown none."""

EVIDENCE: tuple[EvidenceStream, ...] = ("none", "current", "carried")

STATE = "The solution as it stands:"

CONTRACT = """\
Decide what becomes of it. Your reply holds exactly one of these lines:

ACTION: KEEP
ACTION: PATCH
ACTION: ESCALATE: the reason

KEEP leaves the solution as it is. PATCH replaces it: after that line give the whole new solution, imports included, \
in one Python code block, and no other code block. ESCALATE leaves it as it is and says why it can't be settled from \
what you were given. A reply that is anything else leaves the solution as it is."""


def evidence_stream(arm: Arm) -> EvidenceStream:
    """Which evidence the arm is to be shown. Raises `SeatError` for a word that is none of `EVIDENCE`."""
    said = getattr(arm, "evidence", "none")
    for known in EVIDENCE:
        if said == known:
            return known
    raise SeatError(f"arm {arm.name!r}: evidence: {unknown_name('stream', str(said), EVIDENCE)}")


def asked(desk: Desk, state: State, evidence: Trace | None, *, number: int, revisions: int) -> str:
    """The prompt of revision `number`. Raises `SeatError` when the arm fails."""
    revision = Revision(code=state.code, code_sha256=state.code_sha256, evidence=evidence)
    view = replace(round_view(desk, number=number, rounds=revisions), revision=revision)
    return "\n\n".join([prompt(desk, view), STATE, fenced(state.code, "python"), CONTRACT])
