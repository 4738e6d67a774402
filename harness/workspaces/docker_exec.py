"""Runs programs in a container: both outputs apart and bounded, an input, a time limit that ends all that was begun."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, ByteStream

from harness.clock import Clock
from harness.errors import WorkspaceError
from harness.walls import ExecResult
from harness.workspaces.docker_engine import Engine, NotFoundError

__all__ = ["Container", "Frames", "Program", "kill_everything", "run_program", "stream_program"]

_STDOUT, _STDERR = 1, 2
_HEADER_BYTES = 8
_CHUNK_BYTES = 65_536
_KILL_DEADLINE_S = 20.0
_LINGER_S = 0.005
_LINGER_MOST_S = 0.1
_NOTE_CHARS = 400

_ENTER = 'cd -- "$1" || exit 126; unset OLDPWD; shift; exec "$@"'
"""Goes to the working folder in the container and not by the engine's hand: a folder that a seat has removed, or a
program that isn't there, is the program's own failure and none of the workspace."""

_KILL_ALL = """
n=0
while :; do
    kill -KILL -1 2>/dev/null
    left=
    for p in /proc/[0-9]*; do
        p=${p#/proc/}
        [ "$p" = 1 ] || [ "$p" = $$ ] || ! kill -0 "$p" 2>/dev/null || left=$p
    done
    [ -n "$left" ] || exit 0
    n=$((n + 1))
    [ $n -le 200 ] || exit 1
    [ $n -le 5 ] || sleep 0.02
done
"""
"""Kills everything of the calling user but the caller, until none of it is left, not even a zombie."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Container:
    """A running container, and who its programs run as. `host_pids` when they share the host's process tree."""

    engine: Engine
    id: str
    user: str
    host_pids: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """What to run in a container."""

    argv: Sequence[str]
    cwd: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(kw_only=True, slots=True)
class _Capped:
    """Keeps the first `room` bytes and knows whether there were more."""

    room: int
    kept: bytearray = field(default_factory=bytearray)
    cut: bool = False

    def take(self, data: bytes) -> None:
        free = self.room - len(self.kept)
        self.kept += data[:free]
        self.cut = self.cut or len(data) > free


@dataclass(kw_only=True, slots=True)
class _Running:
    """A program on its way: `asked` once the engine may have started it."""

    id: str
    asked: bool = False


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
                self._held += await self._stream.receive(_CHUNK_BYTES)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return None
        piece = bytes(self._held[: self._left])
        del self._held[: len(piece)]
        self._left -= len(piece)
        return self._kind, piece


async def run_program(
    container: Container, program: Program, *, stdin: bytes, timeout_s: float, output_bytes: int, clock: Clock
) -> ExecResult:
    """
    Run a program to its end or its time limit, which kills everything of its user in the container.

    So does a cancellation. Raises `WorkspaceError` when it could not be started or could not be ended.
    """
    begun = clock.monotonic()
    outputs = {_STDOUT: _Capped(room=output_bytes), _STDERR: _Capped(room=output_bytes)}
    running = _Running(id=await _create(container, program, stdin=bool(stdin)))
    state: Mapping[str, Any] | None = None
    try:
        with anyio.move_on_after(timeout_s) as limit:
            async with container.engine.attach(running.id) as stream:
                running.asked = True
                await _talk(stream, stdin, outputs)
            state = await _ended(container.engine, running)
    finally:
        # Out of time, cancelled, or the engine broke off: whatever was begun must not go on.
        if state is None:
            with anyio.CancelScope(shield=True):
                state = await _put_down(container, program, running)
    return _result(program, state, outputs, seconds=clock.monotonic() - begun, timed_out=limit.cancelled_caught)


async def _create(container: Container, program: Program, *, stdin: bool) -> str:
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
    return str(made["Id"])


async def _talk(stream: ByteStream, stdin: bytes, outputs: Mapping[int, _Capped]) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_feed, stream, stdin)
        framed = Frames(stream)
        while (found := await framed.next()) is not None:
            kind, piece = found
            if kind in outputs:
                outputs[kind].take(piece)
        tasks.cancel_scope.cancel()


async def _feed(stream: ByteStream, stdin: bytes) -> None:
    # A program may end, or close its input, before it has read all of it: that is its own affair.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        if stdin:
            await stream.send(stdin)
        await stream.send_eof()


async def _ended(engine: Engine, running: _Running) -> Mapping[str, Any]:
    """The engine's word on a program once it is over: its outputs may have ended before it did."""
    pause = _LINGER_S
    while True:
        state = await engine.call(lambda api: api.exec_inspect(running.id))
        if not state["Running"] and state["ExitCode"] is not None:
            return dict(state)
        await anyio.sleep(pause)
        pause = min(2 * pause, _LINGER_MOST_S)


async def _put_down(container: Container, program: Program, running: _Running) -> Mapping[str, Any] | None:
    """
    Kill everything of the program's user and wait until the engine says that the program is over.

    It is killed again while it still runs: the engine may have started it only after the first time. Raises
    `WorkspaceError` when it can't be ended.
    """
    if not running.asked:
        return None
    with anyio.move_on_after(_KILL_DEADLINE_S):
        while True:
            await kill_everything(container)
            with anyio.move_on_after(1):
                return await _ended(container.engine, running)
    raise WorkspaceError(f"{program.argv[0]!r} could not be killed within {_KILL_DEADLINE_S:.0f} s")


def _result(
    program: Program,
    state: Mapping[str, Any] | None,
    outputs: Mapping[int, _Capped],
    *,
    seconds: float,
    timed_out: bool,
) -> ExecResult:
    stdout, stderr = outputs[_STDOUT], outputs[_STDERR]
    if state is None:
        raise WorkspaceError(f"the container engine did not start {program.argv[0]!r} in time")
    if not state["Pid"]:
        # A program that never ran has no process number. What its stdout then holds is the engine's own complaint; a
        # program that did run may print the same words, and they are its output.
        note = bytes(stdout.kept + stderr.kept).decode(errors="replace").strip()[:_NOTE_CHARS]
        raise WorkspaceError(f"the container engine could not start {program.argv[0]!r}: {note}")
    return ExecResult(
        stdout=bytes(stdout.kept),
        stderr=bytes(stderr.kept),
        # What a killed program ended with says nothing about it.
        status=None if timed_out else int(state["ExitCode"]),
        seconds=seconds,
        timed_out=timed_out,
        stdout_cut=stdout.cut,
        stderr_cut=stderr.cut,
    )


async def kill_everything(container: Container) -> None:
    """
    Kill every process of the container's user; of the keeper's none. A container that has ended has none left.

    Raises `WorkspaceError` when that can't be done.
    """
    with anyio.move_on_after(_KILL_DEADLINE_S, shield=True):
        try:
            # In a process tree shared with the host, "everything of this user" would be far more than the container's.
            script = _KILL_ALL if not container.host_pids else await _kill_listed(container)
            # The killer may be killed itself, by another one at the same time: then it is done over.
            while await _kill(container, script) != 0:  # noqa: ASYNC110 - each turn is a program of its own
                await anyio.sleep(_LINGER_S)
        except WorkspaceError:
            if await _is_running(container):
                raise
        return
    raise WorkspaceError(f"the seat's processes could not be killed within {_KILL_DEADLINE_S:.0f} s")


async def _kill(container: Container, script: str) -> int:
    running = _Running(id=await _create(container, Program(argv=["/bin/sh", "-c", script]), stdin=False))
    async with container.engine.attach(running.id) as stream:
        framed = Frames(stream)
        while await framed.next() is not None:
            """It has nothing to say."""
    return int((await _ended(container.engine, running))["ExitCode"])


async def _kill_listed(container: Container) -> str:
    """A command that kills what the engine lists as the container's own processes, but the keeper's two."""
    facts = await container.engine.call(lambda api: api.inspect_container(container.id))
    keeper = str(facts["State"]["Pid"])
    listed = await container.engine.call(lambda api: api.top(container.id, "-eo pid,ppid"))
    doomed = [pid for pid, parent in listed["Processes"] or [] if keeper not in (pid, parent)]
    return f"kill -KILL {' '.join(doomed)} 2>/dev/null; true"


async def _is_running(container: Container) -> bool:
    try:
        facts = await container.engine.call(lambda api: api.inspect_container(container.id))
    except NotFoundError:
        return False
    return bool(facts["State"]["Running"])


class _Talking(ByteStream):
    """A running program's input and standard output; what it says on standard error is dropped."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._frames = Frames(stream)
        self._rest = b""

    async def receive(self, max_bytes: int = _CHUNK_BYTES) -> bytes:
        while not self._rest:
            found = await self._frames.next()
            if found is None:
                raise anyio.EndOfStream
            if found[0] == _STDOUT:
                self._rest = found[1]
        data, self._rest = self._rest[:max_bytes], self._rest[max_bytes:]
        return data

    async def send(self, item: bytes) -> None:
        await self._stream.send(item)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def stream_program(container: Container, program: Program) -> AsyncIterator[ByteStream]:
    """
    A long-lived program to talk to, killed with its process group when the context ends.

    It first says its own number, which is how it is found again: the engine knows no way to kill what it started.
    """
    announced = replace(program, argv=["/bin/sh", "-c", 'echo $$ && exec "$@"', "sh", *program.argv])
    running = _Running(id=await _create(container, announced, stdin=True))
    async with container.engine.attach(running.id) as stream:
        talking = _Talking(stream)
        number: bytes | None = None
        try:
            number = await _first_line(talking)
            yield talking
        finally:
            with anyio.CancelScope(shield=True):
                await _end_group(container, running, number)


async def _first_line(stream: ByteStream) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        try:
            line += await stream.receive(1)
        except anyio.EndOfStream:
            raise WorkspaceError("the container engine could not start a program to talk to") from None
    if not line.strip().isdigit():
        raise WorkspaceError(f"a program to talk to did not say its number but {line[:40]!r}")
    return line.strip()


async def _end_group(container: Container, running: _Running, number: bytes | None) -> None:
    with anyio.move_on_after(_KILL_DEADLINE_S):
        try:
            if number is None:
                await kill_everything(container)
            else:
                await _kill(container, f"kill -s KILL -- -{number.decode()} 2>/dev/null")
            await _ended(container.engine, running)
        except WorkspaceError:
            if await _is_running(container):
                raise
        return
    raise WorkspaceError(f"a program could not be killed within {_KILL_DEADLINE_S:.0f} s")
