"""A test's room after its end, which is the room itself: nothing in it is walled in, and nothing of a seat's was alive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from anyio.abc import ByteStream

from harness.ports import Remains, Workspace
from harness.walls import ExecResult, KillProof

__all__ = ["Rest"]


class Rest:
    """A room after its end: programs of ours may still be run in it, and nothing of the seat's lives."""

    def __init__(self, room: Workspace, proof: KillProof) -> None:
        self.name = room.name
        self.gateway: Path | None = None
        self.proof = proof
        self._room = room

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float = 60.0,
        output_bytes: int = 1 << 20,
        env: Mapping[str, str] | None = None,
        cwd: str = "/workspace",
    ) -> ExecResult:
        """Run a program of ours; see `ports.Workspace`."""
        return await self._room.exec(
            argv, stdin=stdin, timeout_s=timeout_s, output_bytes=output_bytes, env=env, cwd=cwd
        )

    def stream(self, argv: Sequence[str], *, cwd: str = "/workspace") -> AbstractAsyncContextManager[ByteStream]:
        """Start a long-lived program of ours; see `ports.Workspace`."""
        return self._room.stream(argv, cwd=cwd)

    async def sweep(self) -> int | None:
        """End what a program of ours left alive."""
        return await self._room.sweep()

    async def kill(self) -> None:
        """End every program of ours."""
        await self._room.kill()

    @asynccontextmanager
    async def remains(self) -> AsyncIterator[Remains]:
        """The same: it has ended already."""
        yield self

    async def facts(self) -> Mapping[str, Any]:
        """What is observed of the room."""
        return await self._room.facts()
