"""
One run of one program, in the subject's room: fed and read within bounds, watched, and ended with all that it started.

A process that loses its parent comes to this one, so nothing that a program starts gets away, and nothing of it can
signal or stop this one. Time of the processor and memory are counted over all of it, and waiting only while none of it
could run: what else the machine does is not held against it. It runs inside workspaces, so it uses the standard library
and its neighbours `pytest_watch` and `pytest_confine` only.
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from referees.pytest_confine import MACHINES, PR_SET_DUMPABLE, PR_SET_PDEATHSIG, install, prctl, watcher_filter
from referees.pytest_watch import descendants

__all__ = ["Bounds", "confined", "run"]

TICK = 0.02
"""Seconds between two looks at what a program uses."""
PROCESSES = 64
"""Processes that a program may have at once, itself among them; a room has places for twice as many."""
ENDING = 5.0
"""Seconds that ending a program and all that it started may take."""
BEAT_S = 1.0
"""Seconds between two signs of life while a program runs."""

_PAGE = resource.getpagesize()
_CLOCK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a program may use; None is no bound but the room's. `blocked_s` counts while none of it could run."""

    output_bytes: int
    memory_bytes: int | None = None
    cpu_s: float
    blocked_s: float


@dataclass(frozen=True, kw_only=True)
class _Process:
    """
    What /proc says of a process: its time in seconds, with that of children that it waited for and alone, and its
    memory in bytes.
    """

    pid: int
    begun: str
    cpu_s: float
    alone_s: float
    memory_bytes: int


def confined() -> bool:
    """Whether programs can be kept from this process: on a machine whose system calls the filter knows."""
    return os.uname().machine in MACHINES


def _below() -> list[_Process]:
    """Every process that descends from this one."""
    return [
        _Process(
            pid=pid,
            begun=fields[19],
            cpu_s=sum(map(int, fields[11:15])) / _CLOCK,
            alone_s=sum(map(int, fields[11:13])) / _CLOCK,
            memory_bytes=int(fields[21]) * _PAGE,
        )
        for pid, fields in descendants(os.getpid())
    ]


def _could_run(process: _Process) -> bool:
    """Whether a thread of it runs, is ready to, or waits for a disk."""
    for path in Path("/proc", str(process.pid), "task").glob("*/stat"):
        with suppress(OSError):
            if path.read_bytes().rpartition(b")")[2].split()[:1] in ([b"R"], [b"D"]):
                return True
    return False


def _holds_over(most: int, below: Sequence[_Process]) -> bool:
    """Whether they hold more bytes together. What they share is counted once, which takes a closer look."""
    if sum(process.memory_bytes for process in below) <= most:
        return False
    return sum(map(_share, below)) > most


def _share(process: _Process) -> int:
    """Bytes of a process, what it shares by the part that is its; all that it can reach where that is not told."""
    try:
        lines = Path("/proc", str(process.pid), "smaps_rollup").read_bytes().splitlines()
    except FileNotFoundError:
        return 0 if not Path("/proc", str(process.pid)).exists() else process.memory_bytes
    except OSError:
        return process.memory_bytes
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(b"Pss:")), 0)


def _spent() -> float:
    """Seconds of the processor that everything already waited for has used."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class _Run:
    """A program that was started, and its three pipes."""

    def __init__(
        self, process: subprocess.Popen[bytes], stdin: bytes, bounds: Bounds, beat: Callable[[], None]
    ) -> None:
        self.process = process
        self.bounds = bounds
        self.beat = beat
        self.before_s = _spent()
        self.seen: dict[tuple[int, str], float] = {}
        self.gone_s = 0.0
        self.blocked_s = 0.0
        self.looked = self.beaten = time.monotonic()
        self.looking_s = 0.0
        self.left = memoryview(stdin)
        self.read: dict[int, bytearray] = {}
        self.over: str | None = None
        self.status: int | None = None
        self.pipes = selectors.DefaultSelector()
        for pipe, event in (
            (process.stdin, selectors.EVENT_WRITE),
            (process.stdout, selectors.EVENT_READ),
            (process.stderr, selectors.EVENT_READ),
        ):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self.pipes.register(pipe, event)
            if event == selectors.EVENT_READ:
                self.read[pipe.fileno()] = bytearray()

    def finish(self) -> None:
        """Until the program ends, or is over a bound; then end everything that it started, and read what is left."""
        while self.over is None and not self._ended():
            idle = not any(key.fd in self.read for key in self.pipes.get_map().values())
            self._pump(0.001 if idle else TICK)
            if time.monotonic() - self.looked >= TICK:
                self._watch()
            if time.monotonic() - self.beaten >= BEAT_S:
                self.beaten = time.monotonic()
                self.beat()
        if not _end_all():
            self.over = self.over or "left"
        if self.process.returncode is None:
            self.process.returncode = -signal.SIGKILL
        while self.over is None and self._pump(0):
            pass

    def _ended(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.process.pid, os.WNOHANG)
            if pid:
                self.status = status
                self.process.returncode = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def _pump(self, wait_s: float) -> bool:
        """Whether any pipe had something to move."""
        ready = self.pipes.select(wait_s)
        for key, event in ready:
            self._feed(key) if event & selectors.EVENT_WRITE else self._take(key)
        if not ready and not self.pipes.get_map():
            time.sleep(wait_s)
        return bool(ready)

    def _feed(self, key: selectors.SelectorKey) -> None:
        try:
            self.left = self.left[os.write(key.fd, self.left[:65536]) :] if self.left else self.left
        except BlockingIOError:
            return
        except OSError:
            self.left = self.left[:0]
        if not self.left:
            self._close(key)

    def _take(self, key: selectors.SelectorKey) -> None:
        kept = self.read[key.fd]
        try:
            data = os.read(key.fd, 1 << 16)
        except BlockingIOError:
            return
        kept += data
        if not data:
            self._close(key)
        elif len(kept) > self.bounds.output_bytes:
            self.over = "output"

    def _close(self, key: selectors.SelectorKey) -> None:
        self.pipes.unregister(key.fileobj)
        key.fileobj.close()  # type: ignore[union-attr]  # a file object: what was registered is one

    def _watch(self) -> None:
        began = time.process_time()
        below, bounds = _below(), self.bounds
        now = time.monotonic()
        if not any(map(_could_run, below)):
            # A long gap between two looks is the machine's delay, and only a little of it is counted; but for what the
            # last look took by itself: a program can make itself hard to look at.
            self.blocked_s += min(now - self.looked, 4 * TICK + self.looking_s)
        self.looked = now
        used = self._used(below)
        if len(below) > PROCESSES:
            self.over = "processes"  # first, since a crowd keeps this process waiting while it uses up the time
        elif used > bounds.cpu_s:
            self.over = "cpu"
        elif self.blocked_s > bounds.blocked_s:
            self.over = "blocked"
        elif bounds.memory_bytes is not None and _holds_over(bounds.memory_bytes, below):
            self.over = "memory"
        self.looking_s = time.process_time() - began

    def _used(self, below: Sequence[_Process]) -> float:
        """
        Seconds of the processor: what was waited for and what is alive, or all that was seen, if that is more. The
        kernel adds the time of children that a program leaves it to reap to nobody's.
        """
        seen = {(process.pid, process.begun): process.alone_s for process in below}
        self.gone_s += sum(used for key, used in self.seen.items() if key not in seen)
        self.seen = seen
        told = _spent() - self.before_s + sum(process.cpu_s for process in below)
        return max(told, self.gone_s + sum(seen.values()))

    def end(self) -> dict[str, Any]:
        """How it ended, as a head. What used its time up between two looks is over it all the same."""
        used = self._used(())
        if self.over is None and used > self.bounds.cpu_s:
            self.over = "cpu"
        code = self.process.returncode if self.status is not None else None
        killed = self.over is None and code is not None and code < 0
        return {
            "status": code if code is not None and code >= 0 and self.over is None else None,
            "signal": -code if killed and code is not None else None,
            "over": "cpu" if killed and code == -signal.SIGXCPU else self.over,
            "failed": None,
            "cpu_s": used,
            "blocked_s": self.blocked_s,
        }


def _signalled(number: signal.Signals, processes: Sequence[_Process]) -> None:
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


def _end_all() -> bool:
    """
    Kill and wait for whatever descends from this process; whether nothing is left.

    They are all stopped first, as often as new ones appear: what is stopped forks no more, and keeps its place among as
    many processes as the room allows, so that others can't fork either.
    """
    until = time.monotonic() + ENDING
    stopped: set[int] = set()
    while (fresh := [process for process in _below() if process.pid not in stopped]) and time.monotonic() < until:
        _signalled(signal.SIGSTOP, fresh)
        stopped.update(process.pid for process in fresh)
    while below := _below():
        _signalled(signal.SIGKILL, below)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if time.monotonic() > until:
            return False
        time.sleep(0.0005)
    return True


def _confinement(cpu_s: float) -> Callable[[], None]:
    """
    What a new process does before its program starts: it can't touch this one or its parent from then on, dies with it,
    is the first to go where memory is short, and is limited.
    """
    machine = os.uname().machine
    program = watcher_filter(machine, (os.getpid(), os.getppid()), os.getpgrp()) if confined() else b""

    def confine() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        prctl(PR_SET_DUMPABLE, 1)  # without it the next file is root's
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 2))
        if program:
            install(program)

    return confine


def run(
    argv: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    stdin: bytes,
    bounds: Bounds,
    *,
    beat: Callable[[], None],
) -> tuple[dict[str, Any], bytes, bytes]:
    """
    How a program ended, and its two outputs; `beat` is called about every second until then.

    The head has `status`, or the `signal` that it died of, or what it was `over` (`cpu`, `blocked`, `memory`, `output`,
    `processes`, or `left` where something could not be ended), or why it `failed` to start.
    """
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=dict(env),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
            preexec_fn=_confinement(bounds.cpu_s),  # noqa: PLW1509 - this program has one thread
        )
    except (OSError, ValueError) as error:
        failed = f"{type(error).__name__}: {error}"[:300]
        head = {"status": None, "signal": None, "over": None, "failed": failed, "cpu_s": 0.0, "blocked_s": 0.0}
        return head, b"", b""
    started = _Run(process, stdin, bounds, beat)
    started.finish()
    out, err = (bytes(kept[: bounds.output_bytes]) for kept in started.read.values())
    for key in list(started.pipes.get_map().values()):
        started._close(key)  # noqa: SLF001 - this module's own
    started.pipes.close()
    return started.end(), out, err
