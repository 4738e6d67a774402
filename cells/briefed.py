"""Whether a seat was briefed: a cell whose arm wants its code echoed, and got none, tells nothing of the arm."""

from __future__ import annotations

from harness.briefing import briefing_code, echoed, wants_echo
from harness.canonical import digest_bytes
from harness.seats.desk import Desk
from harness.transcript import read_transcript
from harness.values import Declared, End, Halt, Void

__all__ = ["NO_BRIEFING", "briefed"]

NO_BRIEFING = "no briefing"
"""The cause of a VOID whose seat showed no sign of having been given its arm's text."""


def briefed(desk: Desk, end: End) -> End:
    """
    `end` as it is, or VOID where it is DECLARED or HALT, the desk's arm has a nonce, and no reply of the transcript
    has the cell's code.
    """
    if not wants_echo(desk.arm) or not isinstance(end, (Declared, Halt)):
        return end
    code = briefing_code(desk.seeds.namespace, desk.cell, digest_bytes(desk.arm.content))
    if echoed(read_transcript(desk.transcript.path), code):
        return end
    detail = f"no reply has the code {code} of arm {desk.arm.name!r}: nothing tells that its text was loaded"
    return Void(cause=NO_BRIEFING, detail=f"{detail} ({end.kind})")
