"""
The process of the subject's room that the harness speaks to: it lays the exhibit down, starts the subject's process,
passes frames on both ways, and ends it when it is over a limit or breaks the protocol.

The exhibit can neither signal it, trace it nor write to its channel. So what it reports is its own word, and an end of
it is the machine's doing. It runs inside workspaces, so it uses the standard library and its neighbours only.
"""

from __future__ import annotations

import io
import json
import os
import select
import signal
import struct
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from referees.pytest_confine import MACHINES, PR_SET_DUMPABLE, prctl
from referees.pytest_subject import become_subject
from referees.pytest_watch import POLL_S, Watch, adopt
from referees.pytest_wire import (
    BEAT,
    FRAME,
    LOAD,
    WireError,
    frame,
    head,
    raw_frame,
    read_frame,
    take_channel,
    write_all,
)

BEAT_S = 1.0
_NUMBER = struct.Struct(">I")


class Over(Exception):  # noqa: N818 - an end, and named so
    """The subject's time is over; the text says how: `done`, `timeout:...`, `memory:...`, `crash:...`, `breach:...`."""


class Frames:
    """Whole frames out of what was read so far."""

    def __init__(self) -> None:
        self.buffer = bytearray()

    def taken(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The frames that `data` completes. Raises `WireError` at what is none."""
        self.buffer += data
        while len(self.buffer) >= 5:
            length, kind = head(bytes(self.buffer[:5]), FRAME + 4)
            if len(self.buffer) < 5 + length:
                return
            body = bytes(self.buffer[5 : 5 + length])
            del self.buffer[: 5 + length]
            yield kind, body


class Monitor:
    """Between the harness (`reader`, `writer`) and the subject's process (`requests`, `answers`)."""

    def __init__(self, channel: tuple[int, int], pipes: tuple[int, int], child: int, order: dict[str, Any]) -> None:
        self.reader, self.writer = channel
        self.requests, self.answers = pipes
        self.child, self.order = child, order
        self.watch, self.spent = Watch(child, order["cpu_s"], order["wall_s"]), 0.0
        self.asking, self.answering = Frames(), Frames()
        self.outgoing = bytearray()
        self.number = 0
        self.awaited: bytes | None = b"H"
        self.last = False
        self.beaten = time.monotonic()

    def run(self) -> str:
        """Pass on what comes until it is over; how it ended."""
        os.set_blocking(self.requests, False)
        try:
            while True:
                self._turn()
        except Over as end:
            return str(end)
        except WireError as error:
            return f"breach:{error}"

    def _turn(self) -> None:
        """One look at both ends, and at the limits."""
        ready, writable, _ = select.select(
            [self.reader, self.answers], [self.requests] if self.outgoing else [], [], POLL_S
        )
        if writable:
            self._push()
        if self.reader in ready:
            self._asked(os.read(self.reader, 1 << 20))
        if self.answers in ready:
            self._answered(os.read(self.answers, 1 << 20))
        elif self._has_ended() and not select.select([self.answers], [], [], 0)[0]:
            raise Over(self._how())
        if over := self.watch.look(lambda: None if self.awaited is None else self.number):
            raise Over(f"timeout:{over}")
        if self.awaited is not None and time.monotonic() - self.beaten > BEAT_S:
            self.beaten = time.monotonic()
            write_all(self.writer, raw_frame(BEAT, b""))

    def _push(self) -> None:
        try:
            del self.outgoing[: os.write(self.requests, self.outgoing)]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self.outgoing.clear()  # how it ended is seen at its other end

    def _asked(self, data: bytes) -> None:
        """Number the harness's requests, and pass them on; `F` is its last word."""
        if not data:
            raise Over("left:the harness hung up")
        for kind, body in self.asking.taken(data):
            self.number += 1
            self.awaited, self.last = b"R", kind == b"F"
            self.outgoing += raw_frame(b"Q" if self.last else b"C", _NUMBER.pack(self.number) + body)

    def _answered(self, data: bytes) -> None:
        """Pass on the one answer that is awaited; any other frame is a breach."""
        if not data:
            until = time.monotonic() + 1.0
            while not self._has_ended() and time.monotonic() < until:
                time.sleep(0.005)
            raise Over(self._how() if self._has_ended() else "crash:it closed its channel and went on")
        for kind, body in self.answering.taken(data):
            if kind != self.awaited:
                raise Over(f"breach:it said {kind!r} where {self.awaited!r} was awaited")
            number = _NUMBER.pack(self.number) if kind == b"R" else b""
            if not body.startswith(number):
                raise Over("breach:it answered a request that nobody made")
            answer = body[len(number) :]
            if len(answer) > FRAME:
                raise Over(f"breach:a message of {len(answer)} bytes: expected at most {FRAME}")
            self.awaited = None
            if self.last:
                raise Over("done:" if answer == b"bye" else "breach:it did not take its leave")
            write_all(self.writer, raw_frame(kind, answer))

    def _has_ended(self) -> bool:
        return os.waitid(os.P_PID, self.child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _how(self) -> str:
        """How a process that ended by itself did."""
        _, status, usage = os.wait4(self.child, 0)
        self.spent = spent = usage.ru_utime + usage.ru_stime
        if not os.WIFSIGNALED(status):
            return f"crash:exit status {os.WEXITSTATUS(status)}"
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU or (number == signal.SIGKILL and spent >= self.order["cpu_s"]):
            return "timeout:cpu"
        if number == signal.SIGKILL and usage.ru_maxrss * 1024 > self.order["memory_bytes"] // 2:
            return "memory:killed by the kernel, out of memory"
        return f"crash:signal {number}"


def _lay(archive: bytes, folder: str) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            path = Path(folder, member.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            source = tar.extractfile(member)
            path.write_bytes(source.read() if source is not None else b"")
            path.chmod(member.mode & 0o755)


def _started(folder: str, order: dict[str, Any], channel: tuple[int, int]) -> tuple[int, tuple[int, int]]:
    """The subject's process, and the two pipes to and from it."""
    asked, requests = os.pipe()
    answers, answered = os.pipe()
    child = os.fork()
    if child == 0:
        for end in (requests, answers, *channel):
            os.close(end)
        become_subject(asked, answered, folder, order)
    os.close(asked)
    os.close(answered)
    return child, (requests, answers)


def main(folder: str) -> None:
    """Load the exhibit, start its process, see it to its end, and say how it ended and what it used."""
    reader, writer = take_channel()
    order = json.loads(read_frame(reader)[1])
    _lay(read_frame(reader, LOAD)[1], folder)
    prctl(PR_SET_DUMPABLE, 0)
    adopt()
    known = os.uname().machine in MACHINES
    write_all(writer, frame(b"L", {"machine": os.uname().machine, "confined": known}))
    if not known:
        sys.exit(1)
    child, pipes = _started(folder, order, (reader, writer))
    monitor = Monitor((reader, writer), pipes, child, order)
    end = monitor.run()
    monitor.watch.end_all()
    used = max(monitor.spent, monitor.watch.cpu_used)
    write_all(writer, frame(b"X", {"end": end[:200], "cpu_s": round(used, 3)}))
