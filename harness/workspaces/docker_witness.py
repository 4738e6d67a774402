"""A container's processes, seen from outside: who is alive in it, which of them are the keeper's, and who they are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.workspaces.namespaces import Namespace

__all__ = ["Witness"]

_PROC = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
_STATE, _PARENT, _STARTED = 0, 1, 19


@dataclass(frozen=True, kw_only=True, slots=True)
class Witness:
    """
    A container's PID namespace. It is held by a descriptor, since the kernel gives the number of a namespace that is
    gone to the next one; a user who may not do that has none, and goes by the control group. `first` is the container's
    first process, `roll` the kernel's list of its control group's processes where that can be read, `users` its mapping
    of users: first inside, first outside, how many.
    """

    descriptor: int | None
    first: int
    roll: Path | None
    users: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, pid: int, container: str) -> Witness | None:
        """
        The namespace of a container's first process, or None when this process can't look at it.

        A number is taken for the container's only if the process's control group names the container: with an engine
        on another machine the same number is some other process here.
        """
        folder = _PROC / str(pid)
        try:
            groups = (folder / "cgroup").read_text()
            if container not in groups:
                return None
            users = tuple(_three(line) for line in (folder / "uid_map").read_text().splitlines())
            namespace = _held(folder / "ns" / "pid")
        except OSError:
            return None
        witness = cls(descriptor=namespace, first=pid, roll=_roll(groups), users=users)
        if namespace is None:
            return witness if witness.roll is not None else None
        if os.fstat(namespace).st_ino == (_PROC / "self/ns/pid").stat().st_ino:
            witness.close()
            return None
        return witness

    @property
    def name(self) -> str:
        """What is looked at."""
        return "control group" if self.descriptor is None else "pid namespace"

    def members(self) -> list[int]:
        """
        The processes alive in the namespace, by a look at every process of the host; or in the control group, which is
        gone with the last of them.
        """
        if self.descriptor is None:
            return self._listed()
        return Namespace(kind="pid", inode=os.fstat(self.descriptor).st_ino).members()

    def present(self) -> list[int]:
        """
        The processes alive in the container by its control group, which is a look at no others. Nothing in there can
        leave the group, but the proof of a kill rests on `members`.
        """
        listed = self._listed()
        return listed if self.first in listed else self.members()

    def _listed(self) -> list[int]:
        try:
            listed = "" if self.roll is None else self.roll.read_text()
        except OSError:
            return []
        return [pid for pid in map(int, listed.split()) if (fields := _stat(pid)) and fields[_STATE] not in "ZX"]

    def seats(self) -> list[int]:
        """The processes alive in the container that are not the keeper's."""
        facts = {pid: fields for pid in self.present() if (fields := _stat(pid)) is not None}
        keepers = self._keepers(facts)
        return [pid for pid in facts if pid not in keepers]

    def _keepers(self, facts: Mapping[int, list[str]]) -> set[int]:
        """
        The first process, the oldest of its children, and all that this one began. The other children are orphans, and
        came later; no orphan comes to any but the first.
        """
        parents = {pid: int(fields[_PARENT]) for pid, fields in facts.items()}
        born = [(int(facts[pid][_STARTED]), pid) for pid, parent in parents.items() if parent == self.first]
        found = {min(born)[1]} if born else set()
        while grown := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= grown
        return {self.first, *found}

    def group_inside(self, pid: int) -> int | None:
        """The process group of a process by the container's own count, or None when it is gone."""
        return self._inside(pid, "NSpgid:")

    def number_inside(self, pid: int) -> int | None:
        """The number of a process by the container's own count, or None when it is gone."""
        return self._inside(pid, "NSpid:")

    def _inside(self, pid: int, name: str) -> int | None:
        with suppress(*_GONE):
            for line in (_PROC / str(pid) / "status").read_text(errors="replace").splitlines():
                if line.startswith(name):
                    return int(line.split()[-1])
        return None

    def outside(self, user: int) -> int | None:
        """The number, on this host, of the container's user `user`; None when that is nobody."""
        found = (there + user - here for here, there, count in self.users if here <= user < here + count)
        return next(found, None)

    def close(self) -> None:
        """Let the namespace go."""
        if self.descriptor is not None:
            os.close(self.descriptor)


def _held(namespace: Path) -> int | None:
    """A descriptor of a namespace, or None for a user who may not have one."""
    try:
        return os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return None


def _three(line: str) -> tuple[int, int, int]:
    inside, outside, count = map(int, line.split())
    return inside, outside, count


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on; the name before them may hold anything."""
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split() or None
    except _GONE:
        return None


def _roll(groups: str) -> Path | None:
    """The file that lists a control group's processes: of version 1 any controller's, of version 2 the only one."""
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        roll = _GROUPS / controllers / path.lstrip("/") / "cgroup.procs"
        if roll.is_file():
            return roll
    return None
