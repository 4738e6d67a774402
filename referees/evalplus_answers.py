"""
What a reference gave on one tier, as the stream of bytes in which a candidate's process sends it.

A candidate that gives the same values sends the same bytes: one comparison tells, and nothing has to be read.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

from referees.evalplus_cell import HEAD, Frame
from referees.evalplus_values import parse

__all__ = ["BUILT", "END", "Answers"]

BUILT, END = (HEAD.pack(kind, 0) for kind in b"BE")
"""The first and the last frame of a run that goes to its end."""
_BEHIND = struct.Struct("<QI")
"""What stands before a compressed frame in a file: whose it is, and its length."""


def _frame(frame: Frame) -> bytes:
    kind, payload = frame
    return HEAD.pack(ord(kind), len(payload)) + payload


def _read_large(data: bytes, at: int, calls: int) -> dict[int, bytes]:
    """The frames behind gists, compressed. Raises `ValueError` where there is something else."""
    large: dict[int, bytes] = {}
    while at < len(data):
        try:
            index, length = _BEHIND.unpack_from(data, at)
        except struct.error:
            raise ValueError(f"{len(data) - at} bytes are left behind the answers") from None
        at += _BEHIND.size
        if index >= calls or at + length > len(data):
            raise ValueError(f"answer {index} of {calls} has {length} bytes, and {len(data) - at} are there")
        large[index] = data[at : at + length]
        at += length
    return large


@dataclass(frozen=True, kw_only=True)
class Answers:
    """
    `script` holds the frames from `BUILT` to `END`. Call `index` begins at `starts[index]`, and one more start says
    where `END` does. `cpu_s` are the CPU seconds of each call.

    Kinds are `V` the value's bytes, `Q` the gist of a large value, `O` something that is no plain data (only its being
    there counts). Behind each gist stands, in `large` by the call's index, what to hold values against that have
    another one: `V`, or `D`, the digest of a value too large to be kept. It is seldom asked for, and kept compressed.
    """

    script: bytes
    starts: Sequence[int]
    cpu_s: Sequence[float]
    large: Mapping[int, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, frames: Iterable[Frame], cpu_s: Iterable[float], large: Mapping[int, Frame] | None = None) -> Answers:
        """The answers that are made of one frame a call, with what stands behind gists."""
        pieces = [BUILT, *map(_frame, frames)]
        starts = array("Q", accumulate(map(len, pieces)))
        behind = {index: zlib.compress(_frame(frame), 1) for index, frame in (large or {}).items()}
        return cls(script=b"".join([*pieces, END]), starts=starts, cpu_s=array("d", cpu_s), large=behind)

    @classmethod
    def read(cls, data: bytes, calls: int) -> Answers:
        """What `written` made of so many calls. Raises `ValueError` for anything else."""
        starts, cpu_s = array("Q"), array("d")
        starts.frombytes(data[: 8 * (calls + 1)])
        cpu_s.frombytes(data[8 * (calls + 1) : 8 * (2 * calls + 1)])
        if sys.byteorder == "big":
            starts.byteswap()
            cpu_s.byteswap()
        begin = 8 * (2 * calls + 1)
        end = begin + starts[-1] + len(END) if len(cpu_s) == calls else 0
        script = data[begin:end]
        if not script.endswith(END):
            raise ValueError(f"{len(data)} bytes are not the answers to {calls} calls")
        return cls(script=script, starts=starts, cpu_s=cpu_s, large=_read_large(data, end, calls))

    def written(self) -> bytes:
        """All of it as bytes, the same ones on every machine."""
        parts = array("Q", self.starts), array("d", self.cpu_s)
        if sys.byteorder == "big":
            for part in parts:
                part.byteswap()
        large = (part for index, data in self.large.items() for part in (_BEHIND.pack(index, len(data)), data))
        return b"".join([*(part.tobytes() for part in parts), self.script, *large])

    def frame(self, index: int) -> Frame:
        """Kind and payload of a call."""
        start, end = self.starts[index], self.starts[index + 1]
        return chr(self.script[start]), self.script[start + HEAD.size : end]

    def exact(self, index: int) -> Frame:
        """Kind and payload of a call, of a large value as well: what any value can be held against."""
        data = self.large.get(index)
        if data is None:
            return self.frame(index)
        whole = zlib.decompress(data)
        return chr(whole[0]), whole[HEAD.size :]

    def value(self, index: int) -> Any:
        """The value of a call whose kind is `V`, when exact."""
        data = self.exact(index)[1]
        return parse(data, max_nodes=len(data) + 1)

    def whole(self, until: int) -> int:
        """How many calls end at or before byte `until` of the script; -1 when not even `BUILT` does."""
        return bisect_right(self.starts, until) - 1

    @cached_property
    def size(self) -> int:
        """About how many bytes of memory they take."""
        return len(self.script) + 16 * len(self.starts) + sum(map(len, self.large.values()))

    @cached_property
    def longest_s(self) -> float:
        """CPU seconds of the longest call."""
        return max(self.cpu_s, default=0.0)

    @cached_property
    def total_s(self) -> float:
        """CPU seconds of the whole tier."""
        return sum(self.cpu_s)
