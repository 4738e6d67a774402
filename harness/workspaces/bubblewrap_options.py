"""Walls as the options of `bwrap`: pure, but for a look at which of its file names a kernel has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from harness.errors import FenceError, ImageError
from harness.walls import GATEWAY_FOLDER, Walls
from harness.workspaces.images import KEEPER, SEAT, SEAT_PATH

__all__ = [
    "HOST_IMAGE",
    "Option",
    "Places",
    "Root",
    "SmallFile",
    "base_environment",
    "bwrap_options",
    "check_walls",
    "environment_options",
]

HOST_IMAGE = "host"
"""The image name that stands for this host's own `/usr`."""

HOME = "/workspace"

# Files of /proc that tell of the host and that a program has no need of. A masked one opens and has no bytes.
MASKED = (
    "buddyinfo", "bus/pci/devices", "cmdline", "config.gz", "crypto", "devices", "diskstats", "interrupts", "iomem",
    "ioports", "kallsyms", "kcore", "key-users", "keys", "latency_stats", "loadavg", "modules", "pagetypeinfo",
    "partitions", "sched_debug", "schedstat", "slabinfo", "softirqs", "swaps", "sysrq-trigger", "timer_list",
    "vmallocinfo", "vmstat", "zoneinfo",
)  # fmt: skip

_MADE = frozenset({"/workspace", "/tmp", "/dev", "/proc"})  # noqa: S108  # mount points in the workspace
_RUN_BYTES = 64 << 10
_OWN = (
    ("ipc", "--unshare-ipc"),
    ("uts", "--unshare-uts"),
    ("cgroup", "--unshare-cgroup-try"),
    ("pid", "--unshare-pid"),
)
_HOST_LINKS = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")
_ETC = {
    "passwd": f"root:x:0:0:root:/:/bin/sh\nkeeper:x:{KEEPER}:{KEEPER}::/:/bin/false\n"
    f"seat:x:{SEAT}:{SEAT}:seat:{HOME}:/bin/sh\n",
    "group": f"root:x:0:\nkeeper:x:{KEEPER}:\nseat:x:{SEAT}:\n",
    "hosts": "127.0.0.1 localhost seat\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Root:
    """Where a workspace's root file system comes from: a folder of the image store, or None for the host's `/usr`."""

    folder: Path | None

    def check(self) -> None:
        """Raises `ImageError` when the mount points that every workspace needs are not in the image."""
        if self.folder is None:
            return
        lacks = [name for name in ("workspace", "tmp", "dev", "proc", "run") if not (self.folder / name).is_dir()]
        if lacks or not (self.folder / "bin" / "sh").exists():
            raise ImageError(
                f"the image's root {self.folder} has no {', '.join(lacks) or 'bin/sh'}: expected the folders "
                "workspace, tmp, dev, proc and run, and a shell. Build it again with `proctor image build`."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """
    The host's folders that a workspace shows: `workspace` as /workspace, which nobody can write any more once it has
    `ended`, and `gateway`, where its walls have that network.
    """

    workspace: str
    gateway: str | None = None
    ended: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SmallFile:
    """A small file that is handed to bwrap through a descriptor, in place of an option's argument."""

    data: bytes


Option: TypeAlias = str | SmallFile
"""One word of the command line; a `SmallFile` becomes the number of a descriptor that holds it."""


def check_walls(walls: Walls) -> None:
    """Raises `FenceError` for walls that bubblewrap can't be made to have."""
    if walls.network == "bridge":
        raise FenceError(
            "bubblewrap has no network 'bridge': expected 'none' or 'gateway', or 'host' as a positive control"
        )
    if walls.new_privileges and not (walls.run_as_root and walls.keep_capabilities):
        raise FenceError(
            "bubblewrap always sets no-new-privileges, so new_privileges = True can't be had by itself: measure this "
            "weakening with the container backend"
        )
    if not walls.keeper_apart:
        raise FenceError(
            "bubblewrap's first process is bwrap itself, always of the seat's own user, so keeper_apart = False takes "
            "nothing down: measure this weakening with the container backend"
        )
    for mount in walls.mounts:
        if not mount.source.startswith("/") or not mount.target.startswith("/"):
            raise FenceError(f"mount {mount.source!r} at {mount.target!r}: expected two absolute paths")


def bwrap_options(walls: Walls, root: Root, places: Places) -> list[Option]:
    """
    The options of every execution in a workspace, in the order bwrap carries them out, but for the environment, which
    is empty. Raises `FenceError` for walls that can't be had.
    """
    check_walls(walls)
    return [
        *_namespaces(walls),
        *_root(walls, root),
        *_kernel_files(walls),
        *_room(walls, places),
        "--clearenv",
        "--chdir",
        "/",
    ]


def environment_options(environment: Mapping[str, str]) -> list[Option]:
    """The options that give a program its variables."""
    return [word for name, value in sorted(environment.items()) for word in ("--setenv", name, value)]


def base_environment(walls: Walls) -> dict[str, str]:
    """What every program in a workspace finds in its environment, and nothing of the host's."""
    return {"HOME": HOME, "LANG": "C.UTF-8", "PATH": SEAT_PATH, **walls.environment}


def _namespaces(walls: Walls) -> Iterator[str]:
    yield "--unshare-user"
    if walls.network != "host":
        yield "--unshare-net"
    for name, option in _OWN:
        if name not in walls.host_namespaces:
            yield option
    if "uts" not in walls.host_namespaces:
        yield from ("--hostname", "seat")
    user = "0" if walls.run_as_root else str(SEAT)
    yield from ("--uid", user, "--gid", user)
    added = ["ALL"] if walls.keep_capabilities else [f"CAP_{name.removeprefix('CAP_')}" for name in walls.capabilities]
    for name in added:
        yield from ("--cap-add", name)
    if not added and walls.system_calls in ("listed", "traced"):
        yield "--disable-userns"
    yield from ("--new-session", "--die-with-parent")


def _root(walls: Walls, root: Root) -> Iterator[Option]:
    assembled = root.folder is None or not walls.read_only_root or walls.mounts
    if not assembled:
        yield from ("--ro-bind", str(root.folder), "/")
        return
    if root.folder is None:
        yield from ("--ro-bind", "/usr", "/usr", "--ro-bind-try", "/etc/alternatives", "/etc/alternatives")
        yield from _links(Path("/"), _HOST_LINKS)
        yield from ("--perms", "0755", "--dir", "/etc")
        for name, text in _ETC.items():
            yield from ("--perms", "0444", "--file", SmallFile(data=text.encode()), f"/etc/{name}")
    else:
        above = [PurePosixPath(mount.target) for mount in walls.mounts]
        if not walls.read_only_root:
            # Each folder of the root is made anew, so that something can be put into it; the image stays as it is.
            above += [PurePosixPath("/", entry.name, "anything") for entry in root.folder.iterdir()]
        yield from _entries(root.folder, PurePosixPath("/"), above)


def _entries(folder: Path, below: PurePosixPath, targets: Sequence[PurePosixPath]) -> Iterator[str]:
    """A folder of the image, put together anew so that mount points can be made in it and in those above a target."""
    for entry in sorted(folder.iterdir()):
        place = below / entry.name
        if entry.is_symlink():
            yield from ("--symlink", str(entry.readlink()), str(place))
        elif str(place) in _MADE:
            continue
        elif entry.is_dir() and any(place in target.parents for target in targets):
            yield from ("--perms", "0755", "--dir", str(place))
            yield from _entries(entry, place, targets)
        else:
            yield from ("--ro-bind", str(entry), str(place))


def _links(folder: Path, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        place = folder / name
        if place.is_symlink():
            yield from ("--symlink", str(place.readlink()), f"/{name}")
        elif place.is_dir():
            yield from ("--ro-bind", str(place), f"/{name}")


def _kernel_files(walls: Walls) -> Iterator[str]:
    if "pid" in walls.host_namespaces:
        yield from ("--ro-bind", "/proc", "/proc")
    else:
        yield from ("--proc", "/proc")
        for path in _masked() if walls.masked else ():
            yield from ("--ro-bind", "/dev/null", path)
    yield from ("--dev", "/dev")
    yield from ("--perms", "1777", "--size", str(walls.caps.shm_bytes), "--tmpfs", "/dev/shm")  # noqa: S108  # a path in the workspace, not on this host
    yield from ("--remount-ro", "/dev")
    yield from ("--perms", "1777", "--size", str(walls.caps.tmp_bytes), "--tmpfs", "/tmp")  # noqa: S108  # likewise


@cache
def _masked() -> tuple[str, ...]:
    """The files of /proc that are masked, of those that this kernel has."""
    return tuple(f"/proc/{name}" for name in MASKED if Path("/proc", name).exists())


def _room(walls: Walls, places: Places) -> Iterator[str]:
    yield from ("--ro-bind" if places.ended else "--bind", places.workspace, HOME)
    if places.gateway is not None:
        yield from ("--perms", "0755", "--size", str(_RUN_BYTES), "--tmpfs", "/run")
        yield from ("--ro-bind", places.gateway, GATEWAY_FOLDER)
    for mount in walls.mounts:
        yield from ("--ro-bind" if mount.read_only else "--bind", mount.source, mount.target)
    if places.gateway is not None:
        yield from ("--remount-ro", "/run")
    if walls.read_only_root:
        yield from ("--remount-ro", "/")
