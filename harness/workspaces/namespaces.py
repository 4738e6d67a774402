"""
Who lives in a namespace, seen from outside: the witness of a kill. And the owner of a workspace, told from a later
process that got the same number.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

__all__ = ["Kind", "Namespace", "Owner", "kill_by_name", "members", "named", "parent_of"]

_PROC = Path("/proc")
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)

Kind: TypeAlias = Literal["pid", "mnt"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Namespace:
    """
    A namespace by its inode. Whoever counts its members must hold a descriptor of it: the kernel gives the inode of a
    namespace that is gone to the next one.
    """

    kind: Kind
    inode: int

    def members(self) -> list[int]:
        """The processes alive in it, by number; a zombie runs nothing and is not counted."""
        return members([self])

    def kill(self) -> None:
        """Send SIGKILL to every member."""
        for pid in self.members():
            with suppress(*_GONE):
                os.kill(pid, signal.SIGKILL)


def members(namespaces: Iterable[Namespace]) -> list[int]:
    """The processes alive in any of these, in one look at every process of the host."""
    wanted = {(namespace.kind, namespace.inode) for namespace in namespaces}
    kinds = {kind for kind, _ in wanted}
    # Text and not `Path`: there may be thousands of processes.
    return [
        pid
        for pid in (_processes() if wanted else [])
        if any((kind, _inode(f"/proc/{pid}/ns/{kind}")) in wanted for kind in kinds) and _lives(pid)
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """
    A process of this host that no later one is mistaken for: its number, when it started (in ticks since boot), which
    boot that was, and which PID namespace its number counts in.
    """

    pid: int
    started: int
    boot: str
    pid_namespace: int

    @classmethod
    def me(cls) -> Owner:
        """The very process that asks."""
        pid = os.getpid()
        started = _started(pid)
        assert started is not None  # this process is there, since it asks
        return cls(pid=pid, started=started, boot=_boot(), pid_namespace=_own_namespace())

    @property
    def alive(self) -> bool:
        """
        Whether it still runs. One whose number counts in another PID namespace can't be looked at from here and
        passes for alive, while the machine has not been started again.
        """
        if self.boot != _boot():
            return False
        if self.pid_namespace != _own_namespace():
            return True
        return _started(self.pid) == self.started and _lives(self.pid)


def parent_of(pid: int) -> int | None:
    """The parent of a process, or None when it is gone."""
    fields = _stat(pid)
    return None if fields is None else int(fields[1])


def named(name: str, *, holding: str = "") -> list[int]:
    """The processes whose command line starts with the word `name` and has the text `holding` in it."""
    found = []
    wanted = name.encode() + b"\0"
    for pid in _processes():
        with suppress(*_GONE):
            line = (_PROC / str(pid) / "cmdline").read_bytes()
            if line.startswith(wanted) and holding.encode() in line:
                found.append(pid)
    return found


def kill_by_name(name: str) -> int:
    """SIGKILL every process whose command line starts with the word `name`; says how many there were."""
    found = 0
    for pid in named(name):
        with suppress(*_GONE):
            os.kill(pid, signal.SIGKILL)
            found += 1
    return found


def _processes() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208  # names alone, many of them


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino  # noqa: PTH116  # see above
    except _GONE:
        return None


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on; the name before them may hold anything."""
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except _GONE:
        return None


def _state(pid: int) -> str | None:
    fields = _stat(pid)
    return None if not fields else fields[0]


def _lives(pid: int) -> bool:
    return _state(pid) not in {None, "Z", "X"}


def _started(pid: int) -> int | None:
    fields = _stat(pid)
    return None if not fields else int(fields[19])


def _boot() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def _own_namespace() -> int:
    return (_PROC / "self/ns/pid").stat().st_ino
