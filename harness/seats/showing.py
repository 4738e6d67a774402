"""What a seat shows its model of the task: the round's view, and the prompt that the arm makes of it."""

from __future__ import annotations

from harness.briefing import briefing_code
from harness.canonical import digest_bytes
from harness.errors import SeatError, unknown_name
from harness.seats.desk import Desk
from harness.views import Previous, RoundView

__all__ = ["prompt", "round_view"]


def round_view(desk: Desk, *, number: int = 1, rounds: int = 1, previous: Previous | None = None) -> RoundView:
    """
    The view of round `number` of `rounds`: the open half of the task and the condition's own extras, no others.

    Raises `SeatError` when the condition names extras that the task doesn't have.
    """
    extras: dict[str, str] = {}
    if desk.extras != "none":
        if desk.extras not in desk.task.extras:
            raise SeatError(f"cell {desk.cell}: {unknown_name('extras', desk.extras, ['none', *desk.task.extras])}")
        extras[desk.extras] = desk.task.extras[desk.extras]
    return RoundView(
        instruction=desk.task.instruction,
        details=desk.task.details,
        extras=extras,
        round=number,
        rounds=rounds,
        previous=previous,
        nonce=briefing_code(desk.seeds.namespace, desk.cell, digest_bytes(desk.arm.content)),
    )


def prompt(desk: Desk, view: RoundView) -> str:
    """
    What the cell's arm makes of the view. Raises `SeatError` when the arm fails or answers with anything but text
    that UTF-8 can hold: an arm's fault is nothing that the subject did.
    """
    where = f"arm {desk.arm.name!r}, round {view.round}"
    try:
        text: object = desk.arm.render(view)
    except Exception as error:
        raise SeatError(f"{where}: rendering raised {type(error).__name__}: {error}") from error
    if not isinstance(text, str):
        raise SeatError(f"{where}: rendering gave {type(text).__name__}: expected text")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SeatError(f"{where}: character {error.start} of the prompt is not encodable as UTF-8") from None
    return text
