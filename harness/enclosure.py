"""
Running a seat so that it ends when its scope is cancelled, whatever it does with the cancellation.

Level cancellation ends every well-behaved coroutine. One that catches everything in a loop would keep its task group
open for ever, so the enclosure steps the seat's coroutine by hand and, once a grace period after the cancellation is
over, leaves it where it stands. (A loop that never awaits can't be ended this way; a seat's subject runs in the
workspace, which is killed from outside.)
"""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio

from harness.clock import Clock

__all__ = ["Enclosed", "run_enclosed"]


@dataclass(kw_only=True)
class Enclosed:
    """How the coroutine ended: with a `result`, with an `error` of its own, or cut off (`cancelled`, `abandoned`)."""

    result: Any = None
    error: Exception | None = None
    cancelled: bool = False
    abandoned: bool = False
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class _Patience:
    """How long cancellations may be swallowed: `grace_s` seconds from the first one."""

    def __init__(self, clock: Clock, grace_s: float) -> None:
        self._clock = clock
        self._grace = grace_s
        self._first: float | None = None
        self.over = False

    def ends(self) -> bool:
        """A cancellation is delivered now: whether it is the one that need not be handed to the body any more."""
        now = self._clock.monotonic()
        self._first = now if self._first is None else self._first
        self.over = self.over or now - self._first > self._grace
        return self.over


@types.coroutine
def _stepped(body: Coroutine[Any, Any, Any], patience: _Patience) -> Generator[Any, Any, Any]:
    """Drive `body` as `await body` would, but raise a cancellation past it once patience is at its end."""
    step: Callable[[Any], Any] = body.send
    argument: Any = None
    while True:
        try:
            waiting_for = step(argument)
        except StopIteration as stop:
            return stop.value
        try:
            argument = yield waiting_for
            step = body.send
            # asyncio throws a cancellation in; trio sends it in, as a value that its own innermost frame raises.
            sent = getattr(argument, "error", None)
            if isinstance(sent, anyio.get_cancelled_exc_class()) and patience.ends():
                raise sent  # noqa: TRY301 - past the body is the point: it had its grace
        except BaseException as thrown:  # a cancellation, or whatever the event loop throws in: it is the body's first
            if patience.ends():
                raise
            step, argument = body.throw, thrown


async def run_enclosed(
    make: Callable[[Enclosed], Coroutine[Any, Any, Any]], *, clock: Clock, grace_s: float = 5.0
) -> Enclosed:
    """
    Run the coroutine that `make` gives in a task of its own, until it ends or `scope` of the value it is given is
    cancelled and `grace_s` seconds have gone by. Cancellation from outside counts the same, and is passed on.
    """
    enclosed = Enclosed()
    patience = _Patience(clock, grace_s)

    async def body() -> None:
        coroutine = make(enclosed)
        try:
            enclosed.result = await _stepped(coroutine, patience)
        except anyio.get_cancelled_exc_class():
            enclosed.cancelled = True
            enclosed.abandoned = patience.over
            if enclosed.abandoned:
                _leave(coroutine)
            raise
        except Exception as error:  # noqa: BLE001 - a plugin's own failure is a value here; the caller says whose it is
            enclosed.error = error

    try:
        with enclosed.scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(body)
    except BaseExceptionGroup:
        # An abandoned coroutine may stand inside scopes of its own, which its task then complains of as it ends.
        if not enclosed.abandoned:
            raise
    return enclosed


def _leave(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Give an abandoned coroutine its last word, and keep it from having another."""
    with suppress(BaseException):
        coroutine.close()
    if coroutine.cr_frame is not None:  # type: ignore[attr-defined]  # it ignored GeneratorExit too
        # Collecting it would run its code once more, outside every event loop, where a loop that catches everything
        # never gives up control: the interpreter could not end. A reference that nobody holds keeps it for good.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(coroutine))
