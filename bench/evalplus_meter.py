"""
What a program and everything that it starts use: wall, CPU, memory. Read from control groups of the program's own, so
that neither killed processes nor ones that another process waits for are left out, and shared memory counts once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from harness.clock import fresh_token

__all__ = ["Run", "Watched", "cpu_of", "end_at_sigterm", "memory_of", "unified"]

_TOP = Path("/sys/fs/cgroup")
_TICK_S = 0.05
_JOIN = 'for file in $PROCTOR_JOIN; do echo $$ >"$file" || exit 125; done; unset PROCTOR_JOIN; exec "$@"'


def unified() -> bool:
    """Whether the machine has one tree of control groups for all controllers (version 2)."""
    return (_TOP / "cgroup.controllers").exists()


def end_at_sigterm() -> None:
    """Let SIGTERM end this process as Ctrl-C does: what it has started, and its groups, end with it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def cpu_of(group: str) -> float:
    """Seconds of CPU that a group has used; 0.0 for one that is not there."""
    with suppress(OSError):
        if not unified():
            return int((_TOP / "cpuacct" / group / "cpuacct.usage").read_text()) / 1e9
        for line in (_TOP / group / "cpu.stat").read_text().splitlines():
            if line.startswith("usage_usec "):
                return int(line.split()[1]) / 1e6
    return 0.0


def memory_of(group: str) -> int:
    """Bytes that a group holds in memory, file cache left out; 0 for one that is not there."""
    path = _TOP / group / "memory.stat" if unified() else _TOP / "memory" / group / "memory.stat"
    wanted = {"anon", "shmem"} if unified() else {"total_rss", "total_shmem"}
    with suppress(OSError):
        pairs = (line.split() for line in path.read_text().splitlines())
        return sum(int(value) for name, value in pairs if name in wanted)
    return 0


@dataclass(frozen=True, kw_only=True)
class Run:
    """
    What one run used. Times in seconds, `memory` in bytes at moments of the monotonic clock, loads of the last minute
    before and after. `left_behind` counts processes that outlived the program.
    """

    status: int
    wall_s: float
    cpu_s: float
    memory: Sequence[tuple[float, int]]
    load: tuple[float, float]
    left_behind: int = 0
    timed_out: bool = False

    def peak(self, without: Sequence[tuple[float, float]] = ()) -> int:
        """The most bytes at any moment, those between the moments of `without` left out."""
        kept = (size for at, size in self.memory if not any(low <= at <= high for low, high in without))
        return max(kept, default=0)


@dataclass
class Watched:
    """
    Runs a program in control groups of its own. `rooms_file` is where it may write, a line each, groups elsewhere that
    are its own too: rooms that an engine or a sandbox puts into groups of theirs. `most_pids` and `most_bytes` are its
    bounds.
    """

    rooms_file: Path | None = None
    most_pids: int | None = None
    most_bytes: int | None = None
    name: str = field(default_factory=lambda: f"proctor-bench-{fresh_token(4)}")

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        log: Path,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 3600,
    ) -> Run:
        """Run `argv` to its end. Ends the bench when groups can't be made."""
        folders = self._make()
        joined = " ".join(str(folder / "cgroup.procs") for folder in folders)
        before, started = os.getloadavg()[0], time.monotonic()
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["sh", "-c", _JOIN, "sh", *argv],
                cwd=cwd,
                env={**os.environ, **(env or {}), "PROCTOR_JOIN": joined},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                memory, timed_out = self._watch(process, started + timeout_s)
            finally:
                wall_s = time.monotonic() - started
                left = self._end(process, folders)
                cpu_s = cpu_of(self.name)
                self._remove(folders)
        return Run(
            status=process.returncode,
            wall_s=wall_s,
            cpu_s=cpu_s,
            memory=memory,
            load=(before, os.getloadavg()[0]),
            left_behind=left,
            timed_out=timed_out,
        )

    def _make(self) -> list[Path]:
        kinds = ("cpuacct", "memory", "pids")
        folders = [_TOP / self.name] if unified() else [_TOP / kind / self.name for kind in kinds]
        try:
            if unified():
                (_TOP / "cgroup.subtree_control").write_text("+memory +cpu +pids")
            for folder in folders:
                folder.mkdir()
            if self.most_pids is not None:
                (folders[-1] / "pids.max").write_text(str(self.most_pids))
            if self.most_bytes is not None:
                memory = folders[0] / "memory.max" if unified() else folders[1] / "memory.limit_in_bytes"
                memory.write_text(str(self.most_bytes))
        except OSError as error:
            sys.exit(f"no control group {self.name!r} can be made here ({error}): run the bench as root")
        return folders

    def _watch(self, process: subprocess.Popen[bytes], until: float) -> tuple[list[tuple[float, int]], bool]:
        """Wait for the program's end; what was seen of its memory, and whether it had to be stopped."""
        seen: list[tuple[float, int]] = []
        while process.poll() is None:
            seen.append((time.monotonic(), sum(map(memory_of, [self.name, *self._rooms()]))))
            if time.monotonic() > until:
                return seen, True
            with suppress(subprocess.TimeoutExpired):
                process.wait(_TICK_S)
        return seen, False

    def _rooms(self) -> list[str]:
        if self.rooms_file is None or not self.rooms_file.exists():
            return []
        return [json.loads(line) for line in self.rooms_file.read_text().splitlines()]

    def _end(self, process: subprocess.Popen[bytes], folders: Sequence[Path]) -> int:
        """Kill what is left in the groups; how many processes outlived the program itself."""
        left: set[int] = set()
        for _ in range(100):
            alive = {int(pid) for folder in folders for pid in (folder / "cgroup.procs").read_text().split()}
            if not alive:
                break
            left |= alive - {process.pid}
            for pid in alive:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.poll()
            time.sleep(0.05)
        process.wait()
        return len(left)

    def _remove(self, folders: Sequence[Path]) -> None:
        for folder in folders:
            with suppress(OSError):
                folder.rmdir()
