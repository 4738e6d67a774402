"""The bound on a round's prompt: in tokens, before it is sent, and for all arms of a line alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from harness.errors import GateRefused
from harness.messages import Request
from harness.models.checks import prompt_ceiling
from harness.models.prompt_size import prompt_tokens
from harness.seats.desk import Desk
from harness.seats.mirroring import as_seen
from harness.seats.showing import prompt
from harness.views import MirrorState, RoundView

__all__ = ["refuse_a_long_prompt"]


async def refuse_a_long_prompt(
    desk: Desk, view: RoundView, state: MirrorState, most: int | None, asked: Callable[[str], Request]
) -> None:
    """
    Raises `GateRefused` when the round's prompt, in the request that `asked` makes of it, is over `most` tokens in the
    cell's own arm, or in any that mirrors the same source: all of them are refused alike, so that length leaves out no
    arm alone. The model's tokeniser counts, where it has one; it isn't asked where the bytes alone say that all fits.
    """
    if most is None:
        return
    line = () if desk.mirror is None else desk.mirror.line.arms
    for arm in (desk.arm, *(arm for arm in line if getattr(arm, "mirrors", None) is not None)):
        request = asked(prompt(replace(desk, arm=arm), as_seen(arm, view, state)))
        if prompt_ceiling(request) <= most:
            continue
        size = await prompt_tokens(desk.model, request)
        if size > most:
            what = f"round {view.round}: the prompt of arm {arm.name!r} counts {size} tokens"
            raise GateRefused("prompt", f"{what}: expected {most} at most")
