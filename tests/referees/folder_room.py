"""A workspace without walls, for fast tests: a temporary folder, and programs of this machine started in it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import ByteStream
from anyio.streams.stapled import StapledByteStream

from harness.ports import Remains
from harness.walls import ExecResult, KillProof
from tests.resting import Rest


class FolderRoom:
    """`/workspace` in a command means the room's folder, and `python3` this interpreter."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.folder = folder

    def _here(self, argv: Sequence[str]) -> list[str]:
        own = {"/workspace": str(self.folder), "python3": sys.executable}
        return [own.get(part, part) for part in argv]

    @asynccontextmanager
    async def stream(self, argv: Sequence[str], *, cwd: str = "/workspace") -> AsyncIterator[ByteStream]:
        """The program's input and output; the program and its children are killed on the way out."""
        process = await anyio.open_process(
            self._here(argv), cwd=self.folder, stderr=subprocess.DEVNULL, start_new_session=True
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield StapledByteStream(process.stdin, process.stdout)
        finally:
            with anyio.move_on_after(10, shield=True):
                try:
                    import os

                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                await process.aclose()

    gateway: Path | None = None

    async def exec(self, argv: Sequence[str], **_: Any) -> ExecResult:
        """Not used by the referee."""
        raise AssertionError(f"the referee ran {argv}")

    async def sweep(self) -> int | None:
        """Nothing lives on after a call here."""
        return 0

    @asynccontextmanager
    async def remains(self) -> AsyncIterator[Remains]:
        """The same room, in which nothing is alive."""
        await self.kill()
        yield Rest(self, KillProof(before=0, alive=0, witness="none is needed", seconds=0.0))

    async def kill(self) -> None:
        """Nothing runs outside a stream."""

    async def facts(self) -> Mapping[str, Any]:
        """Nothing is walled."""
        return {}


@asynccontextmanager
async def folder_rooms() -> AsyncIterator[FolderRoom]:
    """A `RoomOpener`: a fresh folder each time."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-room-"))
    try:
        yield FolderRoom(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
