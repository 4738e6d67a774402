"""
The judge's end of the zygote: opens a room, sends the source, runs jobs, and reads the zygote's frames.

Nothing that comes out of the room is trusted: frames are bounded, carry the job's nonce, and are claims only.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import struct
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from anyio.abc import ByteStream

from harness.clock import fresh_token
from harness.errors import RefereeError

__all__ = [
    "PROTOCOL",
    "Cell",
    "CellLost",
    "Job",
    "Listener",
    "Message",
    "prepare",
    "sing",
    "zygote_argv",
]

PROTOCOL = 1
SILENCE_S = 60.0
"""The zygote says something every second; after this long without a word it is lost."""
START_S = 60.0
_NONCE = 16
_MAX_FRAME = (64 << 20) + 64
_SENT = ("referees.evalplus_confine", "referees.evalplus_child", "referees.evalplus_zygote")
_BOOT = """
import sys, types
sys.modules["referees"] = types.ModuleType("referees")
for name, text in {sources}:
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
module.main()
"""
_GREETING = b"\0" * _NONCE
_LENGTH = struct.Struct("<I")
_TIME = struct.Struct("<Q")


class CellLost(Exception):  # noqa: N818 - an inner signal, always turned into a verdict or a RefereeError
    """The zygote is gone or does not keep to its protocol."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One candidate and one run of calls. Times are in seconds, sizes in bytes; `inline` is the largest value sent."""

    code: bytes
    entry: str
    prelude: str
    inputs: Sequence[bytes]
    limits: Sequence[float]
    build: float
    budget: float
    memory: int
    inline: int = 8 << 20

    @property
    def wall(self) -> float:
        """Seconds by the clock: a backstop for a starved machine, never a verdict on the candidate."""
        return 120 + 20 * self.budget

    def payload(self) -> bytes:
        """The job as the zygote reads it."""
        return marshal.dumps(
            {
                "code": self.code,
                "entry": self.entry,
                "prelude": self.prelude,
                "inputs": list(self.inputs),
                "limits": list(self.limits),
                "build": self.build,
                "budget": self.budget,
                "memory": self.memory,
                "inline": self.inline,
                "wall": self.wall,
            },
            2,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One frame of the child's that the zygote passed on, and the CPU seconds since the one before."""

    kind: str
    payload: bytes
    cpu_s: float

    @property
    def digest(self) -> bytes:
        """How the zygote names a value that it does not send whole: SHA-256 and length."""
        return hashlib.sha256(self.payload).digest() + _TIME.pack(len(self.payload))


Listener: TypeAlias = Callable[[Message], Awaitable[bool]]
"""Told each message as it comes; False ends the job."""


@cache
def zygote_argv() -> tuple[str, ...]:
    """The command that turns a room into a cell. `-I` would ignore PYTHONHASHSEED, so its parts are given singly."""
    here = Path(__file__).parent
    sources = [(name, (here / f"{name.partition('.')[2]}.py").read_text(encoding="utf-8")) for name in _SENT]
    script = _BOOT.replace("{sources}", repr(sources))
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    clean = ("env", "-i", path, "PYTHONHASHSEED=0", "LC_ALL=C.UTF-8", "TZ=UTC")
    return (*clean, "python3", "-P", "-s", "-S", "-B", "-c", script)


class Cell:
    """A living zygote at the other end of `stream`. `python` is its version."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._buffer = bytearray()
        self._busy = False
        self.python = ""

    @property
    def usable(self) -> bool:
        """Whether the last job was seen to its end."""
        return not self._busy

    async def greet(self) -> None:
        """Wait for the zygote's first word. Raises `CellLost` if it is not a zygote of ours."""
        kind, payload = await self._frame(_GREETING, START_S)
        try:
            hello: dict[str, Any] = json.loads(payload)
            protocol, self.python, confined = hello["protocol"], str(hello["python"]), hello["filter"]
        except (ValueError, KeyError, TypeError) as error:
            raise CellLost(f"the zygote's greeting can't be read: {payload[:80]!r}") from error
        if kind != "R" or protocol != PROTOCOL:
            raise CellLost(f"the zygote speaks protocol {protocol!r}, expected {PROTOCOL}")
        if confined is not True:
            raise RefereeError(
                f"the room's machine is {hello.get('machine')!r}: candidates can be confined on x86_64 and aarch64 only"
            )

    async def run(self, job: Job, listen: Listener) -> str:
        """
        Run `job`, telling `listen` each message, and return how it ended (`done`, `stopped`, `timeout:cpu`, ...).

        Raises `CellLost` when the zygote is gone; after that, or after a cancellation, the cell is of no more use.
        """
        if self._busy:
            raise CellLost("an earlier job was left in the middle")
        self._busy = True
        try:
            with anyio.fail_after(job.wall + SILENCE_S):
                ending = await self._see_through(job, listen)
        except TimeoutError as error:
            raise CellLost(f"the zygote did not end a job in {job.wall + SILENCE_S:g} s") from error
        self._busy = False
        return ending

    async def _see_through(self, job: Job, listen: Listener) -> str:
        nonce = bytes.fromhex(fresh_token(_NONCE))
        await self._send(b"J" + job.payload())
        await self._send(b"N" + nonce)
        asked_to_stop = False
        while True:
            kind, payload = await self._frame(nonce, SILENCE_S)
            if kind == "Z":
                return payload[:80].decode("ascii", "replace")
            if kind == "H" or asked_to_stop:
                continue
            if len(payload) < _TIME.size:
                raise CellLost("a frame without its time")
            cpu_s = _TIME.unpack_from(payload)[0] / 1e9
            if not await listen(Message(kind=kind, payload=payload[_TIME.size :], cpu_s=cpu_s)):
                asked_to_stop = True
                await self._send(b"K" + nonce)

    async def _send(self, frame: bytes) -> None:
        try:
            with anyio.fail_after(SILENCE_S):
                await self._stream.send(_LENGTH.pack(len(frame) - 1) + frame)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError, OSError) as error:
            raise CellLost(f"the zygote takes no more jobs ({type(error).__name__})") from error

    async def _frame(self, nonce: bytes, patience_s: float) -> tuple[str, bytes]:
        """The next frame's kind and payload."""
        if (frame := self._whole()) is None:
            try:
                with anyio.fail_after(patience_s):
                    while (frame := self._whole()) is None:
                        self._buffer += await self._stream.receive()
            except TimeoutError as error:
                raise CellLost(f"no word from the zygote for {patience_s:g} s") from error
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
                raise CellLost(f"the zygote's channel ended ({type(error).__name__})") from error
        if frame[:_NONCE] != nonce:
            raise CellLost("a frame that does not belong to this job")
        return chr(frame[_NONCE]), frame[_NONCE + 1 :]

    def _whole(self) -> bytes | None:
        """Take the next frame off the buffer if all of it is there."""
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if not _NONCE < length <= _MAX_FRAME:
            raise CellLost(f"a frame of {length} bytes")
        end = _LENGTH.size + length
        if len(self._buffer) < end:
            return None
        frame = bytes(self._buffer[_LENGTH.size : end])
        del self._buffer[:end]
        return frame


_CANARY = Job(
    code=b"def canary(x):\n    return [x, x + 1]\n",
    entry="canary",
    prelude="",
    inputs=[marshal.dumps([41], 2)],
    limits=[5.0],
    build=5.0,
    budget=10.0,
    memory=256 << 20,
)


async def sing(cell: Cell) -> None:
    """Run a program whose answer we know. Raises `CellLost` when the cell gives another."""
    heard: list[tuple[str, bytes]] = []

    async def listen(message: Message) -> bool:
        heard.append((message.kind, message.payload))
        return True

    ending = await cell.run(_CANARY, listen)
    if heard != [("B", b""), ("V", marshal.dumps([41, 42], 2)), ("E", b"")] or ending != "done":
        raise CellLost(f"the cell judged a known program wrongly: {heard!r:.200}, {ending}")


async def prepare(cell: Cell, python: str) -> RefereeError | None:
    """Hear the greeting and judge a known program; what is wrong with the cell, or None."""
    try:
        await cell.greet()
        if not f"{cell.python}.".startswith(f"{python}."):
            return RefereeError(
                f"the room has Python {cell.python}, and the suite is pinned to {python}: judge in an image that has "
                f"{python}, or set the referee's option `python` (which makes it another suite)"
            )
        await sing(cell)
    except CellLost as error:
        return RefereeError(f"no zygote in the room: {error}")
    except RefereeError as error:
        return error
    return None
