"""
The host that an engine runs on, as far as a workspace depends on it: whose users those of a container are, and whether
the engine sees the folders of this host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from harness.clock import fresh_token
from harness.errors import WorkspaceError
from harness.walls import Walls
from harness.workspaces.docker_engine import Engine
from harness.workspaces.docker_folder import folder_of, make_folder, remove_folder
from harness.workspaces.docker_owner import LABEL_OWNER, labels
from harness.workspaces.docker_witness import Witness
from harness.workspaces.images import SEATS

__all__ = ["EngineHost", "look_at", "option_names", "product_of"]

_REMAPPED = re.compile(r"/(\d+)\.(\d+)/*$")


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineHost:
    """
    An engine's host. User 0 of a container is `first_uid` there, group 0 `first_gid`; `rootless` is an engine whose
    host is itself a user namespace, so that numbers seen from here differ. `shares_files`: it can show folders of ours.
    """

    url: str
    product: str
    first_uid: int
    first_gid: int
    rootless: bool
    runtimes: frozenset[str]
    shares_files: bool

    def check(self, walls: Walls, runtime: str | None) -> None:
        """Raise `WorkspaceError` when this engine can't give what is asked for."""
        if self.product != "docker":
            # Podman 4.3 makes the workspace's volume without its limits, ignores the runtime asked for, knows no limit
            # of files for a folder in memory, and takes a filter of system calls only as a path: the walls are not up.
            raise WorkspaceError(
                f"the engine at {self.url} is {self.product}, which accepts walls over Docker's interface and leaves "
                "some of them out: use Docker's own engine, or the bubblewrap backend"
            )
        if runtime and runtime not in self.runtimes:
            raise WorkspaceError(
                f"the container engine at {self.url} has no runtime {runtime!r}. It has: "
                f"{', '.join(sorted(self.runtimes))}. Add it to the engine's configuration, or choose one of these "
                "with PROCTOR_DOCKER_RUNTIME"
            )
        if walls.network == "gateway" and not self.shares_files:
            raise WorkspaceError(
                f"the container engine at {self.url} does not see this host's folders, so a workspace on it can't be "
                "given the gateway's socket: use an engine on this machine, or the bubblewrap backend"
            )

    def check_runtime(self, runtime: str | None, running: Mapping[str, Any]) -> None:
        """Raise `WorkspaceError` unless a container runs, by its inspection, under the runtime that was asked for."""
        found = running["HostConfig"].get("Runtime")
        if runtime and found != runtime:
            raise WorkspaceError(
                f"the container engine at {self.url} accepted the runtime {runtime!r} and runs the workspace under "
                f"{found!r}: choose its default runtime in the engine's own configuration instead"
            )

    def check_users(self, seat: str, uid: str, witness: Witness | None) -> None:
        """
        Raise `WorkspaceError` unless the kernel has a container's user `seat` as `uid`, for whom its workspace is.
        Where nobody can look, or not in the same numbers, there is nothing to compare.
        """
        if witness is None or self.rootless:
            return
        if (found := witness.outside(int(seat))) != int(uid):
            raise WorkspaceError(
                f"the container engine at {self.url} runs user {seat} of a container as {found} on its host: expected "
                f"{uid}. Users must be mapped in one piece that has the numbers up to {SEATS[-1]}"
            )


async def look_at(engine: Engine, image: str) -> EngineHost:
    """Ask an engine what its host is, and try whether it sees a folder made here. Raises `WorkspaceError`."""
    version, info = await engine.call(lambda api: (api.version(), api.info()))
    options = option_names(info)
    first_uid, first_gid = _first_users(info) if "userns" in options else (0, 0)
    return EngineHost(
        url=engine.url,
        product=product_of(version),
        first_uid=first_uid,
        first_gid=first_gid,
        rootless="rootless" in options,
        runtimes=frozenset(info.get("Runtimes") or {}),
        shares_files=await _shares_files(engine, image),
    )


def product_of(version: Mapping[str, Any]) -> str:
    """Whose engine answers: `docker`, or `podman`, which speaks the same interface."""
    components = version.get("Components") or []
    return "podman" if any(str(part["Name"]).startswith("Podman") for part in components) else "docker"


def option_names(info: Mapping[str, Any]) -> frozenset[str]:
    """The names of an engine's security options: `seccomp`, `userns`, `rootless`, ..."""
    words = (str(option).split(",")[0] for option in info.get("SecurityOptions") or [])
    return frozenset(word.removeprefix("name=") for word in words)


def _first_users(info: Mapping[str, Any]) -> tuple[int, int]:
    """An engine that maps users keeps everything in a folder named by the first of them."""
    found = _REMAPPED.search(str(info.get("DockerRootDir")))
    if found is None:
        raise WorkspaceError(
            f"the container engine maps users, but its folder {info.get('DockerRootDir')!r} does not say from which "
            "number on: expected a name such as 100000.100000"
        )
    return int(found[1]), int(found[2])


async def _shares_files(engine: Engine, image: str) -> bool:
    """Whether the engine finds a folder that was just made here: it is asked to make a container that never starts."""
    name = f"proctor-look-{fresh_token(8)}"
    marks = labels("look", name, "none")
    folder = folder_of(name)
    mount = {"Type": "bind", "Source": folder, "Target": "/mnt", "ReadOnly": True}
    body = {"Image": image, "Cmd": ["true"], "Labels": dict(marks), "HostConfig": {"Mounts": [mount]}}

    def make(api: Any) -> None:
        made = api.create_container_from_config(body, name)["Id"]
        api.remove_container(made, force=True, v=True)

    try:
        await to_thread.run_sync(make_folder, name, marks[LABEL_OWNER])
        await engine.call(make)
    except WorkspaceError as error:
        if folder not in str(error):
            raise
        return False
    finally:
        await to_thread.run_sync(remove_folder, name)
    return True
