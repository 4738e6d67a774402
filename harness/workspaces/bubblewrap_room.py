"""A workspace made of bubblewrap executions over one folder, and what is left of it when it has ended."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
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
from harness.workspaces.bubblewrap_filter import seccomp_filter
from harness.workspaces.bubblewrap_folder import Room
from harness.workspaces.bubblewrap_launcher import launcher, marker
from harness.workspaces.bubblewrap_options import (
    Option,
    Places,
    Root,
    base_environment,
    bwrap_options,
    environment_options,
)
from harness.workspaces.bubblewrap_run import (
    KILL_DEADLINE_S,
    Command,
    Execution,
    UnstartableError,
    spawn,
)
from harness.workspaces.bubblewrap_streams import Kept, Program, Run
from harness.workspaces.control_groups import Groups
from harness.workspaces.namespaces import members

__all__ = ["BubblewrapRemains", "BubblewrapWorkspace", "Premises"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Premises:
    """What a workspace is made of: walls, root file system, place and control groups on the host, and the program."""

    walls: Walls
    root: Root
    room: Room
    bwrap: str
    groups: Groups | None
    clock: Clock

    def options(self, *, ended: bool) -> list[Option]:
        """The options of bwrap for every execution."""
        gateway = str(self.room.gateway) if self.walls.network == "gateway" else None
        return bwrap_options(
            self.walls, self.root, Places(workspace=str(self.room.files), gateway=gateway, ended=ended)
        )


class BubblewrapWorkspace:
    """A `Workspace`. Programs of two executions share its files and nothing else, not even sight of each other."""

    def __init__(self, premises: Premises, *, ended: bool = False) -> None:
        self.name = premises.room.name
        self.gateway: Path | None = premises.room.gateway if premises.walls.network == "gateway" else None
        self._premises = premises
        self._walls = premises.walls
        self._room = premises.room
        self._clock = premises.clock
        self._options = premises.options(ended=ended)
        self._opened = self._clock.monotonic()
        self._alive: set[Execution] = set()
        self._over = ""
        self._closed = False
        self._seen: Mapping[str, Any] | None = None
        self._counts = {"executions": 0, "timed_out": 0, "processes_left": 0, "swept": 0}

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
        affair: status 127 or 126; so is a workspace that has no memory left to start one: 137. One that `kill` ended
        before it began has no status.
        """
        began = self._clock.monotonic()
        limit = min(timeout_s, self._life_left())
        token = fresh_token(8)
        starved = self._starved()
        try:
            execution = self._spawn(argv, token, cwd, env)
        except UnstartableError as error:
            said = f"{error}\n".encode("utf-8", "backslashreplace")
            return ExecResult(stdout=b"", stderr=said, status=126, seconds=self._clock.monotonic() - began)
        run = Run(execution, marker(token), output_bytes)
        try:
            await self._begin(execution)
            await run.to_end(stdin, limit)
        finally:
            await self._end(execution)
        self._counts["timed_out"] += run.timed_out
        return run.result(self._clock.monotonic() - began, starved=self._starved() > starved)

    @asynccontextmanager
    async def stream(self, argv: Sequence[str], *, cwd: str = "/workspace") -> AsyncIterator[ByteStream]:
        """A program that stays, as a stream of its input and output. It is ended when the block is left."""
        try:
            execution = self._spawn(argv, fresh_token(8), cwd, None)
        except UnstartableError as error:
            raise WorkspaceError(f"a program to stream can't be started: {error}") from error
        try:
            await self._begin(execution)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(Kept(0).fill, execution.stderr)
                tasks.start_soon(execution.wait)
                try:
                    yield Program(execution)
                finally:
                    await execution.finish()
                    tasks.cancel_scope.cancel()
        finally:
            await self._end(execution)

    async def sweep(self) -> int | None:
        """0: what a program leaves alive is ended with it, since each has a process tree of its own."""
        self._life_left()
        return 0

    async def kill(self) -> None:
        """End every program that is alive in the workspace. Its files stay."""
        with anyio.CancelScope(shield=True):
            for execution in list(self._alive):
                await execution.kill()

    @asynccontextmanager
    async def remains(self) -> AsyncIterator[Remains]:
        """
        End the workspace for good, and look from outside whether anything of it is alive; then a sealed room over the
        same folder, which nobody can write any more. Raises `WorkspaceError` when it is closed.
        """
        if self._closed:
            self._life_left()
        self._over = "has ended: what was left is in its `remains`"
        proof = await self._ended()
        walls = Walls(image=self._walls.image, caps=self._walls.caps, run_as_root=self._walls.run_as_root)
        await anyio.to_thread.run_sync(self._room.show_rest, walls.caps)
        rest = BubblewrapRemains(replace(self._premises, walls=walls, groups=self._room.rest_groups), proof)
        try:
            yield rest
        finally:
            await rest.close()

    async def facts(self) -> Mapping[str, Any]:
        """
        What the kernel says of a program in this workspace, and what was observed so far: executions, how many met
        their time limit, processes that outlived a kill, bytes and inodes in `/workspace` (None where not told), and
        the user that it has on the host (None where that is our own).
        """
        if self._seen is None:
            looked = await self.exec(LOOK, cwd="/")
            try:
                outside = await anyio.to_thread.run_sync(own_namespaces)
                self._seen = facts_of(looked.stdout.decode(errors="replace"), self._walls, outside, self.gateway)
            except (ValueError, KeyError) as error:
                raise WorkspaceError(f"what is running in {self.name} can't be looked at: {error}") from error
        used = await anyio.to_thread.run_sync(self._room.used)
        groups = self._premises.groups
        return {
            "backend": "bubblewrap",
            **self._seen,
            **(groups.told(self._walls.caps) if groups is not None else {}),
            **self._counts,
            "host_user": self._room.user,
            "workspace_bytes": None if used is None else used[0],
            "workspace_inodes": None if used is None else used[1],
        }

    async def close(self) -> None:
        """End everything, for good."""
        self._closed, self._over = True, "is closed"
        await self.kill()

    async def _ended(self) -> KillProof:
        """Everything is ended, and each process namespace that was held before is looked through after."""
        began = self._clock.monotonic()
        with anyio.CancelScope(shield=True):
            running = list(self._alive)
            held = [witness for execution in running if (witness := execution.witness()) is not None]
            spaces = [witness.namespace for witness in held]
            reapers = {witness.first for witness in held}  # bwrap's own, and none of the seat's
            try:
                before = len(set(await anyio.to_thread.run_sync(members, spaces)) - reapers)
                await self.kill()
                alive = len(await anyio.to_thread.run_sync(members, spaces))
            finally:
                for witness in held:
                    os.close(witness.hold)
        outlived = sum(execution.survivors for execution in running)
        return KillProof(
            before=before,
            alive=max(alive, outlived),
            witness="pid namespace",
            seconds=self._clock.monotonic() - began,
        )

    def _life_left(self) -> float:
        left = self._opened + self._walls.caps.lifetime_s - self._clock.monotonic()
        if self._over or left <= 0:
            why = self._over or f"has lived its {self._walls.caps.lifetime_s:.0f} s (caps.lifetime_s)"
            raise WorkspaceError(f"workspace {self.name} {why}: open another")
        return left

    def _spawn(self, argv: Sequence[str], token: str, cwd: str, env: Mapping[str, str] | None) -> Execution:
        environment = {**base_environment(self._walls), **(env or {})}
        self._life_left()
        execution = spawn(
            Command(
                name=self.name,
                token=token,
                bwrap=self._premises.bwrap,
                options=[*self._options, *environment_options(environment)],
                argv=launcher(self._walls, token, cwd, argv, address_space=self._premises.groups is None),
                user=self._room.user,
                seccomp=seccomp_filter(self._walls.system_calls),
                own_pids="pid" not in self._walls.host_namespaces,
            )
        )
        # Known from its first moment on, so that whoever ends the workspace now ends this too.
        self._alive.add(execution)
        self._counts["executions"] += 1
        return execution

    def _starved(self) -> int:
        return 0 if self._premises.groups is None else self._premises.groups.starved()

    async def _begin(self, execution: Execution) -> None:
        groups = self._premises.groups
        await execution.begin(None if groups is None else groups.join)

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


class BubblewrapRemains(BubblewrapWorkspace):
    """What is left of a workspace: `/workspace` can only be read, and `proof` says how everything was ended."""

    def __init__(self, premises: Premises, proof: KillProof) -> None:
        super().__init__(premises, ended=True)
        self.proof = proof

    @asynccontextmanager
    async def remains(self) -> AsyncIterator[Remains]:
        """The same room: it has ended already."""
        yield self
