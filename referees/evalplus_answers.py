"""
What a reference gave on one tier, as the stream of bytes in which a candidate's process sends it.

A candidate that gives the same values sends the same bytes: one comparison tells, and nothing has to be read.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from referees.evalplus_cell import HEAD, Frame
from referees.evalplus_values import parse

__all__ = ["BUILT", "END", "Answers"]

BUILT, END = (HEAD.pack(kind, 0) for kind in b"BE")
"""The first and the last frame of a run that goes to its end."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """
    `script` holds the frames from `BUILT` to `END`. Call `index` begins at `starts[index]`, and one more start says
    where `END` does. `cpu_s` are the CPU seconds of each call.

    Kinds are `V` the value's bytes, `D` the digest of a large value, `O` something that is no plain data (only its
    being there counts).
    """

    script: bytes
    starts: Sequence[int]
    cpu_s: Sequence[float]

    @classmethod
    def of(cls, frames: Iterable[Frame], cpu_s: Iterable[float]) -> Answers:
        """The answers that are made of one frame a call."""
        pieces = [BUILT, *(HEAD.pack(ord(kind), len(payload)) + payload for kind, payload in frames)]
        starts = array("Q", accumulate(map(len, pieces)))
        return cls(script=b"".join([*pieces, END]), starts=starts, cpu_s=array("d", cpu_s))

    @classmethod
    def read(cls, data: bytes, calls: int) -> Answers:
        """What `written` made of so many calls. Raises `ValueError` for anything else."""
        starts, cpu_s = array("Q"), array("d")
        starts.frombytes(data[: 8 * (calls + 1)])
        cpu_s.frombytes(data[8 * (calls + 1) : 8 * (2 * calls + 1)])
        if sys.byteorder == "big":
            starts.byteswap()
            cpu_s.byteswap()
        script = data[8 * (2 * calls + 1) :]
        if len(cpu_s) != calls or starts[-1] + len(END) != len(script):
            raise ValueError(f"{len(data)} bytes are not the answers to {calls} calls")
        return cls(script=script, starts=starts, cpu_s=cpu_s)

    def written(self) -> bytes:
        """All of it as bytes, the same ones on every machine."""
        parts = array("Q", self.starts), array("d", self.cpu_s)
        if sys.byteorder == "big":
            for part in parts:
                part.byteswap()
        return b"".join([*(part.tobytes() for part in parts), self.script])

    def frame(self, index: int) -> Frame:
        """Kind and payload of a call."""
        start, end = self.starts[index], self.starts[index + 1]
        return chr(self.script[start]), self.script[start + HEAD.size : end]

    def value(self, index: int) -> Any:
        """The value of a call whose kind is `V`."""
        data = self.frame(index)[1]
        return parse(data, max_nodes=len(data) + 1)

    def whole(self, until: int) -> int:
        """How many calls end at or before byte `until` of the script; -1 when not even `BUILT` does."""
        return bisect_right(self.starts, until) - 1

    @cached_property
    def total_s(self) -> float:
        """CPU seconds of the whole tier."""
        return sum(self.cpu_s)
