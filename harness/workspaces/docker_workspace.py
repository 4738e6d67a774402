"""One workspace as a container, and, after its end, what the seat left in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from anyio import to_thread
from anyio.abc import ByteStream

from harness.clock import Clock
from harness.errors import WorkspaceError
from harness.ports import Remains
from harness.walls import ExecResult, KillProof, Walls
from harness.workspaces.docker_container import end_container, seats_alive
from harness.workspaces.docker_exec import run_program, stream_program
from harness.workspaces.docker_facts import container_facts
from harness.workspaces.docker_folder import GATEWAY_PART
from harness.workspaces.docker_kill import kill_everything
from harness.workspaces.docker_place import Place
from harness.workspaces.docker_program import Container, Program
from harness.workspaces.docker_sweep import sweep

__all__ = ["DockerRemains", "DockerWorkspace", "Opener"]


class Opener(Protocol):
    """Opens a container behind these walls at a place, and removes it at the end."""

    def __call__(self, walls: Walls, place: Place) -> AbstractAsyncContextManager[Container]:
        """The container, alive inside the `async with`."""


class DockerWorkspace:
    """One container, alive. `name` is the container's; `opener` makes the container that looks at what is left."""

    def __init__(self, container: Container, walls: Walls, place: Place, *, clock: Clock, opener: Opener) -> None:
        self.name = place.name
        self.gateway: Path | None = None
        if walls.network == "gateway" and place.folder is not None:
            self.gateway = Path(place.folder) / GATEWAY_PART
        self._container = container
        self._walls = walls
        self._place = place
        self._clock = clock
        self._opener = opener
        self._over = False

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
        Run a program as the seat's user and wait for its end. Each output is cut after `output_bytes`.

        After `timeout_s` seconds, and when the caller is cancelled, everything that the seat runs here is killed but
        open streams and what other callers wait for. Raises `WorkspaceError` when the engine could not start the
        program, or is gone, and after the end.
        """
        self._check_alive()
        program = Program(argv=tuple(argv), cwd=cwd, env=env or {})
        return await run_program(
            self._container, program, stdin=stdin, timeout_s=timeout_s, output_bytes=output_bytes, clock=self._clock
        )

    def stream(self, argv: Sequence[str], *, cwd: str = "/workspace") -> AbstractAsyncContextManager[ByteStream]:
        """A long-lived program's input and standard output, as a stream; killed when the context ends."""
        self._check_alive()
        return stream_program(self._container, Program(argv=tuple(argv), cwd=cwd))

    async def sweep(self) -> int | None:
        """
        End what programs that are over have left alive, and say how many processes that were; None where nobody can
        count, and then open streams are ended too. Raises `WorkspaceError` when it can't be ended, and after the end.
        """
        self._check_alive()
        return await sweep(self._container)

    async def kill(self) -> None:
        """Kill everything that the seat runs here. Raises `WorkspaceError` when that can't be done."""
        await kill_everything(self._container)

    @asynccontextmanager
    async def remains(self) -> AsyncIterator[Remains]:
        """
        End the workspace for good, and show what the seat left in a fresh, sealed container.

        That one is there before the seat's ends, since the workspace's files live in memory while a container has them.
        Raises `WorkspaceError` when the engine can't do that, when the seat's container has ended by itself (its files
        are gone then, and an empty folder is not what the seat left), and the second time.
        """
        self._check_alive()
        self._over = True
        before = await seats_alive(self._container)
        walls = Walls(image=self._walls.image, caps=self._walls.caps, run_as_root=self._walls.run_as_root)
        place = self._place.remains()
        async with self._opener(walls, place) as holder:
            await self._check_running()
            proof = await end_container(self._container, before=before, clock=self._clock)
            yield DockerRemains(holder, walls, place, proof=proof, clock=self._clock, opener=self._opener)

    async def facts(self) -> Mapping[str, Any]:
        """What the engine says of this very container, now."""
        found = await self._container.engine.call(lambda api: api.inspect_container(self._container.id))
        members = None
        if (witness := self._container.witness) is not None:
            members = len(await to_thread.run_sync(witness.present))
        return container_facts(found, place=self._place, exec_user=self._container.user, processes=members)

    async def _check_running(self) -> None:
        state = (await self._container.engine.call(lambda api: api.inspect_container(self._container.id)))["State"]
        if not state["Running"]:
            why = "the memory was used up" if state.get("OOMKilled") else "its lifetime was over, or it was killed"
            raise WorkspaceError(
                f"workspace {self.name} ended before it was asked for what is left ({why}): what was in it is gone"
            )

    def _check_alive(self) -> None:
        if self._over:
            raise WorkspaceError(
                f"workspace {self.name} was ended by `remains()`: only what it yields can be used from then on"
            )


class DockerRemains(DockerWorkspace):
    """What the seat left: its files, read-only at /workspace, in a container in which nothing of the seat's lives."""

    def __init__(
        self, container: Container, walls: Walls, place: Place, *, proof: KillProof, clock: Clock, opener: Opener
    ) -> None:
        super().__init__(container, walls, place, clock=clock, opener=opener)
        self.proof = proof

    @asynccontextmanager
    async def remains(self) -> AsyncIterator[Remains]:
        """The same: the seat's workspace has ended already."""
        yield self
