"""One seat, from when it sits down to its END."""

from __future__ import annotations

import anyio

from harness.clock import Clock
from harness.enclosure import Enclosed, run_enclosed
from harness.errors import Blamed, GateRefused, SeatError
from harness.meter import Meter
from harness.ports import Seat
from harness.seats.desk import Desk
from harness.values import Declared, End, FailedBoot, Refused, Void

__all__ = ["sit_to_the_end"]

_WALL_CHECK_S = 0.1


async def sit_to_the_end(seat: Seat, desk: Desk, meter: Meter, *, clock: Clock, grace_s: float = 5.0) -> End:
    """
    Run the seat until it declares itself done, a limit stops it, or something of ours fails; say which it was.

    A cancellation from outside is passed on.
    """

    async def sit(enclosed: Enclosed) -> Declared:
        meter.attach(enclosed.scope.cancel)
        return await seat.sit(desk)

    meter.start()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_watch_the_wall, meter)
            enclosed = await run_enclosed(sit, clock=clock, grace_s=grace_s)
            tasks.cancel_scope.cancel()
    finally:
        meter.finish()
    return _end(enclosed, meter, needs_model=getattr(seat, "needs_model", True))


async def _watch_the_wall(meter: Meter) -> None:
    """Seconds go by without a charge, so a limit on them is looked at from time to time."""
    while True:
        await anyio.sleep(_WALL_CHECK_S)
        meter.check()


def _end(enclosed: Enclosed, meter: Meter, *, needs_model: bool) -> End:
    """The END, in the order of the design: blame and limits first, then what the seat itself did."""
    if meter.blamed is not None:
        return meter.blamed
    if meter.halted is not None:
        return meter.halted
    if isinstance(enclosed.error, GateRefused):
        return Refused(gate=enclosed.error.gate, detail=enclosed.error.detail)
    if enclosed.error is not None:
        cause = enclosed.error.cause if isinstance(enclosed.error, Blamed) else SeatError.cause
        return Void(cause=cause, detail=f"{type(enclosed.error).__name__}: {enclosed.error}")
    if not isinstance(enclosed.result, Declared):
        what = type(enclosed.result).__name__
        return Void(cause=SeatError.cause, detail=f"the seat returned {what}: expected Declared")
    if needs_model and meter.calls == 0:
        return FailedBoot(detail="the seat declared itself done without one call of its model")
    return enclosed.result
