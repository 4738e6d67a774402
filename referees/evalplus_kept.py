"""
A cell that stays open between jobs, and is thrown away for a fresh one at the first doubt of it.

A task of its own holds the room, so that whoever asks may do so, and be cancelled, from within any scope of his.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import anyio

from harness.errors import RefereeError
from harness.ports import RoomOpener
from referees.evalplus_cell import Cell, prepare, zygote_argv

__all__ = ["Kept", "kept"]

T = TypeVar("T")

_CLOSED = "the line was closed while it judged"


class _Request:
    """Work that somebody waits for. `scope` is what the work runs in: cancelled once nobody waits any more."""

    def __init__(self, work: Callable[[Cell], Awaitable[Any]]) -> None:
        self.work = work
        self.scope, self.done = anyio.CancelScope(), anyio.Event()
        self.value: Any = None
        self.error: Exception | None = RefereeError(_CLOSED)

    async def serve(self, cell: Cell) -> bool:
        """Do the work; whether the cell can be kept."""
        with self.scope:
            try:
                self.value, self.error = await self.work(cell), None
            except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to whoever asked
                self.error = error
        self.done.set()
        return self.error is None and cell.usable

    def fail(self, error: Exception) -> None:
        """There is no cell to do it in."""
        self.error = error
        self.done.set()


class Kept:
    """
    One cell at a time, opened when it is first asked for. `python` is the version that its room must have; `unclosed`
    is why a room could not be closed when all in it had been answered.
    """

    def __init__(self, rooms: RoomOpener, *, python: str) -> None:
        self._rooms, self._python = rooms, python
        self._current: _Request | None = None
        self.unclosed: Exception | None = None
        self._ask, self._asked = anyio.create_memory_object_stream[_Request](math.inf)

    async def do(self, work: Callable[[Cell], Awaitable[T]]) -> T:
        """
        What `work` gives in the kept cell. Raises what `work` raises, and what the room raises; the next `do` then gets
        a fresh cell. A cell is only handed out after it judged a known program rightly.
        """
        request = _Request(work)
        try:
            self._ask.send_nowait(request)
        except anyio.ClosedResourceError as error:
            raise RefereeError(_CLOSED) from error
        try:
            await request.done.wait()
        finally:
            request.scope.cancel()
        if request.error is not None:
            raise request.error
        value: T = request.value
        return value

    async def serve(self) -> None:
        """Serve whoever asks, until closed."""
        with self._ask, self._asked, suppress(anyio.EndOfStream):
            while True:
                await self._in_a_room(await self._next())

    def close(self) -> None:
        """Serve no more: what is under way is broken off, and who still waits is told."""
        self._ask.close()
        if self._current is not None:
            self._current.scope.cancel()

    async def _next(self) -> _Request:
        """The next request. Raises `EndOfStream` once closed."""
        while True:
            request = self._current = await self._asked.receive()
            if not self._ask.statistics().open_send_streams:
                request.fail(RefereeError(_CLOSED))
            elif not request.scope.cancel_called:
                return request

    async def _in_a_room(self, request: _Request) -> None:
        """Serve `request` and those after it in one room, until there is a doubt about it."""
        failed: Exception | None = None
        try:
            async with self._rooms() as room, room.stream(zygote_argv()) as stream:
                cell = Cell(stream)
                failed = await prepare(cell, self._python)
                with suppress(anyio.EndOfStream):
                    while failed is None and await request.serve(cell):
                        request = await self._next()
        except Exception as error:  # noqa: BLE001 - so does what the room says
            failed = error
        finally:
            # Only when the room has closed: what comes next must never find two of them.
            if not request.done.is_set():
                request.fail(failed or RefereeError(_CLOSED))
            elif failed is not None:
                self.unclosed = failed


@asynccontextmanager
async def kept(*cells: Kept) -> AsyncIterator[None]:
    """
    Keep `cells` in service for the length of the block; their rooms are closed when it is left. Raises what a room says
    that can't be closed.
    """
    raised: Exception | None = None
    async with anyio.create_task_group() as tasks:
        for cell in cells:
            tasks.start_soon(cell.serve)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised again below, where no task group wraps it
            raised = error
        finally:
            for cell in cells:
                cell.close()
    for trouble in (raised, *(cell.unclosed for cell in cells)):
        if trouble is not None:
            raise trouble
