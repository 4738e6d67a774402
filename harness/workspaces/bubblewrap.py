"""
The embedded sandbox: workspaces without a container engine, by bubblewrap.

Each execution is a bwrap of its own over one host folder, so that nothing lives on from one to the next but files. What
it can't enforce on this host, `guarantees` says.
"""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from harness import environment
from harness.canonical import digest_bytes, digest_json
from harness.clock import Clock, SystemClock
from harness.ports import Workspace
from harness.walls import Walls
from harness.workspaces.bubblewrap_filter import seccomp_filter
from harness.workspaces.bubblewrap_folder import Room, is_root, kill_rest, leftovers
from harness.workspaces.bubblewrap_host import engine_facts, find_bwrap, host_digest
from harness.workspaces.bubblewrap_options import (
    HOST_IMAGE,
    Places,
    Root,
    base_environment,
    bwrap_options,
    check_walls,
    environment_options,
)
from harness.workspaces.bubblewrap_room import BubblewrapWorkspace, Premises
from harness.workspaces.control_groups import groups_available
from harness.workspaces.forwarding import forwarder_argv
from harness.workspaces.images import SEAT, SEATS, ImageStore

__all__ = ["BubblewrapBackend"]

_INODES = (
    "bubblewrap can't limit the number of files of a memory file system that is made anew for each execution; where "
    "control groups limit memory they limit this too"
)
_KEEPER = (
    "process 1 is bwrap itself, of the seat's own user: its environment, command line and descriptors tell nothing, "
    "but a seat can write into its memory and so forge the status of its own program, and of no other"
)
_FORWARDER = (
    "the forwarder runs as the seat's own user: a seat can end it, and then reaches no model from that execution"
)
_PER_PROCESS = (
    "control groups can't be made here (that takes root and a writable /sys/fs/cgroup), so the address space of each "
    "process is limited by itself and nothing limits the sum, or memory that no process has mapped"
)
_REAP_DEADLINE_S = 10.0
_ONE_USER = "without root, every workspace has the user that runs Proctor: run as root to have one for each"
_PLAIN_FOLDER = "without root, /workspace is a folder on the host's own file system: run as root to have it limited"


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
        no_filter = f"there is no system call filter for {platform.machine()}"
        always = (
            "network", "processes", "pids", "root_read_only", "capabilities", "new_privileges", "environment", "kill",
            "file_bytes", "open_files", "core_bytes", "tmp_bytes", "shm_bytes", "memory_process",
        )  # fmt: skip
        return {
            **dict.fromkeys(always),
            "system_calls": None if seccomp_filter("listed") is not None else no_filter,
            "memory_total": sums,
            "swap": sums,
            "cpu": sums,
            "user_apart": None if is_root() else _ONE_USER,
            "keeper_apart": _KEEPER,
            "forwarder_apart": _FORWARDER,
            "workspace_bytes": folder,
            "workspace_inodes": folder,
            "tmp_inodes": _INODES,
            "shm_inodes": _INODES,
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
        gateway = "{gateway}" if walls.network == "gateway" else None
        places = Places(workspace="{workspace}", gateway=gateway)
        words = [*bwrap_options(walls, root, places), *environment_options(base_environment(walls))]
        shown = [word if isinstance(word, str) else f"sha256:{digest_bytes(word.data)}" for word in words]
        filtered = seccomp_filter(walls.system_calls)
        return {
            "bwrap": [word.replace(str(root.folder), "{image}") if root.folder else word for word in shown],
            "limits": {
                "processes": walls.caps.pids,
                "file_bytes": walls.caps.file_bytes,
                "open_files": walls.caps.open_files,
                "core_bytes": walls.caps.core_bytes,
                "memory_bytes": walls.caps.memory_bytes,
                "cpus": walls.caps.cpus,
                "memory_and_cpus_of": "all processes together" if groups_available() else "each process",
            },
            "seccomp": None if filtered is None else digest_bytes(filtered),
            "forwarder": digest_json(forwarder_argv(walls.caps.lifetime_s)) if gateway else None,
            "user": SEAT,
            "host_user": f"one of {SEATS[0]} to {SEATS[-1]}" if is_root() else "the one that runs Proctor",
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
        bwrap = find_bwrap()
        make = partial(Room.make, self.home, walls.caps, run, gateway=walls.network == "gateway")
        with anyio.CancelScope(shield=True):
            room = await anyio.to_thread.run_sync(make)
        workspace: BubblewrapWorkspace | None = None
        try:
            workspace = BubblewrapWorkspace(
                Premises(walls=walls, root=root, room=room, bwrap=bwrap, groups=room.groups, clock=self._clock)
            )
            yield workspace
        finally:
            with anyio.move_on_after(30, shield=True):
                try:
                    if workspace is not None:
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
