"""A workspace made of bubblewrap executions over one folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import ByteStream

from harness.clock import Clock, fresh_token
from harness.errors import WorkspaceError
from harness.ports import Remains
from harness.walls import ExecResult, KillProof, Walls
from harness.workspaces.bubblewrap_facts import LOOK, facts_of, own_namespaces
from harness.workspaces.bubblewrap_folder import Room
from harness.workspaces.bubblewrap_options import (
    Root,
    base_environment,
    bwrap_options,
    environment_options,
    launcher,
    marker,
)
from harness.workspaces.bubblewrap_run import KILL_DEADLINE_S, Command, Execution, Pipe, UnstartableError, start
from harness.workspaces.remains import Rest

__all__ = ["BubblewrapWorkspace"]

DRAIN_DEADLINE_S = 5.0


class _Kept:
    """The first `limit` bytes of a stream that is read to its end."""

    def __init__(self, limit: int) -> None:
        self.data = bytearray()
        self.cut = False
        self._limit = limit

    async def fill(self, pipe: Pipe) -> None:
        while part := await pipe.read():
            room = self._limit - len(self.data)
            self.data += part[:room]
            self.cut = self.cut or len(part) > room


class _Program(ByteStream):
    """A long-lived program's input and output as one stream."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Some of what the program wrote. Raises `anyio.EndOfStream` when it writes no more."""
        data = await self._execution.stdout.read(max_bytes)
        if not data:
            raise anyio.EndOfStream
        return data

    async def send(self, item: bytes) -> None:
        """Write to the program. Raises `anyio.BrokenResourceError` when it doesn't read any more."""
        try:
            await self._execution.stdin.write(item)
        except (BrokenPipeError, OSError) as error:
            raise anyio.BrokenResourceError from error

    async def send_eof(self) -> None:
        """The end of the program's input."""
        self._execution.stdin.close()

    async def aclose(self) -> None:
        """The end of the program, and of everything that it started."""
        await self._execution.finish()


class BubblewrapWorkspace:
    """A `Workspace`. Programs of two executions share its files and nothing else, not even sight of each other."""

    def __init__(
        self, *, walls: Walls, root: Root, room: Room, bwrap: str, user: int | None, seccomp: bytes | None, clock: Clock
    ) -> None:
        self.name = room.name
        self.gateway: Path | None = None
        self._walls = walls
        self._options = bwrap_options(walls, root, str(room.files))
        self._room = room
        self._bwrap = bwrap
        self._user = user
        self._seccomp = seccomp
        self._clock = clock
        self._opened = clock.monotonic()
        self._alive: set[Execution] = set()
        self._closed = False
        self._seen: Mapping[str, Any] | None = None
        self._counts = {"executions": 0, "timed_out": 0, "processes_left": 0}

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
        """
        Run a program until it ends or `timeout_s` seconds are over, and end whatever it leaves alive.

        Raises `WorkspaceError` when it could not be started for reasons of ours, or when something of it can't be
        ended. A program that isn't there, a folder `cwd` that isn't, or a command that no kernel takes is the caller's
        affair: status 127 or 126.
        """
        began = self._clock.monotonic()
        limit = min(timeout_s, self._life_left())
        token = fresh_token(8)
        mark = marker(token)
        try:
            execution = await self._start(argv, token, cwd, env)
        except UnstartableError as error:
            said = f"{error}\n".encode("utf-8", "backslashreplace")
            return ExecResult(stdout=b"", stderr=said, status=126, seconds=self._clock.monotonic() - began)
        out, err = _Kept(output_bytes), _Kept(output_bytes + len(mark) + 4096)
        timed_out = False
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(out.fill, execution.stdout)
                tasks.start_soon(err.fill, execution.stderr)
                tasks.start_soon(_feed, execution.stdin, stdin)
                try:
                    with anyio.move_on_after(limit) as scope:
                        await execution.wait()
                    timed_out = scope.cancelled_caught
                finally:
                    await execution.finish()
                tasks.cancel_scope.deadline = anyio.current_time() + DRAIN_DEADLINE_S
        finally:
            await self._end(execution)
        self._counts["timed_out"] += timed_out
        stderr, started = _after(bytes(err.data), mark)
        if not started and not timed_out:
            raise WorkspaceError(
                f"the sandbox could not be set up: {stderr.decode('utf-8', 'replace').strip()[:500]!r}. "
                "Does `bwrap --unshare-all --ro-bind / / --proc /proc true` work on this machine?"
            )
        return ExecResult(
            stdout=bytes(out.data),
            stderr=stderr[:output_bytes],
            status=None if timed_out else execution.exit_code,
            seconds=self._clock.monotonic() - began,
            timed_out=timed_out,
            stdout_cut=out.cut,
            stderr_cut=err.cut or len(stderr) > output_bytes,
        )

    @asynccontextmanager
    async def stream(self, argv: Sequence[str]) -> AsyncIterator[ByteStream]:
        """A program that stays, as a stream of its input and output. It is ended when the block is left."""
        token = fresh_token(8)
        try:
            execution = await self._start(argv, token, "/workspace", None)
        except UnstartableError as error:
            raise WorkspaceError(f"a program to stream can't be started: {error}") from error
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_Kept(0).fill, execution.stderr)
                tasks.start_soon(execution.wait)
                try:
                    yield _Program(execution)
                finally:
                    await execution.finish()
                    tasks.cancel_scope.cancel()
        finally:
            await self._end(execution)

    async def sweep(self) -> int | None:
        """0: what a program leaves alive is ended with it, since each has a process tree of its own."""
        return 0

    @asynccontextmanager
    async def remains(self) -> AsyncIterator[Remains]:
        """What the seat left, after everything that is alive was ended."""
        await self.kill()
        yield Rest(self, KillProof(before=None, alive=0, witness="pid namespace", seconds=0.0))

    async def kill(self) -> None:
        """End every program that is alive in the workspace. Its files stay."""
        with anyio.CancelScope(shield=True):
            for execution in list(self._alive):
                await execution.finish()

    async def facts(self) -> Mapping[str, Any]:
        """
        What the kernel says of a program in this workspace, and what was observed so far: executions, how many met
        their time limit, processes that outlived a kill, bytes and inodes in `/workspace` (None where not told).
        """
        if self._seen is None:
            looked = await self.exec(LOOK, cwd="/")
            try:
                outside = await anyio.to_thread.run_sync(own_namespaces)
                self._seen = facts_of(looked.stdout.decode(errors="replace"), self._walls, outside)
            except (ValueError, KeyError) as error:
                raise WorkspaceError(f"what is running in {self.name} can't be looked at: {error}") from error
        used = await anyio.to_thread.run_sync(self._room.used)
        groups = self._room.groups
        return {
            "backend": "bubblewrap",
            **self._seen,
            **(groups.told(self._walls.caps) if groups is not None else {}),
            **self._counts,
            "workspace_bytes": None if used is None else used[0],
            "workspace_inodes": None if used is None else used[1],
        }

    async def close(self) -> None:
        """End everything, for good."""
        self._closed = True
        await self.kill()

    def _life_left(self) -> float:
        left = self._opened + self._walls.caps.lifetime_s - self._clock.monotonic()
        if self._closed or left <= 0:
            why = (
                "is closed" if self._closed else f"has lived its {self._walls.caps.lifetime_s:.0f} s (caps.lifetime_s)"
            )
            raise WorkspaceError(f"workspace {self.name} {why}: open another")
        return left

    async def _start(self, argv: Sequence[str], token: str, cwd: str, env: Mapping[str, str] | None) -> Execution:
        environment = {**base_environment(self._walls), **(env or {})}
        self._life_left()
        groups = self._room.groups
        execution = await start(
            Command(
                name=self.name,
                bwrap=self._bwrap,
                options=[*self._options, *environment_options(environment)],
                argv=launcher(self._walls, token, cwd, argv, address_space=groups is None),
                user=self._user,
                seccomp=self._seccomp,
                own_pids="pid" not in self._walls.host_namespaces,
            ),
            None if groups is None else groups.join,
        )
        self._alive.add(execution)
        self._counts["executions"] += 1
        return execution

    async def _end(self, execution: Execution) -> None:
        """Let go of an execution. Raises `WorkspaceError` when not everything of it is gone."""
        await execution.finish()
        self._alive.discard(execution)
        for pipe in (execution.stdin, execution.stdout, execution.stderr):
            pipe.close()
        if execution.survivors:
            self._counts["processes_left"] += execution.survivors
            raise WorkspaceError(
                f"{execution.survivors} processes of {self.name} are alive {KILL_DEADLINE_S:.0f} s after SIGKILL: "
                "look for processes in state D, and start no other run before they are gone"
            )


async def _feed(pipe: Pipe, data: bytes) -> None:
    with suppress(BrokenPipeError):
        await pipe.write(data)
    pipe.close()


def _after(stderr: bytes, mark: bytes) -> tuple[bytes, bool]:
    """What stands after the launcher's mark, and whether the mark is there."""
    before, found, after = stderr.partition(mark)
    return (after, True) if found else (before, False)
