"""
A room that is no room: programs run on this host, as this user. For candidates that the tests themselves wrote and that
do no harm; what must be shown of a wall is shown on a live backend.
"""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import ByteStream, Process
from anyio.streams.stapled import StapledByteStream

from harness.ports import Remains
from harness.walls import ExecResult, KillProof
from tests.resting import Rest

__all__ = ["LocalRooms"]


class LocalRoom:
    """A `Workspace` that can stream only. `processes` are those it started."""

    name = "local"

    def __init__(self) -> None:
        self.processes: list[Process] = []

    @asynccontextmanager
    async def stream(self, argv: Sequence[str], *, cwd: str = "/workspace") -> AsyncIterator[ByteStream]:
        """Start `argv` on this host; killed at the end."""
        async with await anyio.open_process(list(argv), stderr=subprocess.DEVNULL, cwd="/") as process:
            self.processes.append(process)
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                yield StapledByteStream(process.stdin, process.stdout)
            finally:
                if process.returncode is None:
                    process.kill()

    gateway: Path | None = None

    async def exec(self, argv: Sequence[str], **_: Any) -> ExecResult:
        """Nothing is run here but streams."""
        raise AssertionError(f"a referee that streams has no use for exec: {argv!r}")

    async def sweep(self) -> int | None:
        """Nothing lives on after a call here."""
        return 0

    @asynccontextmanager
    async def remains(self) -> AsyncIterator[Remains]:
        """The same room, in which nothing is alive."""
        await self.kill()
        yield Rest(self, KillProof(before=0, alive=0, witness="none is needed", seconds=0.0))

    async def kill(self) -> None:
        """Kill what was started."""
        for process in self.processes:
            if process.returncode is None:
                process.kill()

    async def facts(self) -> Mapping[str, Any]:
        """Nothing to say."""
        return {}


class LocalRooms:
    """Opens a `LocalRoom` each time it is called; `opened` keeps them all."""

    def __init__(self) -> None:
        self.opened: list[LocalRoom] = []

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[LocalRoom]:
        """One more room."""
        room = LocalRoom()
        self.opened.append(room)
        yield room
