"""
What a running sandbox is, as it is seen from within: an option that was accepted is not yet one that was carried out.

A small script of ours runs like any program in the workspace and says what the kernel says of it. The seat can't change
its answer: what it runs on is read-only and no process of the seat's is in its namespaces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.walls import Walls

__all__ = ["LOOK", "facts_of", "own_namespaces"]

_NAMESPACES = ("net", "pid", "ipc", "uts", "mnt", "user")

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

_OURS = frozenset({"/", "/dev", "/dev/pts", "/dev/shm", "/proc", "/tmp", "/workspace", "/usr", "/etc/alternatives"})  # noqa: S108  # mount points in the workspace
_DEVICES = frozenset({"console", "full", "null", "random", "tty", "urandom", "zero"})
_ALL_SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def own_namespaces() -> list[str]:
    """The names of the harness' own namespaces, in the order that the script tells them."""
    return [str(Path("/proc/self/ns", name).readlink()) for name in _NAMESPACES]


def facts_of(said: str, walls: Walls, outside: list[str]) -> Mapping[str, Any]:
    """
    The facts in what the script said, by the names that a fence compares. Raises `ValueError` when it said too little.

    `outside` is what `own_namespaces` gives; a fact that bubblewrap has no notion of is None.
    """
    parts = said.split("==\n")
    if len(parts) != 5:
        raise ValueError(f"{len(parts)} parts of 5")
    status = dict(re.findall(r"^(\w+):\s*(.*)$", parts[0], re.MULTILINE))
    inside = parts[4].split()
    shared = {name: theirs == ours for name, theirs, ours in zip(_NAMESPACES, inside, outside, strict=True)}
    interfaces = re.findall(r"^\s*([^\s:|]+):", parts[3], re.MULTILINE)
    mounts = [_mount(line) for line in parts[2].splitlines()]
    bare = all(int(status[name], 16) == 0 for name in _ALL_SETS)
    alone = interfaces == ["lo"] and not shared["net"]
    return {
        "network_mode": "none" if alone else "host",
        "network_disabled": alone,
        "interfaces": interfaces,
        "privileged": shared["user"],
        "cap_add": [],
        "cap_drop": ["ALL"] if bare else [],
        "no_new_privileges": status["NoNewPrivs"] == "1",
        "seccomp": status["Seccomp"] == "2",
        "read_only_root": _root_is_read_only(mounts),
        "mounts": _foreign(mounts, walls),
        "devices": _devices(mounts),
        "pid_mode": "host" if shared["pid"] else "private",
        "ipc_mode": "host" if shared["ipc"] else "private",
        "exec_user": f"{status['Uid'].split()[1]}:{status['Gid'].split()[1]}",
        "pids_limit": _limit(parts[1], "Max processes", 1),
        "file_bytes": _limit(parts[1], "Max file size", 0),
        "open_files": _limit(parts[1], "Max open files", 0),
        "address_space_bytes": _limit(parts[1], "Max address space", 0),
    }


def _mount(line: str) -> tuple[str, bool]:
    """The mount point of a line of mountinfo, and whether it is read-only."""
    fields = line.split(" ")
    point = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), fields[4])
    return point, "ro" in fields[5].split(",")


def _root_is_read_only(mounts: list[tuple[str, bool]]) -> bool:
    return bool(mounts) and dict(mounts).get("/", False)


def _foreign(mounts: list[tuple[str, bool]], walls: Walls) -> list[dict[str, Any]]:
    """Mounts that are no part of a sealed workspace; one that the walls asked for is named by its source."""
    asked = {mount.target: mount.source for mount in walls.mounts}
    links = {f"/{name}" for name in ("bin", "lib", "lib32", "lib64", "libx32", "sbin")}
    found = []
    for point, read_only in mounts:
        known = point in _OURS or point in links or point.startswith(("/proc/", "/dev/"))
        # Where mounts are asked for, the image's root is put together from its own folders and files.
        of_image = bool(walls.mounts or not walls.read_only_root) and read_only
        if point in asked or not (known or of_image):
            found.append({"source": asked.get(point), "target": point, "read_only": read_only})
    return found


def _devices(mounts: list[tuple[str, bool]]) -> list[str]:
    names = [point.removeprefix("/dev/") for point, _ in mounts if point.startswith("/dev/")]
    return [name for name in names if name not in _DEVICES | {"pts", "shm"}]


def _limit(limits: str, name: str, less: int) -> int | None:
    found = re.search(rf"^{name}\s+(\d+)\s", limits, re.MULTILINE)
    return None if found is None else int(found[1]) - less
