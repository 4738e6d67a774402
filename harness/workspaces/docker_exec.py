"""Runs programs in a container: both outputs apart and bounded, an input, a time limit that ends all that was begun."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from anyio.abc import ByteStream

from harness.clock import Clock
from harness.errors import WorkspaceError
from harness.walls import ExecResult
from harness.workspaces.docker_kill import KILL_DEADLINE_S, kill_everything, kill_group, run_script
from harness.workspaces.docker_program import (
    CHUNK_BYTES,
    STDERR,
    STDOUT,
    Container,
    Frames,
    Program,
    Running,
    ended,
    is_running,
    known,
)
from harness.workspaces.docker_sweep import end_beside

__all__ = ["run_program", "stream_program"]

_NOTE_CHARS = 400
_CANNOT_RUN = 126
_WORD_BYTES = (128 << 10) - 1
"""The most that Linux takes in one argument, its end included."""
_WORDS_BYTES = 1 << 20
_LOOK_S = 2.0
_WORD_S = 5.0
"""How often it is asked, while much is sent to a program, whether its container still runs."""


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
class _Run:
    """One try at running a program: what it said, and the engine's last word on it, None if it was never asked."""

    outputs: Mapping[int, _Capped]
    state: Mapping[str, Any] | None = None
    timed_out: bool = False

    @property
    def refused(self) -> bool:
        """Whether the engine could not start it: a program that ran, if only for a moment, had a process number."""
        return self.state is not None and not self.state["Pid"] and not self.timed_out


async def run_program(
    container: Container, program: Program, *, stdin: bytes, timeout_s: float, output_bytes: int, clock: Clock
) -> ExecResult:
    """
    Run a program to its end or its time limit, which kills everything of its user in the container but open streams and
    what else still runs. So does a cancellation.

    Raises `WorkspaceError` when it could not be started or could not be ended.
    """
    begun = clock.monotonic()
    if (why := _unfit(program)) is not None:
        return ExecResult(stdout=b"", stderr=why.encode()[:output_bytes], status=_CANNOT_RUN, seconds=0.0)
    run = await _try(container, program, stdin=stdin, timeout_s=timeout_s, output_bytes=output_bytes)
    if run.refused:
        # The seat may have taken every place for a process. That must not void its cell: it loses what it runs.
        await kill_everything(container)
        run = await _try(container, program, stdin=stdin, timeout_s=timeout_s, output_bytes=output_bytes)
    return _result(program, run, seconds=clock.monotonic() - begun)


def _unfit(program: Program) -> str | None:
    """
    Why the kernel would not take these arguments, or None. They may be a model's words: that they can't be a command is
    the command's own failure, and none of the engine's.
    """
    words = [program.cwd, *program.argv, *(f"{name}={value}" for name, value in program.env.items())]
    if not program.argv or any("\0" in word for word in words):
        return "no program was named\n" if not program.argv else "an argument holds a NUL character\n"
    try:
        sizes = [len(word.encode()) for word in words]
    except UnicodeEncodeError:
        return "an argument is no text\n"
    if max(sizes) > _WORD_BYTES or sum(sizes) > _WORDS_BYTES:
        return f"the arguments are too long: {max(sizes)} bytes in one, {sum(sizes)} in all\n"
    return None


async def _try(container: Container, program: Program, *, stdin: bytes, timeout_s: float, output_bytes: int) -> _Run:
    run = _Run(outputs={STDOUT: _Capped(room=output_bytes), STDERR: _Capped(room=output_bytes)})
    async with known(container, program, stdin=bool(stdin)) as running:
        try:
            with anyio.move_on_after(timeout_s) as limit:
                async with container.engine.attach(running.id) as stream:
                    running.asked = True
                    await _talk(stream, stdin, run.outputs)
                run.state = await ended(container.engine, running)
            run.timed_out = limit.cancelled_caught
        finally:
            # Out of time, cancelled, or the engine broke off: whatever was begun must not go on.
            if run.state is None:
                with anyio.CancelScope(shield=True):
                    run.state = await _put_down(container, program, running)
    return run


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


async def _put_down(container: Container, program: Program, running: Running) -> Mapping[str, Any] | None:
    """
    Kill everything of the program's user but its other programs, and wait until the engine says that it is over.

    It is killed again while it still runs: the engine may have started it only after the first time. Raises
    `WorkspaceError` when it can't be ended.
    """
    if not running.asked:
        return None
    with anyio.move_on_after(KILL_DEADLINE_S):
        while True:
            await end_beside(container, running)
            with anyio.move_on_after(1):
                return await ended(container.engine, running)
    raise WorkspaceError(f"{program.argv[0]!r} could not be killed within {KILL_DEADLINE_S:.0f} s")


def _result(program: Program, run: _Run, *, seconds: float) -> ExecResult:
    stdout, stderr, state = run.outputs[STDOUT], run.outputs[STDERR], run.state
    if state is None:
        raise WorkspaceError(f"the container engine did not start {program.argv[0]!r} in time")
    if not state["Pid"]:
        # What stdout then holds is the engine's own complaint; a program that ran may print the same words, and they
        # are its output.
        note = bytes(stdout.kept + stderr.kept).decode(errors="replace").strip()[:_NOTE_CHARS]
        raise WorkspaceError(f"the container engine could not start {program.argv[0]!r}: {note}")
    return ExecResult(
        stdout=bytes(stdout.kept),
        stderr=bytes(stderr.kept),
        # What a killed program ended with says nothing about it.
        status=None if run.timed_out else int(state["ExitCode"]),
        seconds=seconds,
        timed_out=run.timed_out,
        stdout_cut=stdout.cut,
        stderr_cut=stderr.cut,
    )


class _Talking(ByteStream):
    """A running program's input and standard output; what it says on standard error is dropped."""

    def __init__(self, container: Container, stream: ByteStream) -> None:
        self._container = container
        self._stream = stream
        self._frames = Frames(stream)
        self._rest = b""

    async def receive(self, max_bytes: int = CHUNK_BYTES) -> bytes:
        while not self._rest:
            found = await self._frames.next()
            if found is None:
                raise anyio.EndOfStream
            if found[0] == STDOUT:
                self._rest = found[1]
        data, self._rest = self._rest[:max_bytes], self._rest[max_bytes:]
        return data

    async def send(self, item: bytes) -> None:
        if len(item) <= CHUNK_BYTES:  # there is room for so much on the way, whoever is at its end
            await self._stream.send(item)
            return
        failed: list[BaseException] = []

        async def pass_on() -> None:
            try:
                await self._stream.send(item)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
                failed.append(error)
            tasks.cancel_scope.cancel()

        async def look() -> None:
            # The engine keeps the connection of a container that is gone, and reads from it no more.
            with suppress(WorkspaceError):
                while await is_running(self._container):  # noqa: ASYNC110 - the engine tells nobody by itself
                    await anyio.sleep(_LOOK_S)
            failed.append(anyio.BrokenResourceError())
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pass_on)
            tasks.start_soon(look)
        if failed:
            raise failed[0]

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
    async with (
        known(container, announced, stdin=True) as running,
        container.engine.attach(running.id) as stream,
    ):
        talking = _Talking(container, stream)
        try:
            running.number = int(await _first_line(talking))
            yield talking
        finally:
            with anyio.CancelScope(shield=True):
                await _end_group(container, running)


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


async def _end_group(container: Container, running: Running) -> None:
    with anyio.move_on_after(KILL_DEADLINE_S):
        try:
            if running.number is None:
                await kill_everything(container)
                await ended(container.engine, running)
            else:
                await _group_ended(container, running, running.number)
        except WorkspaceError:
            if await is_running(container):
                raise
        return
    raise WorkspaceError(f"a program could not be killed within {KILL_DEADLINE_S:.0f} s")


async def _group_ended(container: Container, running: Running, number: int) -> None:
    """
    Kill a program's group until the engine says that the program is over, or nobody is left in it: an engine under
    load has been seen to keep the word of an end to itself.
    """
    while True:
        await kill_group(container, number)
        with anyio.move_on_after(_WORD_S):
            await ended(container.engine, running)
            return
        if await run_script(container, f"kill -s 0 -- -{number} 2>/dev/null") == 1:
            return
