"""A workspace's folder on the host: made with its owner named beside it, limited where the host allows, and removed."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.clock import fresh_token
from harness.errors import WorkspaceError
from harness.walls import Caps
from harness.workspaces.bubblewrap_owner import Claim, claim, claims
from harness.workspaces.control_groups import Groups, groups_available
from harness.workspaces.images import SEAT
from harness.workspaces.namespaces import kill_by_name

__all__ = ["Room", "is_root", "kill_rest", "leftovers"]

_MS_NOSUID_NODEV = 2 | 4
_MS_NOEXEC = 8
_MNT_DETACH, _UMOUNT_NOFOLLOW = 2, 8


def is_root() -> bool:
    """Whether this process may mount, and drops to a seat's user before it starts anything of a seat's."""
    return os.geteuid() == 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """
    The place of one workspace below `home`: `NAME/files` becomes its `/workspace`, `NAME/gateway` is shown to it where
    there is one, `NAME.json` tells its owner.

    As root each folder is a memory file system of its own, so that its bytes and inodes are limited and what a
    workspace can read of its mounts names no place of the host's; and `user` is the workspace's own on the host.
    Otherwise that is None: it has the user that we are.
    """

    home: Path
    name: str
    user: int | None = None

    @classmethod
    def make(cls, home: Path, caps: Caps, run: str, *, gateway: bool) -> Room:
        """A fresh one. Raises `WorkspaceError` when the host doesn't let us."""
        name = f"proctor-{fresh_token(8)}"
        room = cls(home=home, name=name)
        try:
            home.mkdir(parents=True, exist_ok=True)
            if is_root():
                _check_passable(home)
            room = cls(home=home, name=name, user=claim(home, name, run, own_user=is_root()))
            room._furnish(caps, gateway=gateway)
        except OSError as error:
            room.remove()
            raise WorkspaceError(
                f"no folder for a workspace can be made below {home}: {error}. Name another with PROCTOR_HOME"
            ) from error
        return room

    @property
    def groups(self) -> Groups | None:
        """The control groups that the workspace's processes are in, where there can be any."""
        return Groups(name=self.name) if groups_available() else None

    @property
    def rest_groups(self) -> Groups | None:
        """
        Those of the room that shows what is left, made when there is one: the files in memory stay counted in the
        first, and may have filled them.
        """
        return Groups(name=f"{self.name}-rest") if groups_available() else None

    @property
    def files(self) -> Path:
        """The folder that programs in the workspace see as `/workspace`."""
        return self.home / self.name / "files"

    @property
    def gateway(self) -> Path:
        """
        The folder that they see as `/run/gateway`, where there is one. Nobody but us and the workspace's own user gets
        into it.
        """
        return self.home / self.name / "gateway"

    def remove(self) -> None:
        """Unmount and remove it. Raises `WorkspaceError` when something of it stays."""
        for groups in (self.groups, self.rest_groups):
            if groups is not None:
                groups.remove()
        for folder in (self.files, self.gateway):
            if os.path.ismount(folder):
                _unmount(folder)
        if self.files.parent.exists():
            _empty(self.files.parent)
            self.files.parent.rmdir()
        Claim.file(self.home, self.name).unlink(missing_ok=True)

    def show_rest(self, caps: Caps) -> None:
        """
        Make ready for the room that shows what is left: its user gets the way into `files` back, which a seat may have
        taken away from itself, and the room its own groups. Raises `WorkspaceError` when the host doesn't let us.
        """
        try:
            self.files.chmod(0o700)
            if self.rest_groups is not None and not self.rest_groups.exist():
                self.rest_groups.make(caps)
        except OSError as error:
            raise WorkspaceError(f"what is left of {self.name} can't be shown: {error}") from error

    def used(self) -> tuple[int, int] | None:
        """Bytes and inodes in use, where the folder is a file system of its own."""
        if not os.path.ismount(self.files):
            return None
        info = os.statvfs(self.files)
        return (info.f_blocks - info.f_bfree) * info.f_frsize, info.f_files - info.f_ffree

    def _furnish(self, caps: Caps, *, gateway: bool) -> None:
        self.files.parent.mkdir(mode=0o711)
        self.files.parent.chmod(0o711)
        for folder in (self.files, self.gateway) if gateway else (self.files,):
            folder.mkdir(mode=0o700)
        if self.user is not None:
            size = f"size={caps.workspace_bytes},nr_inodes={caps.workspace_inodes}"
            _mount(self.files, f"{size},mode=0700,uid={self.user},gid={self.user}")
            if gateway:
                size = "size=64k,nr_inodes=64"
                _mount(self.gateway, f"{size},mode=0750,uid=0,gid={self.user}", flags=_MS_NOSUID_NODEV | _MS_NOEXEC)
        if self.groups is not None:
            self.groups.make(caps)


def leftovers(home: Path) -> Iterator[Room]:
    """The workspaces below `home` whose owner is dead."""
    for found in claims(home):
        if not found.owner.alive:
            yield Room(home=home, name=found.name, user=found.user)


def kill_rest(room: Room) -> int:
    """SIGKILL what is left of a dead owner's workspace, by its name and by its groups; says how much there was."""
    found = kill_by_name(room.name)
    for groups in (room.groups, room.rest_groups):
        for pid in [] if groups is None else groups.members():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            found += 1
    return found


def _check_passable(home: Path) -> None:
    for folder in (home, *home.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            raise WorkspaceError(
                f"{folder} can't be passed by the users of workspaces ({SEAT} and following): `chmod o+x {folder}`, or "
                "give PROCTOR_HOME another folder"
            )


def _mount(target: Path, options: str, *, flags: int = _MS_NOSUID_NODEV) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"proctor", os.fsencode(target), b"tmpfs", flags, options.encode()) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mounting a memory file system: {os.strerror(code)}", str(target))


def _unmount(target: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for flags in (_UMOUNT_NOFOLLOW, _UMOUNT_NOFOLLOW | _MNT_DETACH):
        if libc.umount2(os.fsencode(target), flags) == 0:
            return
    code = ctypes.get_errno()
    raise WorkspaceError(f"{target} can't be unmounted: {os.strerror(code)}. Do it by hand")


def _empty(folder: Path) -> None:
    """
    Remove everything in `folder`, which nothing alive can reach. A seat may have nested folders deeper than any path is
    long, or taken its own rights to them away: each is opened up, and what is in it moved to the top before it goes.
    """
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    token = fresh_token()  # so that no name of the seat's can be in the way
    names = (f"{token}-{number}" for number in itertools.count())
    try:
        while entries := _entries(top):
            for name, is_folder in entries:
                if is_folder:
                    _flatten(top, name, names)
                else:
                    os.unlink(name, dir_fd=top)
    finally:
        os.close(top)


def _flatten(top: int, name: str, names: Iterator[str]) -> None:
    """Remove the folder `name` after moving the folders in it to the top, under fresh names."""
    os.chmod(name, 0o700, dir_fd=top)  # below a descriptor
    below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
    try:
        for inner, is_folder in _entries(below):
            if is_folder:
                os.chmod(inner, 0o700, dir_fd=below)  # likewise
                os.rename(inner, next(names), src_dir_fd=below, dst_dir_fd=top)  # likewise
            else:
                os.unlink(inner, dir_fd=below)
    finally:
        os.close(below)
    os.rmdir(name, dir_fd=top)


def _entries(folder: int) -> list[tuple[str, bool]]:
    with os.scandir(folder) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
