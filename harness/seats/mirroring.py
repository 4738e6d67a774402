"""How a seat that works in rounds keeps step with the cells that it mirrors, or that mirror it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Literal, TypeAlias

from harness.errors import SeatError
from harness.mirror import arm_state
from harness.mirror_audit import audit_packet
from harness.ports import Arm
from harness.seats.desk import Desk
from harness.seats.showing import prompt
from harness.views import MirrorState, RoundView

__all__ = ["AfterSource", "as_seen", "in_step", "packet"]

AfterSource: TypeAlias = Literal["end", "last"]
"""What a mirrored seat does once its source has no more rounds: end too, or go on with the source's last state."""


async def in_step(desk: Desk, view: RoundView, after_source: AfterSource) -> MirrorState | None:
    """
    The state that the round's packet is made from: published by a source before its generation, copied by an arm that
    mirrors it. None when the source has no more rounds, and the protocol says to end then.

    Raises `SeatError` for a mirroring arm that nobody has given a line, `MirrorLost` when its source ended VOID.
    """
    source: str | None = getattr(desk.arm, "mirrors", None)
    if source is None:
        state = _published(desk, view)
        if desk.mirror is not None:
            desk.mirror.line.publish(state)
            desk.transcript.add("mirror", role="published", **asdict(state))
        return state
    if desk.mirror is None:
        raise SeatError(f"arm {desk.arm.name!r} mirrors {source!r}, and cell {desk.cell} is not played beside it")
    state_then = await desk.mirror.state(view.round)
    if state_then is None and after_source == "last":
        state_then = desk.mirror.line.last
    if state_then is not None:
        desk.transcript.add("mirror", role="copied", **asdict(state_then))
    return state_then


def _published(desk: Desk, view: RoundView) -> MirrorState:
    """The state of the desk's own arm. Raises `SeatError` when its controller fails: the subject didn't do that."""
    try:
        return arm_state(desk.arm, view)
    except Exception as error:
        where = f"arm {desk.arm.name!r}, round {view.round}"
        raise SeatError(f"{where}: its controller raised {type(error).__name__}: {error}") from error


def packet(desk: Desk, view: RoundView, state: MirrorState) -> str:
    """The round's prompt, held against what it was made from. Raises `MirrorBroken`, `TokensShown` or `SeatError`."""
    seen = as_seen(desk.arm, view, state)
    text = prompt(desk, seen)
    audit_packet(desk.arm, seen, state, text)
    return text


def as_seen(arm: Arm, view: RoundView, state: MirrorState) -> RoundView:
    """The view as an arm of the line sees it: one that mirrors has the state, and nothing of its own rounds."""
    if getattr(arm, "mirrors", None) is None:
        return view
    return replace(view, previous=None, past=(), mirrored=state)
