"""
The embedded sandbox: workspaces without a container engine, by bubblewrap.

Each execution is a bwrap of its own over one host folder, so that nothing lives on from one to the next but files. What
it can't enforce on this host, `guarantees` says.
"""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from harness import environment
from harness.canonical import digest_bytes
from harness.clock import Clock, SystemClock, fresh_token
from harness.ports import Workspace
from harness.walls import Walls
from harness.workspaces.bpf import ARCHITECTURES, assemble, compile_filter
from harness.workspaces.bubblewrap_folder import Room, is_root, kill_rest, leftovers
from harness.workspaces.bubblewrap_host import engine_facts, find_bwrap, host_digest
from harness.workspaces.bubblewrap_options import (
    HOST_IMAGE,
    Root,
    base_environment,
    bwrap_options,
    check_walls,
    environment_options,
)
from harness.workspaces.bubblewrap_room import BubblewrapWorkspace
from harness.workspaces.control_groups import groups_available
from harness.workspaces.images import SEAT, ImageStore
from harness.workspaces.seccomp import profile

__all__ = ["BubblewrapBackend"]

_PER_PROCESS = (
    "control groups can't be made here (that takes root and a writable /sys/fs/cgroup), so memory is limited for each "
    "process by itself and nothing limits the sum"
)
_REAP_DEADLINE_S = 10.0
_PLAIN_FOLDER = "without root, /workspace is a folder on the host's own file system: run as root to have it limited"


@cache
def _filter() -> bytes | None:
    """The system call filter for this machine, or None where none can be made."""
    machine = platform.machine()
    return assemble(compile_filter(profile(machine), machine)) if machine in ARCHITECTURES else None


class BubblewrapBackend:
    """
    A `WorkspaceBackend`. `home` is where workspaces have their folders (by default where the platform keeps state);
    an image is a name of the image store, or `host` for this host's own `/usr`.
    """

    name = "bubblewrap"

    def __init__(
        self, *, home: Path | None = None, store: ImageStore | None = None, clock: Clock | None = None
    ) -> None:
        self._home = home
        self._store = store
        self._clock = clock if clock is not None else SystemClock()

    @property
    def home(self) -> Path:
        """The folder that holds the folders of workspaces."""
        return self._home if self._home is not None else environment.state_home() / "workspaces"

    async def engine(self) -> Mapping[str, str]:
        """
        Version of bwrap, kernel, machine, and whether we are root.

        Raises `WorkspaceError` when bwrap is missing or can't make a sandbox here, with what to do about it.
        """
        return await anyio.to_thread.run_sync(engine_facts, self._user())

    async def image_digest(self, image: str) -> str:
        """
        SHA-256 of an image's content. For `host` it covers the version and the bytes of `/usr/bin/python3` alone, which
        is weaker: the rest of `/usr` is not looked at. Raises `ImageError` for an unknown image.
        """
        if image == HOST_IMAGE:
            return await anyio.to_thread.run_sync(host_digest)
        return await anyio.to_thread.run_sync(self._images().digest, image)

    async def guarantees(self) -> Mapping[str, str | None]:
        """What is enforced here (None), and why the rest is not."""
        folder = None if is_root() else _PLAIN_FOLDER
        sums = None if await anyio.to_thread.run_sync(groups_available) else _PER_PROCESS
        calls = None if _filter() is not None else f"there is no system call filter for {platform.machine()}"
        return {
            "network": None,
            "read_only_root": None,
            "privileges": None,
            "kill": None,
            "system_calls": calls,
            "processes": None,
            "memory_total": sums,
            "swap": sums,
            "cpu": sums,
            "workspace_bytes": folder,
            "workspace_inodes": folder,
            "file_bytes": None,
            "tmp_bytes": None,
            "tmp_inodes": "bubblewrap can't limit the number of files of a memory file system",
        }

    def options(self, walls: Walls) -> Mapping[str, Any]:
        """
        What these walls become: bwrap's options (the image's and the workspace's folders as placeholders), the limits,
        the filter's digest, and the user. Raises `FenceError` for walls that bubblewrap can't have.
        """
        check_walls(walls)
        root = Root(folder=None)
        if walls.image != HOST_IMAGE:
            # A sealed root is bound as it is: only a weaker one depends on what is in the image.
            whole = walls.read_only_root and not walls.mounts
            root = Root(folder=Path("{image}") if whole else self._images().rootfs(walls.image))
        words = [*bwrap_options(walls, root, "{workspace}"), *environment_options(base_environment(walls))]
        shown = [word if isinstance(word, str) else f"sha256:{digest_bytes(word.data)}" for word in words]
        filtered = self._seccomp(walls)
        return {
            "bwrap": [word.replace(str(root.folder), "{image}") if root.folder else word for word in shown],
            "limits": {
                "processes": walls.caps.pids,
                "file_bytes": walls.caps.file_bytes,
                "open_files": walls.caps.open_files,
                "core_bytes": 0,
                "memory_bytes": walls.caps.memory_bytes,
                "cpus": walls.caps.cpus,
                "memory_and_cpus_of": "all processes together" if groups_available() else "each process",
            },
            "seccomp": None if filtered is None else digest_bytes(filtered),
            "user": SEAT,
            "workspace": {"bytes": walls.caps.workspace_bytes, "inodes": walls.caps.workspace_inodes}
            if is_root()
            else None,
        }

    @asynccontextmanager
    async def open(self, walls: Walls, *, run: str) -> AsyncIterator[Workspace]:
        """
        One fresh workspace for run `run`. When it is closed nothing of it is alive and nothing of it is on the host.

        Raises `FenceError` for walls that bubblewrap can't have, `ImageError` for an image that is not there, and
        `WorkspaceError` when the host doesn't let a workspace be made.
        """
        check_walls(walls)
        root = Root(folder=None)
        if walls.image != HOST_IMAGE:
            root = Root(folder=await anyio.to_thread.run_sync(self._images().rootfs, walls.image))
        root.check()
        room = Room(home=self.home, name=f"proctor-{fresh_token(8)}")
        workspace = BubblewrapWorkspace(
            walls=walls, root=root, room=room, bwrap=find_bwrap(), user=self._user(), seccomp=self._seccomp(walls),
            clock=self._clock,
        )  # fmt: skip
        try:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(partial(room.make, walls.caps, run))
            yield workspace
        finally:
            with anyio.move_on_after(30, shield=True):
                try:
                    await workspace.close()
                finally:
                    await anyio.to_thread.run_sync(room.remove)

    async def reap(self) -> Sequence[str]:
        """
        End and remove the workspaces whose owner is dead; says their names.

        Raises `WorkspaceError` when something of one stays.
        """
        names = []
        for room in await anyio.to_thread.run_sync(lambda: list(leftovers(self.home))):
            with anyio.move_on_after(_REAP_DEADLINE_S):
                while await anyio.to_thread.run_sync(kill_rest, room):  # noqa: ASYNC110  # the dying tell nobody
                    await anyio.sleep(0.02)
            await anyio.to_thread.run_sync(room.remove)
            names.append(room.name)
        return names

    def _images(self) -> ImageStore:
        return self._store if self._store is not None else ImageStore()

    def _user(self) -> int | None:
        return SEAT if is_root() else None

    def _seccomp(self, walls: Walls) -> bytes | None:
        return _filter() if walls.system_calls in ("listed", "traced") else None
