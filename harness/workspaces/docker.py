"""Workspaces as containers of a Docker engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
from anyio import to_thread

from harness import environment
from harness.clock import Clock, SystemClock
from harness.errors import WorkspaceError
from harness.walls import Walls
from harness.workspaces.docker_container import (
    nothing_left,
    remove_container,
    remove_volume,
    start_container,
    wait_for_forwarder,
)
from harness.workspaces.docker_engine import Engine
from harness.workspaces.docker_facts import engine_facts, engine_guarantees
from harness.workspaces.docker_folder import make_folder, reap_folders, remove_folder
from harness.workspaces.docker_host import EngineHost, look_at
from harness.workspaces.docker_images import EngineImage, engine_image
from harness.workspaces.docker_options import create_options, exec_user
from harness.workspaces.docker_owner import LABEL_OWNER, LABEL_SEAT, LABEL_WORKSPACE, owner_gone
from harness.workspaces.docker_place import Place, fresh_place
from harness.workspaces.docker_program import Container
from harness.workspaces.docker_witness import Witness
from harness.workspaces.docker_workspace import DockerWorkspace
from harness.workspaces.images import ImageStore

__all__ = ["DockerBackend", "DockerWorkspace"]

_START_DEADLINE_S = 120.0


class DockerBackend:
    """
    The workspaces of one Docker engine, by default the one that `DOCKER_HOST` or the usual socket leads to, under the
    engine's own runtime or the one called `runtime`.

    Making one touches nothing: the engine is reached when it is first needed.
    """

    name = "docker"

    def __init__(
        self,
        *,
        url: str | None = None,
        runtime: str | None = None,
        store: ImageStore | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._engine = Engine(url)
        self._runtime = runtime if runtime is not None else environment.docker_runtime()
        self._store = store if store is not None else ImageStore()
        self._clock = clock if clock is not None else SystemClock()
        self._images: dict[str, EngineImage] = {}
        self._host: EngineHost | None = None

    async def engine(self) -> Mapping[str, str]:
        """What the engine is: its version, kernel, storage driver, security options, and the runtime used."""
        facts = engine_facts(*await self._about())
        return {**facts, "runtime": self._runtime or facts["runtime"]}

    async def image_digest(self, image: str) -> str:
        """SHA-256 of an image's content: the same after it is built or loaded again. Raises `ImageError`."""
        return (await self._image(image)).digest

    async def guarantees(self) -> Mapping[str, str | None]:
        """Each promise, with None if this engine enforces it and else why it doesn't."""
        return engine_guarantees(*await self._about())

    def options(self, walls: Walls) -> Mapping[str, Any]:
        """What the engine is asked to create for these walls; what is each workspace's own stands in braces."""
        return self._asked(create_options(walls))

    @asynccontextmanager
    async def open(self, walls: Walls, *, run: str) -> AsyncIterator[DockerWorkspace]:
        """
        A fresh container behind `walls`, labelled with the run's name, for a user that no other workspace here has.

        At the end it is removed with all that was its own, and nothing of it may live on: a process that does is a
        `WorkspaceError`, as is an engine that does not answer. Raises `ImageError` when there is no such image.
        """
        host = await self._engine_host((await self._image(walls.image)).id)
        host.check(walls, self._runtime)
        taken: frozenset[str] = frozenset()
        async with AsyncExitStack() as stack:
            while True:
                place = fresh_place(run, host, taken=taken)
                try:
                    container = await stack.enter_async_context(self._opened(walls, place))
                except _SeatTaken as error:
                    taken = error.seats
                    continue
                yield DockerWorkspace(container, walls, place, clock=self._clock, opener=self._opened)
                return

    async def reap(self) -> Sequence[str]:
        """Remove the containers, volumes and folders whose owner is dead, and return the workspaces' names."""
        wanted = {"label": LABEL_OWNER}
        found = await self._engine.call(lambda api: api.containers(all=True, filters=wanted))
        reaped, kept = set(), set()
        for item in found:
            name = item["Names"][0].lstrip("/") if item["Names"] else item["Id"]
            if owner_gone(item["Labels"][LABEL_OWNER], running=item["State"] in ("running", "paused")):
                await remove_container(self._engine, item["Id"])
                reaped.add(name)
            else:
                kept.add(name)
        volumes = await self._engine.call(lambda api: api.volumes(filters=wanted)["Volumes"])
        for item in volumes or []:
            if owner_gone(item["Labels"][LABEL_OWNER], running=item["Name"] in kept):
                await remove_volume(self._engine, item["Name"])
                reaped.add(item["Name"])
        return sorted({*reaped, *await to_thread.run_sync(reap_folders, kept)})

    async def _about(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return await self._engine.call(lambda api: (api.version(), api.info()))

    async def _image(self, name: str) -> EngineImage:
        # Looked up once: a name that is given to another image meanwhile must not change what this run is.
        if name not in self._images:
            self._images[name] = await engine_image(self._engine, self._store, name)
        return self._images[name]

    async def _engine_host(self, image: str) -> EngineHost:
        if self._host is not None:
            return self._host
        # Not to be cancelled half way: what it makes to find out would be nobody's.
        with anyio.CancelScope(shield=True):
            self._host = host = await look_at(self._engine, image)
        return host

    def _asked(self, body: dict[str, Any]) -> dict[str, Any]:
        if self._runtime:
            body["HostConfig"]["Runtime"] = self._runtime
        return body

    @asynccontextmanager
    async def _opened(self, walls: Walls, place: Place) -> AsyncIterator[Container]:
        witness: Witness | None = None
        try:
            # Not to be cancelled half way: a container that the engine is just making would be nobody's.
            with anyio.CancelScope(shield=True):
                container = await self._start(walls, place)
            witness = container.witness
            yield container
        finally:
            with anyio.CancelScope(shield=True):
                await self._end(place, witness)

    async def _start(self, walls: Walls, place: Place) -> Container:
        body = self._asked(create_options(walls, place))
        body["Image"] = (await self._image(walls.image)).id
        if place.folder is not None and not place.rest:
            await to_thread.run_sync(make_folder, place.name, place.labels[LABEL_OWNER])
        with anyio.move_on_after(_START_DEADLINE_S):
            made = await self._engine.call(lambda api: api.create_container_from_config(body, place.name)["Id"])
            if not place.rest:
                await self._check_seat(place)
            facts = await start_container(self._engine, made)
            container = Container(
                engine=self._engine,
                id=facts["Id"],
                user=exec_user(walls, place),
                pids=walls.caps.pids,
                host_pids="pid" in walls.host_namespaces,
                witness=await to_thread.run_sync(Witness.of, facts["State"]["Pid"], facts["Id"]),
            )
            host = await self._engine_host(body["Image"])
            host.check_runtime(self._runtime, facts)
            host.check_users(place.seat, place.uid, container.witness)
            if walls.network == "gateway":
                await wait_for_forwarder(container)
            return container
        raise WorkspaceError(f"the container engine did not start a container within {_START_DEADLINE_S:.0f} s")

    async def _check_seat(self, place: Place) -> None:
        """
        Raise `_SeatTaken` when another workspace of this engine has the same user. It is asked after the container was
        made: of two that are made at once at least one sees the other.
        """
        found = await self._engine.call(lambda api: api.containers(all=True, filters={"label": LABEL_SEAT}))
        mine = place.labels[LABEL_WORKSPACE]
        taken = {item["Labels"][LABEL_SEAT] for item in found if item["Labels"].get(LABEL_WORKSPACE) != mine}
        if place.seat in taken:
            raise _SeatTaken(frozenset(taken))

    async def _end(self, place: Place, witness: Witness | None) -> None:
        try:
            await remove_container(self._engine, place.name)
            if not place.rest:
                await remove_volume(self._engine, place.volume)
            await nothing_left(place.name, witness)
        finally:
            if place.folder is not None and not place.rest:
                await to_thread.run_sync(remove_folder, place.name)
            if witness is not None:
                witness.close()


class _SeatTaken(Exception):  # noqa: N818 - no error: another user is tried
    """Another workspace has this user; `seats` are all that are taken."""

    def __init__(self, seats: frozenset[str]) -> None:
        super().__init__()
        self.seats = seats
