"""
The judge's end of the zygote: opens a room, sends the source, runs jobs, and reads the zygote's frames.

Nothing that comes out of the room is trusted: frames are bounded, carry the job's nonce, and are claims only.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import math
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from anyio.abc import ByteStream

from harness.clock import fresh_token
from harness.errors import RefereeError, WorkspaceError

__all__ = [
    "HEAD",
    "PROTOCOL",
    "Cell",
    "CellLost",
    "Ending",
    "Frame",
    "Frames",
    "Job",
    "Listener",
    "digest_of",
    "packed",
    "prepare",
    "sing",
    "zygote_argv",
]

PROTOCOL = 4
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
_LAST_WORD = _GREETING + b"Q"
_LAST_BYTES = len(_LAST_WORD) + 8
_BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)
HEAD = struct.Struct("<BI")
"""What stands before a child's payload: kind and length."""
_LENGTH = struct.Struct("<I")
_TIME = struct.Struct("<Q")
_SECONDS = struct.Struct("<d")


class CellLost(Exception):  # noqa: N818 - an inner signal, always turned into a verdict or a RefereeError
    """The zygote ended in a living room, or does not keep to its protocol. A lost room is a `WorkspaceError`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """
    One candidate and one run of `calls` calls from `first` on. `inputs` are all of the tier's, as `packed` makes them.

    Times are in seconds of CPU, sizes in bytes. A call may take `least`, or what `longer` says by its index; `inline`
    is the largest value sent whole, unless all but short ones are named by their gist, which is `quick`; a `timed` job
    tells the CPU time of each call, and of a gist the value as well, as only a reference may.
    """

    code: bytes
    entry: str
    prelude: str
    inputs: bytes
    calls: int
    build: float
    least: float
    budget: float
    memory: int
    longer: Mapping[int, float] = field(default_factory=dict)
    first: int = 0
    inline: int = 8 << 20
    quick: bool = True
    timed: bool = False

    @property
    def wall(self) -> float:
        """Seconds by the clock: a backstop for a starved machine, never a verdict on the candidate."""
        return 120 + 20 * self.budget

    def frames(self, nonce: bytes) -> bytes:
        """The job as the zygote and its child read it."""
        limits = {
            "first": self.first,
            "most": (2 if self.timed else 1) * (self.calls - self.first) + 2,
            "build": self.build,
            "least": self.least,
            "longer": dict(self.longer),
            "budget": self.budget,
            "memory": self.memory,
            "inline": self.inline,
            "quick": self.quick,
            "timed": self.timed,
            "wall": self.wall,
        }
        candidate = marshal.dumps((self.code, self.entry, self.prelude), 2)
        parts = ((b"J", marshal.dumps(limits, 2)), (b"C", candidate), (b"I", self.inputs), (b"N", nonce))
        return b"".join(piece for kind, body in parts for piece in (_LENGTH.pack(len(body)), kind, body))


def packed(blobs: Sequence[bytes]) -> bytes:
    """The inputs of a tier as a job has them: the marshalled arguments of each call."""
    return marshal.dumps(list(blobs), 2)


Frame: TypeAlias = tuple[str, bytes]
"""Kind and payload of what the child sent: a claim."""


def digest_of(payload: bytes) -> bytes:
    """How the child names a value that it does not send whole: SHA-256 and length."""
    return hashlib.sha256(payload).digest() + _TIME.pack(len(payload))


Listener: TypeAlias = Callable[[bytes], Awaitable["float | None"]]
"""
Told what the child sent, in pieces that may end anywhere. Says how many CPU seconds the job may still take, when that
is less than it was given: 0 ends it at once.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How a job ended (`done`, `stopped`, `timeout:cpu`, ...), and the CPU seconds that the child used."""

    word: str
    cpu_s: float


class Frames:
    """Reads the stream of a child's frames, as it comes in pieces."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def take(self, piece: bytes) -> list[Frame]:
        """The frames that `piece` completes. Raises `CellLost` for one that is too long to be any."""
        buffer = self._buffer
        buffer += piece
        frames: list[Frame] = []
        at, end = 0, len(buffer)
        with memoryview(buffer) as view:
            while end - at >= HEAD.size:
                kind, length = HEAD.unpack_from(view, at)
                if length > _MAX_FRAME:
                    raise CellLost(f"a frame of {length} bytes in a frame")
                if end - at - HEAD.size < length:
                    break
                at += HEAD.size
                frames.append((chr(kind), bytes(view[at : at + length])))
                at += length
        del buffer[:at]
        return frames


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
        """
        Wait for the zygote's first word. Raises `CellLost` if it is not a zygote of ours, and `WorkspaceError` when
        there is none.
        """
        try:
            with anyio.fail_after(START_S):
                kind, payload = await self._frame(_GREETING)
        except TimeoutError as error:
            raise WorkspaceError(f"no word from the room for {START_S:g} s") from error
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

    async def run(self, job: Job, listen: Listener) -> Ending:
        """
        Run `job`, telling `listen` what comes, and return how it ended.

        Raises what `listen` raises, `CellLost` when the zygote is gone, and `WorkspaceError` when its room is, or has
        no word for us; after that, or after a cancellation, the cell is of no more use.
        """
        if self._busy:
            raise CellLost("an earlier job was left in the middle")
        self._busy = True
        last = anyio.current_time() + job.wall + SILENCE_S
        with anyio.move_on_after(SILENCE_S) as patience:
            ending = await self._see_through(job, listen, patience, last)
            self._busy = False
            return ending
        if anyio.current_time() >= last:
            raise WorkspaceError(f"the room did not end a job in {job.wall + SILENCE_S:g} s")
        raise WorkspaceError(f"the room neither took nor said anything for {SILENCE_S:g} s")

    async def _see_through(self, job: Job, listen: Listener, patience: anyio.CancelScope, last: float) -> Ending:
        """A job to its end; `patience` is moved on with each word of the room, never beyond the moment `last`."""
        nonce = bytes.fromhex(fresh_token(_NONCE))
        await self._send(job.frames(nonce))
        left, owed = math.inf, b""
        while True:
            # What the judge has to say is most often too late: the job's end is there already.
            if owed and not self._waiting():
                await self._send(owed)
                owed = b""
            kind, payload = await self._frame(nonce)
            if kind == "Z":
                if len(payload) < _TIME.size:
                    raise CellLost("an end without its time")
                word = payload[_TIME.size :][:80].decode("ascii", "replace")
                return Ending(word=word, cpu_s=_TIME.unpack_from(payload)[0] / 1e9)
            if kind == "S" and left:
                patience.deadline = math.inf  # what the judge makes of it is no silence of the room's
                if (most := await listen(payload)) is not None and most < left:
                    left = most
                    owed = _LENGTH.pack(_NONCE + _SECONDS.size) + b"K" + nonce + _SECONDS.pack(left)
            patience.deadline = min(anyio.current_time() + SILENCE_S, last)

    async def _send(self, frames: bytes) -> None:
        try:
            await self._stream.send(frames)
        except _BROKEN:
            return  # its last words say why, and are read next

    async def _frame(self, nonce: bytes) -> tuple[str, bytes]:
        """The next frame's kind and payload."""
        if (frame := self._whole()) is None:
            try:
                while (frame := self._whole()) is None:
                    self._buffer += await self._stream.receive()
            except (anyio.EndOfStream, *_BROKEN) as error:
                raise self._ended(error) from error
        if frame.startswith(_LAST_WORD):
            raise CellLost(f"the zygote ended, status {frame[len(_LAST_WORD) :][:8].decode('ascii', 'replace')}")
        if frame[:_NONCE] != nonce:
            raise CellLost("a frame that does not belong to this job")
        return chr(frame[_NONCE]), frame[_NONCE + 1 :]

    def _ended(self, error: Exception) -> Exception:
        """
        What the end of the channel means. If the zygote ended alone, the last words are whose it was, be they behind a
        frame that it could not finish; if nobody was left to say them, all of its room has ended.
        """
        if _LAST_WORD in self._buffer[-_LAST_BYTES:]:
            return CellLost("the zygote ended in the middle of a frame")
        return WorkspaceError(
            f"the room was lost ({type(error).__name__}): nothing in it outlived the zygote, which no candidate can do"
        )

    def _waiting(self) -> bool:
        """Whether a whole frame is there to be taken."""
        buffer = self._buffer
        return len(buffer) >= _LENGTH.size and len(buffer) >= _LENGTH.size + _LENGTH.unpack_from(buffer)[0]

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
    inputs=packed([marshal.dumps([41], 2)]),
    calls=1,
    build=5.0,
    least=5.0,
    budget=10.0,
    memory=256 << 20,
)
_SUNG = marshal.dumps([41, 42], 2)
_SONG = b"".join((HEAD.pack(ord("B"), 0), HEAD.pack(ord("V"), len(_SUNG)), _SUNG, HEAD.pack(ord("E"), 0)))


async def sing(cell: Cell) -> None:
    """Run a program whose answer we know. Raises `CellLost` when the cell gives another, and what `run` raises."""
    heard = bytearray()

    async def listen(piece: bytes) -> float | None:
        heard.extend(piece)
        return None if len(heard) <= len(_SONG) else 0.0

    ending = await cell.run(_CANARY, listen)
    if heard != _SONG or ending.word != "done":
        raise CellLost(f"the cell judged a known program wrongly: {bytes(heard)!r:.200}, {ending.word}")


async def prepare(cell: Cell, python: str) -> RefereeError | WorkspaceError | None:
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
    except (RefereeError, WorkspaceError) as error:
        return error
    return None
