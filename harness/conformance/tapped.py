"""Rooms with a tap: whoever holds it sees what goes in, and may change or refuse what comes out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import ByteStream

from harness.errors import WorkspaceError
from harness.ports import Remains, RoomOpener, Workspace
from harness.walls import ExecResult
from harness.workspaces.frames import helper_argv

__all__ = ["Gone", "Tap", "tapped"]


class Gone(Exception):  # noqa: N818 - it never leaves the tap: a room's own errors take its place
    """Raised by a tap: the room is dead, and answers as a dead one does."""


class Tap:
    """
    Lets everything through as it is, and counts rooms, calls, and programs that ran to an end, which those that lay
    files by Proctor's own helper are none of. `room` is the number of the room, from 1.
    """

    def __init__(self) -> None:
        self.rooms = self.calls = self.programs = 0

    def opening(self) -> None:
        """A room is about to be opened. Raises `WorkspaceError` where it can't be."""
        self.rooms += 1

    def call(self, room: int, data: bytes) -> None:
        """Something is asked of a room, with `data` going in. Raises `Gone` where the room is dead."""
        del room, data
        self.calls += 1

    def result(self, result: ExecResult) -> ExecResult:
        """What a program did, as the referee is told it."""
        self.programs += 1
        return result

    def received(self, data: bytes) -> bytes:
        """What came out of a stream, as the referee gets it."""
        return data


def tapped(rooms: RoomOpener, tap: Tap) -> RoomOpener:
    """The same rooms, with `tap` between them and whoever opens them."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Workspace]:
        tap.opening()
        number = tap.rooms
        async with rooms() as room:
            yield _Room(room, number, tap)

    return opened


class _Room:
    """A room behind a tap."""

    def __init__(self, room: Workspace, number: int, tap: Tap) -> None:
        self._room, self._number, self._tap = room, number, tap
        self.name = room.name
        self.gateway: Path | None = room.gateway

    def _call(self, data: bytes = b"") -> None:
        try:
            self._tap.call(self._number, data)
        except Gone as gone:
            raise WorkspaceError(f"room {self._number} is dead: {gone}") from None

    async def exec(self, argv: Sequence[str], *, stdin: bytes = b"", **options: Any) -> ExecResult:
        """As the room does."""
        shown = [*argv, *(f"{name}={value}" for name, value in (options.get("env") or {}).items())]
        self._call(b"\0".join([*(word.encode("utf-8", "replace") for word in shown), stdin]))
        result = await self._room.exec(argv, stdin=stdin, **options)
        return result if list(argv) == list(helper_argv()) else self._tap.result(result)

    @asynccontextmanager
    async def stream(self, argv: Sequence[str], *, cwd: str = "/workspace") -> AsyncIterator[ByteStream]:
        """As the room does."""
        self._call(b"\0".join(word.encode("utf-8", "replace") for word in argv))
        async with self._room.stream(argv, cwd=cwd) as stream:
            yield _Stream(stream, self._number, self._tap)

    async def sweep(self) -> int | None:
        """As the room does."""
        self._call()
        return await self._room.sweep()

    async def kill(self) -> None:
        """As the room does: a dead room too can be killed."""
        await self._room.kill()

    def remains(self) -> AbstractAsyncContextManager[Remains]:
        """As the room does."""
        self._call()
        return self._room.remains()

    async def facts(self) -> Mapping[str, Any]:
        """As the room does."""
        self._call()
        return await self._room.facts()


class _Stream(ByteStream):
    """A stream behind a tap. A dead room's ends."""

    def __init__(self, stream: ByteStream, number: int, tap: Tap) -> None:
        self._stream, self._number, self._tap = stream, number, tap

    async def receive(self, max_bytes: int = 65536) -> bytes:
        try:
            self._tap.call(self._number, b"")
        except Gone:
            raise anyio.EndOfStream from None
        return self._tap.received(await self._stream.receive(max_bytes))

    async def send(self, item: bytes) -> None:
        try:
            self._tap.call(self._number, item)
        except Gone:
            raise anyio.BrokenResourceError from None
        await self._stream.send(item)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()
