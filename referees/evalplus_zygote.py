# ruff: noqa: S302 - what is unmarshalled here comes from the judge
"""
The process that runs candidates, inside a sealed workspace. Its source is sent there with those of
`evalplus_child` and `evalplus_confine`; all three import the standard library and each other only.

It holds no expected value and no data set. For each job from the judge (one candidate, one tier) it forks a child,
passes on what the child sends, and kills it. Whatever that is, it is only ever a claim of what a call returned: the
judge, outside, compares. The child can neither reach the judge's channel (its descriptors are closed, the zygote is
not dumpable) nor signal, trace, fork or open a socket (a system call filter).

A child inherits the zygote's memory, so that nothing of one candidate may ever lie in it: the child itself fetches its
candidate from the judge's channel, and what children send passes through a buffer that no fork takes along.

Above the zygote is a process that only waits for its end, and tells the judge of it. A zygote that is gone without that
word went with its whole room.

Judge to zygote: length of the payload (4 bytes, little endian), kind, payload; kinds J (a job's limits), C and I (code
and inputs, for the child), N (the job's nonce), K (its nonce, and how many CPU seconds it may still take, as a double;
0 is to stop at once).
Zygote to judge: length, nonce (16 bytes), kind, payload; kinds R (ready), H (still at it), S (what the child sent), Z
(the job's end: CPU time in nanoseconds, 8 bytes, and how), Q (the zygote's end, and how).
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import marshal
import mmap
import os
import select
import signal
import struct
import sys
import time

from referees.evalplus_child import limit_all, run_child
from referees.evalplus_confine import (
    MACHINES,
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    Filter,
    prctl,
)

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is slow to import
    from typing import Any

PROTOCOL = 4
POLL_S = 0.05
NAPS_S = (0.0015, 0.001, 0.002, 0.004)
BEAT_S = 1.0
MAX_FRAME = 64 << 20
MAX_JOB_OUTPUT = 512 << 20
BUFFER_BYTES = 1 << 20
KINDS = b"BnimPVQDOXMTE"
LAST, TIME = b"nimPE", ord("T")
NOBODY = bytes(16)

F_SETPIPE_SZ, F_GETPIPE_SZ, FIONREAD = 1031, 1032, 0x541B


def receive_exactly(count: int) -> bytearray:
    """The next `count` bytes from the judge. Never reads further, so that no fork inherits what comes after."""
    data = bytearray(count)
    view = memoryview(data)
    while view:
        read = os.readv(0, [view[: 1 << 20]])
        if not read:
            os._exit(0)
        view = view[read:]
    return data


def receive() -> tuple[bytes, bytearray]:
    """The next frame from the judge: kind and payload."""
    head = receive_exactly(5)
    return bytes(head[4:]), receive_exactly(int.from_bytes(head[:4], "little"))


def framed(nonce: bytes, kind: bytes, *payload: Any) -> list[Any]:
    """One frame to the judge, in parts."""
    return [struct.pack("<I", len(nonce) + 1 + sum(map(len, payload))) + nonce + kind, *payload]


def emit(frames: list[Any]) -> None:
    """Send frames to the judge, in one write if the channel takes it. Nothing of them is copied."""
    parts = [memoryview(part) for part in frames]
    while parts:
        sent = os.writev(1, parts)
        while parts and sent >= len(parts[0]):
            sent -= len(parts.pop(0))
        if sent:
            parts[0] = parts[0][sent:]


def fetch(job: dict[str, Any]) -> None:
    """In the child: take the candidate and its inputs from the judge's channel."""
    (kind, code), (other, inputs) = receive(), receive()
    if kind + other != b"CI":
        os._exit(3)
    job["code"], job["entry"], job["prelude"] = marshal.loads(code)
    job["inputs"] = marshal.loads(inputs)[job["first"] :]


def start_child(job: dict[str, Any], seal: Filter) -> tuple[int, int]:
    """Fork a child for `job`, and wait until it has fetched the rest of it; its pid, and its channel to read from."""
    reading, writing = os.pipe()
    with contextlib.suppress(OSError):  # a user may own only so many large pipes
        fcntl.fcntl(writing, F_SETPIPE_SZ, BUFFER_BYTES)
    pid = os.fork()
    if pid:
        os.close(writing)
        # Not every byte by itself wakes us: here and later, they gather for a moment.
        time.sleep(NAPS_S[0])
        if os.read(reading, 1) != b"F":
            os._exit(3)
        return pid, reading
    try:
        fetch(job)
        os.write(writing, b"F")
        nowhere = os.open("/dev/null", os.O_RDWR)
        os.dup2(writing, 63)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        os.dup2(63, 3)
        os.closerange(4, 256)
        run_child(job, seal)
    finally:
        os._exit(0)


def waits(pid: int, channel: int) -> bool:
    """Whether every thread of a child waits for something that is not ours: not for us to read what it has sent."""
    states = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - pathlib is slow to import
            with open(f"/proc/{pid}/task/{thread}/stat", encoding="latin-1") as file:  # noqa: PTH123
                states.append(file.read().rpartition(")")[2].split()[0])
    except OSError:
        return False
    # Waiting for a processor or a disk is the machine's doing and never held against the child.
    if not all(state in ("S", "t", "T") for state in states):
        return False
    unread = int.from_bytes(fcntl.ioctl(channel, FIONREAD, bytes(4)), sys.byteorder)
    return 2 * unread < fcntl.fcntl(channel, F_GETPIPE_SZ)


class Watch:
    """One child under its limits: CPU time per call, time spent blocked, CPU time in all."""

    def __init__(self, pid: int, job: dict[str, Any], channel: int) -> None:
        """Start counting for the build."""
        self.pid, self.job, self.channel = pid, job, channel
        # The kernel's number for the CPU clock of a process, see clock_getcpuclockid(3): exact, of all its threads.
        self.clock = (~pid << 3) | 2
        self.started = self.sampled = time.monotonic()
        self.call, self.base, self.blocked = job["first"] - 1, 0, 0.0
        self.built = False
        self.until: float | None = None

    def cpu(self) -> int:
        """Nanoseconds of CPU that the child has used."""
        # It goes on being readable until the child has been waited for.
        return time.clock_gettime_ns(self.clock)

    def answered(self, frames: int) -> None:
        """Note that so many calls (or the build) are over."""
        self.base, self.blocked, self.built = self.cpu(), 0.0, True
        self.call += frames

    def limit(self) -> float:
        """Seconds of CPU for what the child does now."""
        seconds: float = self.job["longer"].get(self.call, self.job["least"]) if self.built else self.job["build"]
        return seconds

    def leave(self, seconds: float) -> None:
        """Let the child use no more than so many seconds of CPU from now on."""
        self.until = self.cpu() + seconds * 1e9

    def over(self) -> bytes | None:
        """Which limit the child is over, or None."""
        cpu = self.cpu()
        if self.until is not None and cpu >= self.until:
            return b"stopped"
        if cpu - self.base > self.limit() * 1e9:
            return b"timeout:cpu"
        if cpu > self.job["budget"] * 1e9:
            return b"timeout:budget"
        now = time.monotonic()
        if waits(self.pid, self.channel):
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


def reap(pid: int, memory: int, patience: float) -> tuple[bytes, int]:
    """
    Kill the child and wait for it. How it died, if it was dying by itself within `patience` seconds, and the
    nanoseconds of CPU that it used.
    """
    until = time.monotonic() + patience
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done or time.monotonic() >= until:
            break
        time.sleep(0.001)
    died = how_it_died(status, usage, memory) if done else b"crash:closed its channel and went on"
    if not done:
        os.kill(pid, signal.SIGKILL)
        usage = os.wait4(pid, 0)[2]
    return died, int((usage.ru_utime + usage.ru_stime) * 1e9)


class Buffer:
    """Memory that what children send passes through. No child has it: it is not copied by a fork."""

    def __init__(self) -> None:
        """Made once, before any child."""
        self.memory = mmap.mmap(-1, BUFFER_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.memory.madvise(mmap.MADV_DONTFORK)
        self.view = memoryview(self.memory)


class Relay:
    """Passes on what a child sends, and notices when that is more than any honest child's."""

    def __init__(self, watch: Watch, buffer: Buffer, nonce: bytes) -> None:
        """For one job."""
        self.watch, self.buffer, self.nonce = watch, buffer, nonce
        self.total, self.most = 0, watch.job["most"]
        self.begun = self.left = self.held = 0
        self.last = False

    def take(self, channel: int) -> bytes | None:
        """
        Pass on what there is; why the job is over, or None. What comes before a breach is passed on, so that the first
        event decides however the child's bytes happen to be cut.
        """
        read = os.readv(channel, [self.buffer.view[self.begun :]])
        if not read:
            return b"closed"
        self.total += read
        end, before = self.begun + read, self.most
        breach, whole = self.scan(end)
        if before != self.most:
            self.watch.answered(before - self.most)
        self.held = whole
        if breach or self.total > MAX_JOB_OUTPUT:
            return breach or b"crash:sent too much"
        if self.last and not self.left:
            return b"done"
        emit(self.rest())
        self.begun = end - whole
        self.buffer.memory.move(0, whole, self.begun)
        return None

    def rest(self) -> list[Any]:
        """What was taken and not yet passed on, as a frame to the judge. At the end of a job it goes with that."""
        held, self.held = self.held, 0
        return framed(self.nonce, b"S", self.buffer.view[:held]) if held else []

    def scan(self, end: int) -> tuple[bytes | None, int]:
        """What is wrong with the frames before `end`, and up to where they can be passed on: not within their heads."""
        at, memory, breach = self.left, self.buffer.memory, None
        while end - at >= 5 and not self.last:
            kind, length = memory[at], int.from_bytes(memory[at + 1 : at + 5], "little")
            if kind not in KINDS or length > MAX_FRAME:
                breach = b"crash:broke the protocol"
                break
            if kind != TIME:
                if not self.most:
                    breach = b"crash:sent too much"
                    break
                self.most -= 1
            self.last = kind in LAST
            at += 5 + length
        self.left = max(0, at - end)
        return breach, min(at, end)


def told_to_end(nonce: bytes) -> float | None:
    """What the judge says, if it is of this job: after how many seconds of CPU it is to end."""
    kind, payload = receive()
    if kind != b"K" or payload[: len(nonce)] != nonce:
        return None
    seconds: float = struct.unpack_from("<d", payload, len(nonce))[0]
    return seconds


def supervise(relay: Relay, channel: int) -> bytes:
    """Pass on what the child sends until it ends, a limit is hit or the judge has seen enough; why it ended."""
    watch, beat, naps = relay.watch, time.monotonic(), iter(NAPS_S[1:])
    while True:
        readable = select.select([channel, 0], [], [], POLL_S)[0]
        if 0 in readable and (seconds := told_to_end(relay.nonce)) is not None:
            watch.leave(seconds)
            if not seconds:
                return b"stopped"
        if channel in readable:
            if (over := relay.take(channel)) is not None:
                return over
            select.select([0], [], [], next(naps, NAPS_S[-1]))
        now = time.monotonic()
        if now - watch.sampled >= POLL_S and (over := watch.over()):
            return over
        if now - beat >= BEAT_S:
            beat = now
            emit(framed(relay.nonce, b"H"))


def serve(job: dict[str, Any], seal: Filter, buffer: Buffer) -> None:
    """One job, from the fork to the child's end."""
    pid, channel = start_child(job, seal)
    # Only now, so that the child's memory does not hold it.
    kind, nonce = receive()
    if kind != b"N":
        os._exit(3)
    relay = Relay(Watch(pid, job, channel), buffer, bytes(nonce))
    ending = supervise(relay, channel)
    # Kept open until the child is dead: a write to a closed channel would kill it, and hide what it died of.
    died, cpu = reap(pid, job["memory"], 0.2 if ending == b"closed" else 0.0)
    os.close(channel)
    end = framed(relay.nonce, b"Z", struct.pack("<Q", cpu), died if ending == b"closed" else ending)
    emit([*relay.rest(), *end])


def preload() -> None:
    """
    Import what candidates import most, and nothing heavier: every page of ours makes every fork slower.

    `random` seeds itself anew in each child, at a price; without that, all have the same chance, and the same one as
    the reference had.
    """
    names = "typing math cmath re collections itertools functools heapq bisect string operator copy datetime enum abc"
    for name in [*names.split(), "collections.abc"]:
        __import__(name)
    register, os.register_at_fork = os.register_at_fork, lambda **_hooks: None
    try:
        __import__("random").seed(0)
    finally:
        os.register_at_fork = register


def go_on_below() -> None:
    """Go on in a child, while this process waits for its end. No candidate's process can reach either of them."""
    if os.fork() == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    try:
        status = os.waitstatus_to_exitcode(os.wait()[1])
        emit(framed(NOBODY, b"Q", b"%d" % status))
    finally:
        os._exit(0)


def main() -> None:
    """Greet the judge and serve its jobs until it hangs up."""
    os.environ.clear()
    sys.argv[:] = [""]
    os.chdir("/")
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    preload()
    go_on_below()
    limit_all()
    sys.set_int_max_str_digits(0)
    python, machine = "{}.{}.{}".format(*sys.version_info[:3]), os.uname().machine
    seal, buffer = Filter() if machine in MACHINES else None, Buffer()
    gc.collect()
    gc.freeze()
    hello = {"protocol": PROTOCOL, "python": python, "machine": machine, "filter": seal is not None}
    emit(framed(NOBODY, b"R", json.dumps(hello).encode()))
    while seal is not None:
        kind, payload = receive()
        if kind == b"J":
            serve(marshal.loads(payload), seal, buffer)
