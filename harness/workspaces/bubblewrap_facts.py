"""
What a running sandbox is, as it is seen from within: an option that was accepted is not yet one that was carried out.

A small script of ours runs like any program in the workspace and says what the kernel says of it. The seat can't change
its answer: what it runs on is read-only and no process of the seat's is in its namespaces.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from harness.walls import GATEWAY_FOLDER, GATEWAY_SOURCE, Walls

__all__ = ["LOOK", "facts_of", "own_namespaces"]

_NAMESPACES = ("net", "pid", "ipc", "uts", "mnt", "user", "cgroup")

LOOK = (
    "/bin/sh",
    "-c",
    (
        "cat /proc/self/status; echo ==; cat /proc/self/limits; echo ==; cat /proc/self/mountinfo; echo ==; "
        "cat /proc/net/dev; echo ==; "
        f"for n in {' '.join(_NAMESPACES)}; do readlink /proc/self/ns/$n; done"
    ),
)
"""The command whose output `facts_of` reads."""

_OURS = frozenset(
    {"/", "/dev", "/dev/pts", "/dev/shm", "/etc/alternatives", "/proc", "/tmp", "/usr", "/workspace"}  # noqa: S108  # mount points in the workspace
)
_LINKS = frozenset({"/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin"})
_DEVICES = frozenset({"console", "full", "null", "random", "tty", "urandom", "zero"})
_CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
    "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
    "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
    "CHECKPOINT_RESTORE",
)  # fmt: skip
"""By number; `linux/capability.h`."""
_ALL_SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def own_namespaces() -> list[str]:
    """The names of the harness' own namespaces, in the order that the script tells them."""
    return [str(Path("/proc/self/ns", name).readlink()) for name in _NAMESPACES]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Mount:
    """A line of mountinfo: what is mounted where, from which place of which device, and how large it may be."""

    point: str
    root: str
    device: str
    read_only: bool
    bytes: int | None


def facts_of(said: str, walls: Walls, outside: list[str], gateway: Path | None) -> Mapping[str, Any]:
    """
    The facts in what the script said, by the names that a fence compares. Raises `ValueError` when it said too little.

    `outside` is what `own_namespaces` gives, `gateway` the host's folder that should be seen as the gateway's; a fact
    that bubblewrap has no notion of is None.
    """
    parts = said.split("==\n")
    if len(parts) != 5:
        raise ValueError(f"{len(parts)} parts of 5")
    status = dict(re.findall(r"^(\w+):\s*(.*)$", parts[0], re.MULTILINE))
    mounts = [_mount(line) for line in parts[2].splitlines()]
    foreign = _foreign(mounts, walls, gateway)
    joined = any(mount["source"] == GATEWAY_SOURCE for mount in foreign)
    return {
        **_network(parts[3], parts[4], outside, joined=joined),
        **_privileges(status),
        "read_only_root": any(mount.point == "/" and mount.read_only for mount in mounts),
        "mounts": foreign,
        "masked_paths": sorted(mount.point for mount in mounts if mount.point.startswith("/proc/")),
        "devices": _devices(mounts),
        "pids_limit": _processes(parts[1], joined=joined),
        "file_bytes": _limit(parts[1], "Max file size"),
        "open_files": _limit(parts[1], "Max open files"),
        "core_bytes": _limit(parts[1], "Max core file size"),
        "address_space_bytes": _limit(parts[1], "Max address space"),
        "tmp_bytes": _size(mounts, "/tmp"),  # noqa: S108  # in the workspace
        "shm_bytes": _size(mounts, "/dev/shm"),  # noqa: S108  # likewise
    }


def _network(interfaces: str, namespaces: str, outside: list[str], *, joined: bool) -> dict[str, Any]:
    """The namespaces, of which the network's is told by what is in it."""
    pairs = zip(_NAMESPACES, namespaces.split(), outside, strict=True)
    shared = {name: theirs == ours for name, theirs, ours in pairs}
    found = re.findall(r"^\s*([^\s:|]+):", interfaces, re.MULTILINE)
    alone = found == ["lo"] and not shared["net"]
    modes = {f"{name}_mode": "host" if shared[name] else "private" for name in ("pid", "ipc", "uts", "cgroup")}
    return {
        "network_mode": ("gateway" if joined else "none") if alone else "host",
        "network_disabled": alone,
        "interfaces": found,
        "privileged": shared["user"],
        **modes,
    }


def _privileges(status: Mapping[str, str]) -> dict[str, Any]:
    held = reduce(or_, (int(status[name], 16) for name in _ALL_SETS))
    added = [name for number, name in enumerate(_CAPABILITIES) if held >> number & 1]
    # Asked for by `keep_capabilities` they are all there, which is no dropping and not an adding.
    kept = len(added) == len(_CAPABILITIES)
    return {
        "cap_add": [] if kept else sorted(added),
        "cap_drop": [] if kept else ["ALL"],
        "no_new_privileges": status["NoNewPrivs"] == "1",
        "seccomp": status["Seccomp"] == "2",
        "exec_user": f"{status['Uid'].split()[1]}:{status['Gid'].split()[1]}",
    }


def _mount(line: str) -> _Mount:
    fields = line.split(" ")
    size = re.search(r"(?:^|,)size=(\d+)k(?:,|$)", fields[-1])
    return _Mount(
        point=_plain(fields[4]),
        root=_plain(fields[3]),
        device=fields[2],
        read_only="ro" in fields[5].split(","),
        bytes=None if size is None else int(size[1]) << 10,
    )


def _plain(word: str) -> str:
    return re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), word)


def _foreign(mounts: list[_Mount], walls: Walls, gateway: Path | None) -> list[dict[str, Any]]:
    """Mounts that are no part of a sealed workspace; one that the walls asked for is named by its source."""
    asked = {mount.target: mount.source for mount in walls.mounts}
    ours = {*_OURS, *_LINKS, *([] if gateway is None else ["/run"])}
    found = []
    for mount in mounts:
        point = mount.point
        known = point in ours or point.startswith(("/proc/", "/dev/"))
        # Where mounts are asked for, the image's root is put together from its own folders and files.
        of_image = bool(walls.mounts or not walls.read_only_root) and mount.read_only
        is_gateway = point == GATEWAY_FOLDER and gateway is not None and _is_folder(mount, gateway)
        if is_gateway or point in asked or not (known or of_image):
            source = GATEWAY_SOURCE if is_gateway else asked.get(point)
            found.append({"source": source, "target": point, "read_only": mount.read_only})
    return found


def _is_folder(mount: _Mount, folder: Path) -> bool:
    """Whether what is mounted is this very folder of the host's."""
    device = folder.stat().st_dev
    return mount.device == f"{os.major(device)}:{os.minor(device)}" and str(folder).endswith(mount.root.rstrip("/"))


def _devices(mounts: list[_Mount]) -> list[str]:
    names = [mount.point.removeprefix("/dev/") for mount in mounts if mount.point.startswith("/dev/")]
    return [name for name in names if name not in _DEVICES | {"pts", "shm"}]


def _size(mounts: list[_Mount], point: str) -> int | None:
    return next((mount.bytes for mount in mounts if mount.point == point), None)


def _processes(limits: str, *, joined: bool) -> int | None:
    """The seat's own share of the limit: process 1 and the forwarder are let be beside it."""
    found = _limit(limits, "Max processes")
    return None if found is None else found - 1 - joined


def _limit(limits: str, name: str) -> int | None:
    found = re.search(rf"^{name}\s+(\d+)\s", limits, re.MULTILINE)
    return None if found is None else int(found[1])
