"""
Control groups of a workspace: what limits all of its processes together, where this process may make such groups.

Both layouts of the kernel are known: one tree for each controller (version 1), and one tree for all (version 2).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.clock import fresh_token, pause
from harness.errors import WorkspaceError
from harness.walls import Caps

__all__ = ["Groups", "groups_available"]

_TOP = Path("/sys/fs/cgroup")
_PARENT = "proctor"
_PERIOD_US = 100_000
_TRIES, _PAUSE_S = 500, 0.01
"""Five seconds: an init that reaps once a second is not rare."""
_PAGE = 4096
# The number of processes is limited for each execution by itself: a common limit would let one that has taken every
# place keep the harness' own programs out.
_CONTROLLERS = ("memory", "cpu")


@dataclass(frozen=True, kw_only=True, slots=True)
class Groups:
    """The groups called `name`; making, joining and removing them are calls to the kernel that may wait a while."""

    name: str

    def make(self, caps: Caps) -> None:
        """Make them with the limits of `caps`. Raises `OSError` where that is not let be."""
        if _unified():
            _enable(_TOP)
            (_TOP / _PARENT).mkdir(exist_ok=True)
            _enable(_TOP / _PARENT)
        for folder in self._folders():
            folder.parent.mkdir(exist_ok=True)
            folder.mkdir()
        for path, value in self._limits(caps):
            path.write_text(value)

    def exist(self) -> bool:
        """Whether they were made."""
        return all(folder.is_dir() for folder in self._folders())

    def join(self, pid: int) -> None:
        """Put a process, and with it whatever it starts, into the groups. Raises `OSError` when that fails."""
        for folder in self._folders():
            (folder / "cgroup.procs").write_text(str(pid))

    def members(self) -> list[int]:
        """The processes that are in one of them, zombies too."""
        found: set[int] = set()
        for folder in self._folders():
            with suppress(FileNotFoundError):
                found.update(map(int, (folder / "cgroup.procs").read_text().split()))
        return sorted(found)

    def starved(self) -> int:
        """How many of their processes the kernel has killed so far because they had no memory left."""
        path = self._memory("memory.oom_control", "memory.events")
        with suppress(OSError):
            for line in path.read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
        return 0  # older kernels don't count

    def told(self, caps: Caps) -> Mapping[str, int | None]:
        """
        The limits as the kernel tells them, in the units of a fence's facts: the asked value where it stands, to the
        precision that the kernel has.
        """
        memory = _number(self._memory("memory.limit_in_bytes", "memory.max"))
        if _unified():
            swap = _number(self._memory("", "memory.swap.max"))
            both = None if memory is None or swap is None else memory + swap
        else:
            both = _number(self._memory("memory.memsw.limit_in_bytes", ""))
        whole_pages = caps.memory_bytes // _PAGE * _PAGE
        quota = self._quota()
        return {
            "memory_bytes": caps.memory_bytes if memory == whole_pages else memory,
            "memory_and_swap_bytes": caps.memory_bytes if both == whole_pages else both,
            "nano_cpus": round(caps.cpus * 1e9) if quota == _quota_of(caps) else quota and quota * 10_000,
        }

    def remove(self) -> None:
        """
        Remove them; none is there is fine. One that holds a process that has ended and was not yet waited for, as an
        orphan may be until init gets to it, is tried again for some seconds. Raises `WorkspaceError` after that.
        """
        for folder in self._folders():
            for left in reversed(range(_TRIES)):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError as error:
                    if error.errno != errno.EBUSY or not left:
                        said = f"control group {folder} can't be removed: {error}. Who is in it?"
                        raise WorkspaceError(said) from error
                    pause(_PAUSE_S)
                else:
                    break

    def _folders(self) -> list[Path]:
        if _unified():
            return [_TOP / _PARENT / self.name]
        return [_TOP / controller / _PARENT / self.name for controller in _CONTROLLERS]

    def _limits(self, caps: Caps) -> list[tuple[Path, str]]:
        memory, cpu = (self._folders() * 2)[:2]
        if _unified():
            with_swap, most = memory / "memory.swap.max", "0"
            limits = [
                (memory / "memory.max", str(caps.memory_bytes)),
                (cpu / "cpu.max", f"{_quota_of(caps)} {_PERIOD_US}"),
            ]
        else:
            with_swap, most = memory / "memory.memsw.limit_in_bytes", str(caps.memory_bytes)
            limits = [
                (memory / "memory.limit_in_bytes", str(caps.memory_bytes)),
                (cpu / "cpu.cfs_period_us", str(_PERIOD_US)),
                (cpu / "cpu.cfs_quota_us", str(_quota_of(caps))),
            ]
        # A kernel without swap accounting has no such file.
        return [*limits, (with_swap, most)] if with_swap.exists() else limits

    def _memory(self, first: str, second: str) -> Path:
        return self._folders()[0] / (second if _unified() else first)

    def _quota(self) -> int | None:
        if _unified():
            return _number(self._folders()[0] / "cpu.max")
        return _number(self._folders()[1] / "cpu.cfs_quota_us")


@cache
def groups_available() -> bool:
    """Whether this process may make such groups and set their limits here: found out by doing it once."""
    if os.geteuid() != 0 or not _TOP.is_dir():
        return False
    trial = Groups(name=f"trial-{fresh_token(8)}")
    try:
        trial.make(Caps())
    except OSError:
        return False
    finally:
        with suppress(OSError, WorkspaceError):
            trial.remove()
    return True


@cache
def _unified() -> bool:
    return (_TOP / "cgroup.controllers").exists()


def _enable(folder: Path) -> None:
    """Let the groups below `folder` have the controllers."""
    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in _CONTROLLERS))


def _quota_of(caps: Caps) -> int:
    return max(1000, round(caps.cpus * _PERIOD_US))


def _number(path: Path) -> int | None:
    """The first number of a kernel's file, or None where there is none."""
    try:
        word = path.read_text().split()[0]
    except (OSError, IndexError):
        return None
    return int(word) if word.lstrip("-").isdigit() else None
