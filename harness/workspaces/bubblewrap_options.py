"""Walls as the options of `bwrap`: pure, but for a look at which of its file names a kernel has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from harness.errors import FenceError, ImageError
from harness.walls import Walls
from harness.workspaces.images import KEEPER, SEAT, SEAT_PATH

__all__ = [
    "HOST_IMAGE",
    "Option",
    "Root",
    "SmallFile",
    "base_environment",
    "bwrap_options",
    "check_walls",
    "environment_options",
    "launcher",
    "marker",
]

HOST_IMAGE = "host"
"""The image name that stands for this host's own `/usr`."""

HOME = "/workspace"

# Files of /proc that tell of the host and that a program has no need of. A masked one opens and has no bytes.
MASKED = (
    "buddyinfo", "cmdline", "config.gz", "crypto", "devices", "diskstats", "interrupts", "iomem", "ioports",
    "kallsyms", "kcore", "key-users", "keys", "latency_stats", "loadavg", "modules", "pagetypeinfo", "partitions",
    "sched_debug", "schedstat", "slabinfo", "softirqs", "swaps", "sysrq-trigger", "timer_list", "vmallocinfo",
    "vmstat", "zoneinfo",
)  # fmt: skip

_MADE = frozenset({"/workspace", "/tmp", "/dev", "/proc"})  # noqa: S108  # mount points in the workspace
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
        lacks = [name for name in ("workspace", "tmp", "dev", "proc") if not (self.folder / name).is_dir()]
        if lacks or not (self.folder / "bin" / "sh").exists():
            raise ImageError(
                f"the image's root {self.folder} has no {', '.join(lacks) or 'bin/sh'}: expected the folders "
                "workspace, tmp, dev and proc, and a shell. Build it again with `proctor image build`."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class SmallFile:
    """A small file that is handed to bwrap through a descriptor, in place of an option's argument."""

    data: bytes


Option: TypeAlias = str | SmallFile
"""One word of the command line; a `SmallFile` becomes the number of a descriptor that holds it."""


def check_walls(walls: Walls) -> None:
    """Raises `FenceError` for walls that bubblewrap can't be made to have."""
    if walls.network == "bridge":
        raise FenceError("bubblewrap has no network 'bridge': expected 'none', or 'host' as a positive control")
    if walls.new_privileges and not (walls.run_as_root and walls.keep_capabilities):
        raise FenceError(
            "bubblewrap always sets no-new-privileges, so new_privileges = True can't be had by itself: measure this "
            "weakening with the container backend"
        )
    for mount in walls.mounts:
        if not mount.source.startswith("/") or not mount.target.startswith("/"):
            raise FenceError(f"mount {mount.source!r} at {mount.target!r}: expected two absolute paths")


def bwrap_options(walls: Walls, root: Root, workspace: str) -> list[Option]:
    """
    The options of every execution in a workspace, in the order bwrap carries them out, but for the environment, which
    is empty. `workspace` is the host folder that becomes `/workspace`. Raises `FenceError` for walls that can't be had.
    """
    check_walls(walls)
    return [
        *_namespaces(walls),
        *_root(walls, root),
        *_kernel_files(walls),
        *_room(walls, workspace),
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
    yield from ("--unshare-user", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "seat")
    if walls.network == "none":
        yield "--unshare-net"
    if "pid" not in walls.host_namespaces:
        yield "--unshare-pid"
    user = "0" if walls.run_as_root else str(SEAT)
    yield from ("--uid", user, "--gid", user)
    if walls.keep_capabilities:
        yield from ("--cap-add", "ALL")
    elif walls.system_calls in ("listed", "traced"):
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
        yield from _entries(root.folder, PurePosixPath("/"), [PurePosixPath(mount.target) for mount in walls.mounts])


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


def _room(walls: Walls, workspace: str) -> Iterator[str]:
    yield from ("--bind", workspace, HOME)
    for mount in walls.mounts:
        yield from ("--ro-bind" if mount.read_only else "--bind", mount.source, mount.target)
    if walls.read_only_root:
        yield from ("--remount-ro", "/")


def marker(token: str) -> bytes:
    """
    What the launcher writes to its error stream when every limit is set, just before the program starts. Without it
    nothing was started.
    """
    return f"<started {token}>\n".encode()


def launcher(walls: Walls, token: str, cwd: str, argv: Sequence[str], *, address_space: bool) -> list[str]:
    """
    The command that sets the limits from within, where they count for this workspace alone, and becomes the program.

    A process limit set outside would count every process of the user on the host. One process more than
    `caps.pids` is let be: the reaper that bwrap puts in as process 1. Memory is limited for each process by its
    `address_space` where no control group limits the sum.
    """
    caps = walls.caps
    limits = " && ".join(
        (
            f"{{ ulimit -u {caps.pids + 1} 2>/dev/null || ulimit -p {caps.pids + 1}; }}",
            "ulimit -c 0",
            "ulimit -l 64",
            f"ulimit -f {caps.file_bytes // 512}",
            f"ulimit -n {caps.open_files}",
            *([f"ulimit -v {caps.memory_bytes // 1024}"] if address_space else []),
        )
    )
    said = marker(token).decode().rstrip("\n")
    script = f'{limits} || exit 125; echo \'{said}\' >&2; cd -- "$1" || exit 126; unset OLDPWD; shift; exec "$@"'
    return ["/bin/sh", "-c", script, "sh", cwd, *argv]
