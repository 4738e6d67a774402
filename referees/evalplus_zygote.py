# ruff: noqa: S302 - what is unmarshalled here comes from the judge
"""
The process that runs candidates, inside a sealed workspace. Its source is sent there with those of
`evalplus_child` and `evalplus_confine`; all three import the standard library and each other only.

It holds no expected value and no data set. For each job from the judge (one candidate, one tier) it forks a child,
confines it, passes on the values that the child's calls returned, and kills it. Whatever the child sends is only ever
a claim of what a call returned: the judge, outside, compares. The child can neither reach the judge's channel (its
descriptors are closed, the zygote is not dumpable) nor signal, trace, fork or open a socket (a system call filter).

Judge to zygote: length of the payload (4 bytes, little endian), kind, payload; kinds J (job), N (its nonce), K (stop).
Zygote to judge: length, nonce (16 bytes), kind, payload; kinds R (ready), H (still at it), Z (the job's end), and
those of the child, each with the CPU time since the one before (8 bytes).
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import marshal
import os
import platform
import random
import select
import signal
import struct
import sys
import time

from referees.evalplus_child import run_child
from referees.evalplus_confine import MACHINES, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is slow to import
    from typing import Any

PROTOCOL = 1
POLL_S = 0.05
BEAT_S = 1.0
MAX_FRAME = 64 << 20
MAX_JOB_OUTPUT = 512 << 20

F_SETPIPE_SZ = 1031


def start_child(job: dict[str, Any]) -> tuple[int, int]:
    """Fork a child for `job`; its pid and the end of its channel to read from."""
    reading, writing = os.pipe()
    with contextlib.suppress(OSError):  # a user may own only so many large pipes
        fcntl.fcntl(writing, F_SETPIPE_SZ, 1 << 20)
    random.seed(0)
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:
        nowhere = os.open("/dev/null", os.O_RDWR)
        os.dup2(writing, 63)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        os.dup2(63, 3)
        os.closerange(4, 256)
        run_child(job)
    finally:
        os._exit(0)


def receive_exactly(count: int) -> bytes:
    """The next `count` bytes from the judge. Never reads further, so that no fork inherits what comes after."""
    parts = []
    while count:
        part = os.read(0, min(count, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def receive() -> tuple[bytes, bytes]:
    """The next frame from the judge: kind and payload."""
    (length,) = struct.unpack("<I", receive_exactly(4))
    return receive_exactly(1), receive_exactly(length)


def framed(nonce: bytes, kind: bytes, payload: bytes = b"") -> bytes:
    """One frame to the judge, as bytes."""
    return b"".join((struct.pack("<I", len(nonce) + 1 + len(payload)), nonce, kind, payload))


def emit(*frames: bytes) -> None:
    """Send frames to the judge, in one write if the channel takes it."""
    view = memoryview(b"".join(frames))
    while view:
        view = view[os.write(1, view) :]


def proc(pid: int, name: str) -> str | None:
    """A file of /proc about a child, or None once it has gone."""
    try:
        with open(f"/proc/{pid}/{name}", encoding="latin-1") as file:  # noqa: PTH123 - pathlib is slow to import
            return file.read()
    except OSError:
        return None


class Watch:
    """One child under its limits: CPU time per call, time spent blocked, CPU time in all."""

    def __init__(self, pid: int, job: dict[str, Any]) -> None:
        """Start counting for the build."""
        self.pid, self.job = pid, job
        # The kernel's number for the CPU clock of a process, see clock_getcpuclockid(3): exact, of all its threads.
        self.clock = (~pid << 3) | 2
        self.started = self.sampled = time.monotonic()
        self.call, self.base, self.blocked = -1, 0, 0.0

    def cpu(self) -> int:
        """Nanoseconds of CPU that the child has used."""
        # It goes on being readable until the child has been waited for.
        return time.clock_gettime_ns(self.clock)

    def answered(self) -> int:
        """Note that a call (or the build) is over; the nanoseconds of CPU that it took."""
        now = self.cpu()
        taken, self.base, self.blocked = now - self.base, now, 0.0
        self.call += 1
        return taken

    def limit(self) -> float:
        """Seconds of CPU for what the child does now."""
        limits = self.job["limits"]
        seconds: float = self.job["build"] if self.call < 0 else limits[min(self.call, len(limits) - 1)]
        return seconds

    def over(self) -> bytes | None:
        """Which limit the child is over, or None."""
        cpu = self.cpu()
        if cpu - self.base > self.limit() * 1e9:
            return b"timeout:cpu"
        if cpu > self.job["budget"] * 1e9:
            return b"timeout:budget"
        now = time.monotonic()
        status = proc(self.pid, "stat")
        # Waiting for a processor or a disk is the machine's doing and never held against the child.
        if status is not None and status.rpartition(")")[2].split()[0] in "StT":
            # A long gap between two looks is our own delay: only a little of it is counted.
            self.blocked += min(now - self.sampled, 4 * POLL_S)
        self.sampled = now
        if self.blocked > self.limit() + 1.0:
            return b"timeout:blocked"
        return b"wall" if now - self.started > self.job["wall"] else None


def how_it_died(status: int, usage: Any, memory: int) -> bytes:
    """The end of a child that we did not kill."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return b"timeout:budget"
        # No candidate can send a signal: a SIGKILL comes from the kernel, out of memory.
        if number == signal.SIGKILL and usage.ru_maxrss * 1024 > min(memory, 256 << 20) // 2:
            return b"memory:killed"
        return b"crash:signal %d" % number
    return b"crash:exit status %d" % os.WEXITSTATUS(status)


def reap(pid: int, memory: int, patience: float) -> bytes:
    """Kill the child, wait for it, and say how it died if it was dying by itself within `patience` seconds."""
    until = time.monotonic() + patience
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return how_it_died(status, usage, memory)
        if time.monotonic() >= until:
            break
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    os.wait4(pid, 0)
    return b"crash:closed its channel and went on"


def frames_of(buffer: bytearray) -> list[tuple[bytes, bytes]]:
    """Take the whole frames off `buffer`, up to what is none; `ValueError` when it begins with that."""
    frames, start = [], 0
    while len(buffer) - start >= 5:
        kind, (length,) = bytes(buffer[start : start + 1]), struct.unpack_from("<I", buffer, start + 1)
        if kind not in b"BnimPVDOXME" or length > MAX_FRAME:
            if not frames:
                raise ValueError
            break
        if len(buffer) - start - 5 < length:
            break
        frames.append((kind, bytes(buffer[start + 5 : start + 5 + length])))
        start += 5 + length
    del buffer[:start]
    return frames


class Relay:
    """Passes on a child's frames, and notices when they are more than any honest child's."""

    def __init__(self, watch: Watch, nonce: bytes) -> None:
        """For one job."""
        self.watch, self.nonce = watch, nonce
        self.buffer, self.total, self.most = bytearray(), 0, len(watch.job["inputs"]) + 2

    def take(self, data: bytes) -> bytes | None:
        """
        Pass on what `data` completes; why the job is over, or None. What comes before a breach is passed on first, so
        that the first event decides however the child's bytes happen to be cut.
        """
        self.buffer += data
        self.total += len(data)
        try:
            while frames := frames_of(self.buffer):
                if over := self.passed_on(frames):
                    return over
        except ValueError:
            return b"crash:broke the protocol"
        return b"crash:sent too much" if self.total > MAX_JOB_OUTPUT else None

    def passed_on(self, frames: list[tuple[bytes, bytes]]) -> bytes | None:
        """Pass on as many as an honest child may send; why the job is over, or None."""
        honest, self.most = frames[: self.most], self.most - len(frames)
        pack = struct.Struct("<Q").pack
        emit(*(framed(self.nonce, kind, pack(self.watch.answered()) + payload) for kind, payload in honest))
        if self.most < 0:
            return b"crash:sent too much"
        return b"done" if any(kind in b"EnimP" for kind, _ in honest) else None


def supervise(watch: Watch, channel: int, nonce: bytes) -> bytes:
    """Pass on the child's frames until it ends, a limit is hit or the judge has seen enough; why it ended."""
    relay, beat = Relay(watch, nonce), time.monotonic()
    while True:
        readable = select.select([channel, 0], [], [], POLL_S)[0]
        if 0 in readable and receive() == (b"K", nonce):
            return b"stopped"
        if channel in readable:
            data = os.read(channel, 1 << 20)
            if not data:
                return b"closed"
            if over := relay.take(data):
                return over
        now = time.monotonic()
        if now - watch.sampled >= POLL_S and (over := watch.over()):
            return over
        if now - beat >= BEAT_S:
            beat = now
            emit(framed(nonce, b"H"))


def serve(job: dict[str, Any]) -> None:
    """One job, from the fork to the child's end."""
    pid, channel = start_child(job)
    # Only now, so that the child's memory does not hold it.
    kind, nonce = receive()
    if kind != b"N":
        os._exit(3)
    ending = supervise(Watch(pid, job), channel, nonce)
    # Kept open until the child is dead: a write to a closed channel would kill it, and hide what it died of.
    died = reap(pid, job["memory"], 0.2 if ending == b"closed" else 0.0)
    os.close(channel)
    emit(framed(nonce, b"Z", died if ending == b"closed" else ending))


def main() -> None:
    """Greet the judge and serve its jobs until it hangs up."""
    os.environ.clear()
    sys.argv[:] = [""]
    os.chdir("/")
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    preload = "typing math cmath re collections itertools functools heapq bisect string operator copy decimal fractions"
    for name in f"{preload} statistics datetime dataclasses enum abc collections.abc".split():
        __import__(name)
    sys.set_int_max_str_digits(0)
    gc.collect()
    gc.freeze()
    known = platform.machine() in MACHINES
    hello = {"protocol": PROTOCOL, "python": platform.python_version(), "machine": platform.machine(), "filter": known}
    emit(framed(b"\0" * 16, b"R", json.dumps(hello).encode()))
    while True:
        kind, payload = receive()
        if kind == b"J":
            serve(marshal.loads(payload))
