"""
One run of one program, in the subject's room: fed and read within bounds, watched, and ended with all that it started.

A process that loses its parent comes to this one, so nothing that a program starts gets away; time of the processor
and memory are counted over all of it. It runs inside workspaces, so it uses the standard library only.
"""

from __future__ import annotations

import ctypes
import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Bounds", "adopt", "run"]

TICK = 0.02
"""Seconds between two looks at what a program uses."""
PROCESSES = 64
"""Processes that a program may have at once, itself among them; a room has places for twice as many."""
ENDING = 5.0
"""Seconds that ending a program and all that it started may take."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_PAGE = resource.getpagesize()
_CLOCK = os.sysconf("SC_CLK_TCK")
_libc = ctypes.CDLL(None)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a program may use; None is no bound but the room's."""

    output_bytes: int
    memory_bytes: int | None = None
    cpu_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class _Process:
    """A line of /proc: times in seconds, memory in bytes."""

    pid: int
    parent: int
    cpu_s: float
    memory_bytes: int


def adopt() -> None:
    """Become the parent of every process below this one that loses its own."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _processes() -> Iterator[_Process]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                text = (entry / "stat").read_bytes()
                fields = text[text.rindex(b")") + 2 :].split()
                yield _Process(
                    pid=int(entry.name),
                    parent=int(fields[1]),
                    cpu_s=sum(map(int, fields[11:15])) / _CLOCK,
                    memory_bytes=int(fields[21]) * _PAGE,
                )


def _below() -> list[_Process]:
    """Every process that descends from this one."""
    children: dict[int, list[_Process]] = {}
    for process in _processes():
        children.setdefault(process.parent, []).append(process)
    found, waiting = [], [os.getpid()]
    while waiting:
        next_ones = children.pop(waiting.pop(), [])
        found += next_ones
        waiting += [process.pid for process in next_ones]
    return found


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

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes, bounds: Bounds) -> None:
        self.process = process
        self.bounds = bounds
        self.before_s = _spent()
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
        looked = time.monotonic()
        while self.over is None and not self._ended():
            idle = not any(key.fd in self.read for key in self.pipes.get_map().values())
            self._pump(0.001 if idle else TICK)
            if time.monotonic() - looked >= TICK:
                looked = time.monotonic()
                self._watch()
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
        below = _below()
        bounds = self.bounds
        used = _spent() - self.before_s + sum(process.cpu_s for process in below)
        if len(below) > PROCESSES:
            self.over = "processes"  # first, since a crowd keeps this process waiting while it uses up the time
        elif bounds.cpu_s is not None and used > bounds.cpu_s:
            self.over = "cpu"
        elif bounds.memory_bytes is not None and _holds_over(bounds.memory_bytes, below):
            self.over = "memory"

    def end(self) -> dict[str, Any]:
        """How it ended, as a head. What used its time up between two looks is over it all the same."""
        used = _spent() - self.before_s
        if self.over is None and self.bounds.cpu_s is not None and used > self.bounds.cpu_s:
            self.over = "cpu"
        code = self.process.returncode if self.status is not None else None
        killed = self.over is None and code is not None and code < 0
        return {
            "status": code if code is not None and code >= 0 and self.over is None else None,
            "signal": -code if killed and code is not None else None,
            "over": "cpu" if killed and code == -signal.SIGXCPU else self.over,
            "failed": None,
            "cpu_s": used,
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


def _confine(cpu_s: float | None) -> None:
    """In the new process: die with the server, be the first to go where memory is short, and be limited."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if cpu_s is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 2))


def run(
    argv: Sequence[str], folder: Path, env: Mapping[str, str], stdin: bytes, bounds: Bounds
) -> tuple[dict[str, Any], bytes, bytes]:
    """
    How a program ended, and its two outputs. The head has `status`, or the `signal` that it died of, or what it was
    `over` (`cpu`, `memory`, `output`, `processes`, or `left` where something could not be ended), or why it `failed` to
    start.
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
            preexec_fn=lambda: _confine(bounds.cpu_s),  # noqa: PLW1509 - this program has one thread
        )
    except (OSError, ValueError) as error:
        failed = f"{type(error).__name__}: {error}"[:300]
        return {"status": None, "signal": None, "over": None, "failed": failed, "cpu_s": 0.0}, b"", b""
    started = _Run(process, stdin, bounds)
    started.finish()
    out, err = (bytes(kept[: bounds.output_bytes]) for kept in started.read.values())
    for key in list(started.pipes.get_map().values()):
        started._close(key)  # noqa: SLF001 - this module's own
    started.pipes.close()
    return started.end(), out, err
