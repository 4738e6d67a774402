"""What the tests of the container engine share: a room of its, and what the engine and the host still have of one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from harness.environment import state_home
from harness.walls import Walls
from harness.workspaces.docker import DockerBackend, DockerWorkspace
from harness.workspaces.docker_owner import LABEL_WORKSPACE

__all__ = ["left_of", "room"]


@asynccontextmanager
async def room(backend: DockerBackend, image: str, **changes: object) -> AsyncIterator[DockerWorkspace]:
    """A workspace behind sealed walls, but for the changes."""
    async with backend.open(replace(Walls(image=image), **changes), run="docker-tests") as workspace:
        yield workspace


async def left_of(backend: DockerBackend, name: str) -> list[str]:
    """What the engine and the host still have of workspace `name`."""
    wanted = {"label": f"{LABEL_WORKSPACE}={name}"}
    containers = await backend._engine.call(lambda api: api.containers(all=True, filters=wanted))
    volumes = await backend._engine.call(lambda api: api.volumes(filters=wanted)["Volumes"] or [])
    folders = list((state_home() / "docker").glob(f"*{name}*"))
    found = [item["Names"][0] for item in containers] + [item["Name"] for item in volumes]
    return [*found, *(str(path) for path in folders)]
