"""Workspaces as containers of a Docker engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import ByteStream

from harness.clock import Clock, SystemClock, fresh_token
from harness.errors import WorkspaceError
from harness.ports import Remains
from harness.walls import ExecResult, KillProof, Walls
from harness.workspaces.docker_engine import Engine, NotFoundError
from harness.workspaces.docker_exec import run_program, stream_program
from harness.workspaces.docker_facts import container_facts, engine_facts, engine_guarantees
from harness.workspaces.docker_images import EngineImage, engine_image
from harness.workspaces.docker_kill import kill_everything
from harness.workspaces.docker_options import create_options, exec_user
from harness.workspaces.docker_owner import LABEL_OWNER, Witness, labels, owner_gone
from harness.workspaces.docker_program import Container, Program
from harness.workspaces.images import ImageStore
from harness.workspaces.remains import Rest

__all__ = ["DockerBackend", "DockerWorkspace"]

_START_DEADLINE_S = 120.0
_END_DEADLINE_S = 60.0
_WITNESS_S = 10.0
_STEP_S = 0.01


class DockerWorkspace:
    """One container, alive. `name` is the container's."""

    def __init__(self, container: Container, name: str, clock: Clock) -> None:
        self.name = name
        self.gateway: Path | None = None
        self._container = container
        self._clock = clock

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

        After `timeout_s` seconds, and when the caller is cancelled, everything that the seat runs here is killed.
        Raises `WorkspaceError` when the engine could not start the program, or is gone.
        """
        program = Program(argv=tuple(argv), cwd=cwd, env=env or {})
        return await run_program(
            self._container, program, stdin=stdin, timeout_s=timeout_s, output_bytes=output_bytes, clock=self._clock
        )

    def stream(self, argv: Sequence[str]) -> AbstractAsyncContextManager[ByteStream]:
        """A long-lived program's input and standard output, as a stream; killed when the context ends."""
        return stream_program(self._container, Program(argv=tuple(argv), cwd="/workspace"))

    async def sweep(self) -> int | None:
        """Kill what programs that are over have left alive, and open streams with it."""
        await kill_everything(self._container)
        return None

    @asynccontextmanager
    async def remains(self) -> AsyncIterator[Remains]:
        """What the seat left, after everything of it was killed."""
        await self.kill()
        yield Rest(self, KillProof(before=None, alive=0, witness="pid namespace", seconds=0.0))

    async def kill(self) -> None:
        """Kill everything that the seat runs here. Raises `WorkspaceError` when that can't be done."""
        await kill_everything(self._container)

    async def facts(self) -> Mapping[str, Any]:
        """What the engine says of this very container, now that it runs."""
        found = await self._container.engine.call(lambda api: api.inspect_container(self._container.id))
        members = None
        if (witness := self._container.witness) is not None:
            members = len(await to_thread.run_sync(witness.members))
        return container_facts(found, exec_user=self._container.user, processes=members)


class DockerBackend:
    """
    The workspaces of one Docker engine, by default the one that `DOCKER_HOST` or the usual socket leads to.

    Making one touches nothing: the engine is reached when it is first needed.
    """

    name = "docker"

    def __init__(self, *, url: str | None = None, store: ImageStore | None = None, clock: Clock | None = None) -> None:
        self._engine = Engine(url)
        self._store = store if store is not None else ImageStore()
        self._clock = clock if clock is not None else SystemClock()
        self._images: dict[str, EngineImage] = {}

    async def engine(self) -> Mapping[str, str]:
        """What the engine is: its version, kernel, storage driver and security options."""
        return engine_facts(*await self._about())

    async def image_digest(self, image: str) -> str:
        """SHA-256 of an image's content: the same after it is built or loaded again. Raises `ImageError`."""
        return (await self._image(image)).digest

    async def guarantees(self) -> Mapping[str, str | None]:
        """Each promise, with None if this engine enforces it and else why it doesn't."""
        return engine_guarantees(*await self._about())

    def options(self, walls: Walls) -> Mapping[str, Any]:
        """What the engine is asked to create for these walls."""
        return create_options(walls)

    @asynccontextmanager
    async def open(self, walls: Walls, *, run: str) -> AsyncIterator[DockerWorkspace]:
        """
        A fresh container behind `walls`, labelled with the run's name.

        At the end it is removed, and nothing of it may live on: a process that does is a `WorkspaceError`, as is an
        engine that does not answer. Raises `ImageError` when there is no such image.
        """
        image = await self._image(walls.image)
        name = f"proctor-{fresh_token(8)}"
        body = {**create_options(walls), "Image": image.id, "Labels": dict(labels(run, name))}
        witness: Witness | None = None
        try:
            # Not to be cancelled half way: a container that the engine is just making would be nobody's.
            with anyio.CancelScope(shield=True):
                container = await self._start(name, body, walls)
            witness = container.witness
            yield DockerWorkspace(container, name, self._clock)
        finally:
            with anyio.CancelScope(shield=True):
                await self._end(name, witness)

    async def reap(self) -> Sequence[str]:
        """Remove the containers whose owner is dead, and return their names."""
        wanted = {"label": LABEL_OWNER}
        found = await self._engine.call(lambda api: api.containers(all=True, filters=wanted))
        reaped = []
        for item in found:
            if owner_gone(item["Labels"][LABEL_OWNER], running=item["State"] in ("running", "paused")):
                await self._remove_in_time(item["Id"])
                reaped.append(item["Names"][0].lstrip("/") if item["Names"] else item["Id"])
        return sorted(reaped)

    async def _about(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return await self._engine.call(lambda api: (api.version(), api.info()))

    async def _image(self, name: str) -> EngineImage:
        # Looked up once: a name that is given to another image meanwhile must not change what this run is.
        if name not in self._images:
            self._images[name] = await engine_image(self._engine, self._store, name)
        return self._images[name]

    async def _start(self, name: str, body: Mapping[str, Any], walls: Walls) -> Container:
        def start(api: Any) -> Mapping[str, Any]:
            made = api.create_container_from_config(dict(body), name)["Id"]
            api.start(made)
            found: Mapping[str, Any] = api.inspect_container(made)
            return found

        with anyio.move_on_after(_START_DEADLINE_S):
            facts = await self._engine.call(start)
            if not facts["State"]["Running"]:
                raise WorkspaceError(f"the container ended at once: {facts['State']['Error'] or facts['State']}")
            witness = await to_thread.run_sync(Witness.of, facts["State"]["Pid"], facts["Id"])
            return Container(
                engine=self._engine,
                id=facts["Id"],
                user=exec_user(walls),
                pids=walls.caps.pids,
                host_pids="pid" in walls.host_namespaces,
                witness=witness,
            )
        raise WorkspaceError(f"the container engine did not start a container within {_START_DEADLINE_S:.0f} s")

    async def _end(self, name: str, witness: Witness | None) -> None:
        try:
            await self._remove_in_time(name)
            await _nothing_left(name, witness)
        finally:
            if witness is not None:
                witness.close()

    async def _remove_in_time(self, name: str) -> None:
        with anyio.move_on_after(_END_DEADLINE_S):
            await self._remove(name)
            return
        raise WorkspaceError(f"container {name} could not be removed within {_END_DEADLINE_S:.0f} s: remove it by hand")

    async def _remove(self, name: str) -> None:
        def remove(api: Any) -> None:
            api.remove_container(name, force=True, v=True)

        while True:
            try:
                return await self._engine.call(remove)
            except NotFoundError:
                return None
            except WorkspaceError as error:
                # Somebody else is at it: wait until it is done.
                if "already in progress" not in str(error):
                    raise
            await anyio.sleep(_STEP_S)


async def _nothing_left(name: str, witness: Witness | None) -> None:
    """Look from outside whether anything of a removed container lives on: the engine's word is not enough."""
    if witness is None:
        return
    left: list[int] = []
    with anyio.move_on_after(_WITNESS_S):
        while left := await to_thread.run_sync(witness.members):  # noqa: ASYNC110 - the kernel sends no event
            await anyio.sleep(_STEP_S)
        return
    raise WorkspaceError(f"{len(left)} processes of container {name} live on after its removal: {left[:10]}")
