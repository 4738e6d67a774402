"""
What a process and its descendants use: processor time, and time in which none of them could run for its own reasons.

Neither depends on what else the machine does: a process that waits for a processor is not blocked, and the time that it
is held up in the kernel, by a disk say, is counted by itself. This file runs inside workspaces, so it uses the standard
library and `pytest_confine` only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from referees.pytest_confine import PR_SET_CHILD_SUBREAPER, prctl

POLL_S = 0.05

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def _stat(path: Path) -> list[str]:
    """The fields after the name, or none once it has gone."""
    try:
        return path.read_text(encoding="latin-1").rpartition(")")[2].split()
    except OSError:
        return []


def descendants(root: int) -> Iterator[tuple[int, list[str]]]:
    """Every living descendant of `root`, with its fields of /proc."""
    found = {int(path.name): _stat(path / "stat") for path in Path("/proc").iterdir() if path.name.isdigit()}
    below = {root}
    grown = True
    while grown:
        more = {pid for pid, fields in found.items() if fields and int(fields[1]) in below} - below
        below |= more
        grown = bool(more)
    return ((pid, found[pid]) for pid in sorted(below - {root}))


def _doing(pid: int) -> str:
    """`R` if a thread of a process runs or is ready to, else `D` if one is held up in the kernel, else nothing."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return ""
    states = {fields[0] for fields in map(_stat, (thread / "stat" for thread in threads)) if fields}
    return "R" if "R" in states else "D" if "D" in states else ""


def adopt() -> None:
    """Make this process the parent of whatever its descendants leave behind, so that they stay its descendants."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


class Watch:
    """The process `child` and all other descendants of this one, under two limits in seconds: used, and blocked."""

    def __init__(self, child: int, cpu_s: float, blocked_s: float) -> None:
        self.child, self.cpu_s, self.blocked_s = child, cpu_s, blocked_s
        self.used: dict[tuple[int, str], float] = {}
        self.blocked = self.held = 0.0
        self.turn: int | None = None
        self.sampled = time.monotonic()

    @property
    def cpu_used(self) -> float:
        """Seconds of the processor that all of them have used, as far as they were seen."""
        return sum(self.used.values())

    def _alive(self) -> list[int]:
        """The descendants that are alive, once what they have used was noted."""
        alive = []
        for pid, fields in descendants(os.getpid()):
            # the same number may come again for another process; its start time does not
            self.used[pid, fields[19]] = (int(fields[11]) + int(fields[12])) * _TICK_S
            if fields[0] not in "ZX":
                alive.append(pid)
            elif pid != self.child and int(fields[1]) == os.getpid():
                os.waitpid(pid, os.WNOHANG)
        return alive

    def look(self, turn: Callable[[], int | None]) -> str | None:
        """
        Take note of what they use now; `cpu` or `blocked` when they are over that limit.

        `turn` tells what they are waited for: a number of its own for each thing, None for nothing. A turn that began
        after the last look says nothing of the time before, and one that ended meanwhile nothing of this look.
        """
        now = time.monotonic()
        if now - self.sampled < POLL_S:
            return None
        before, self.turn = self.turn, turn()
        alive = self._alive()
        doing = set(map(_doing, alive)) if self.turn is not None and self.turn == before else {"R"}
        # A long gap between two looks is our own delay: only a little of it is counted.
        passed = min(now - self.sampled, 4 * POLL_S) if turn() == before else 0.0
        if "R" not in doing and "D" in doing:
            self.held += passed  # a disk is slow, or a child that was made to share everything does not let go
        elif "R" not in doing:
            self.blocked += passed
        self.sampled = now
        if self.cpu_used > self.cpu_s:
            return "cpu"
        return "blocked" if max(self.blocked, self.held) > self.blocked_s else None

    def end_all(self) -> None:
        """Kill whatever descends from this process, until nothing does or ten seconds are over."""
        until = time.monotonic() + 10.0
        while (alive := self._alive()) and time.monotonic() < until:
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
