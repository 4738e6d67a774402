"""A program that a container engine runs: how it is begun, what comes of it piece by piece, when it is over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream

from harness.workspaces.docker_engine import Engine, NotFoundError
from harness.workspaces.docker_witness import Witness

__all__ = [
    "CHUNK_BYTES",
    "STDERR",
    "STDOUT",
    "Container",
    "Frames",
    "Program",
    "Running",
    "create",
    "ended",
    "is_running",
    "known",
]

STDOUT, STDERR = 1, 2
CHUNK_BYTES = 65_536
_HEADER_BYTES = 8
_LINGER_S = 0.005
_LINGER_MOST_S = 0.1

_ENTER = 'cd -- "$1" || exit 126; unset OLDPWD; shift; exec "$@"'
"""Goes to the working folder in the container and not by the engine's hand: a folder that a seat has removed, or a
program that isn't there, is the program's own failure and none of the workspace."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Container:
    """
    A running container, who its programs run as and how many there may be; `host_pids` if in the host's own tree.
    `programs` are those that the engine was asked for and that are not over, by the engine's name for them.
    """

    engine: Engine
    id: str
    user: str
    pids: int
    host_pids: bool = False
    witness: Witness | None = None
    programs: dict[str, Running] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """What to run in a container."""

    argv: Sequence[str]
    cwd: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(kw_only=True, slots=True)
class Running:
    """
    A program on its way: `asked` once the engine may have started it; `number` is its own among the container's
    processes, once that is known.
    """

    id: str
    asked: bool = False
    number: int | None = None


class Frames:
    """The pieces of a framed stream, as soon as they are there; no piece is over 64 KiB, whatever a frame says."""

    def __init__(self, stream: ByteReceiveStream) -> None:
        self._stream = stream
        self._held = bytearray()
        self._kind = 0
        self._left = 0

    async def next(self) -> tuple[int, bytes] | None:
        """Which output (1 or 2) and some of its bytes, or None when the stream is over."""
        while not self._left or not self._held:
            if not self._left and len(self._held) >= _HEADER_BYTES:
                self._kind, self._left = self._held[0], int.from_bytes(self._held[4:_HEADER_BYTES], "big")
                del self._held[:_HEADER_BYTES]
                continue
            try:
                self._held += await self._stream.receive(CHUNK_BYTES)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return None
        piece = bytes(self._held[: self._left])
        del self._held[: len(piece)]
        self._left -= len(piece)
        return self._kind, piece


@asynccontextmanager
async def known(container: Container, program: Program, *, stdin: bool) -> AsyncIterator[Running]:
    """A program that the engine knows and has not started yet, among those of its container until it is over."""
    running = await create(container, program, stdin=stdin)
    container.programs[running.id] = running
    try:
        yield running
    finally:
        del container.programs[running.id]


async def create(container: Container, program: Program, *, stdin: bool) -> Running:
    """Make a program known to the engine, which has not started it yet. Raises `WorkspaceError`."""
    made = await container.engine.call(
        lambda api: api.exec_create(
            container.id,
            ["/bin/sh", "-c", _ENTER, "sh", program.cwd, *program.argv],
            stdin=stdin,
            user=container.user,
            workdir="/",
            environment=dict(program.env),
        )
    )
    return Running(id=str(made["Id"]))


async def ended(engine: Engine, running: Running) -> Mapping[str, Any]:
    """The engine's word on a program once it is over: its outputs may have ended before it did."""
    pause = _LINGER_S
    while True:
        state = await engine.call(lambda api: api.exec_inspect(running.id))
        if not state["Running"] and state["ExitCode"] is not None:
            return dict(state)
        await anyio.sleep(pause)
        pause = min(2 * pause, _LINGER_MOST_S)


async def is_running(container: Container) -> bool:
    """Whether the container has not ended."""
    try:
        facts = await container.engine.call(lambda api: api.inspect_container(container.id))
    except NotFoundError:
        return False
    return bool(facts["State"]["Running"])
