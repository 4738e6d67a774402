"""
The subject's room as the harness sees it: load the exhibit, ask, and have it take its leave.

The monitor in the room watches the subject's time and its protocol, and the subject can't reach it. So whatever it
reports is the subject's doing, and whatever happens to it is not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from harness.errors import RefereeError
from harness.tree import Tree
from referees.frame_line import CLOSED, Line
from referees.pytest_wire import BEAT, WireError, frame, raw_frame

__all__ = ["SILENCE_S", "Bounds", "Fault", "SubjectRoom"]

SILENCE_S = 60.0
"""After this long without a word of its monitor, a room is lost."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """What one run of a suite may use; `judge_s` and `judge_bytes` bound the suite's own side."""

    cpu_s: int
    wall_s: float
    memory_bytes: int
    calls: int
    answer_bytes: int
    judge_s: float
    judge_bytes: int


class Fault(Exception):  # noqa: N818 - it is the subject's fault, and named so
    """
    The subject's end: a class of the referee's table, and why. A breach of the protocol stands whatever else was seen,
    since how much was seen before it is a matter of chance.
    """

    def __init__(self, reading: str, why: str, *, breach: bool = False) -> None:
        super().__init__(why)
        self.reading = reading
        self.why = why
        self.breach = breach


class SubjectRoom:
    """The subject's room as the bridge sees it: ask, or a `Fault`; a room that fails is a `RefereeError`."""

    def __init__(self, line: Line, bounds: Bounds) -> None:
        self.line = line
        self.bounds = bounds
        self.calls = 0
        self.answered = 0
        self.cpu_s: float | None = None

    @property
    def over(self) -> bool:
        """Whether its process has ended."""
        return self.cpu_s is not None

    async def load(self, exhibit: Tree, interface: Sequence[Mapping[str, Any]], forbidden: Sequence[str]) -> None:
        """Hand over the exhibit. Up to here nothing of the subject's has run."""
        orders = {
            "interface": list(interface),
            "forbidden": list(forbidden),
            "cpu_s": self.bounds.cpu_s,
            "wall_s": self.bounds.wall_s,
            "memory_bytes": self.bounds.memory_bytes,
        }
        try:
            with anyio.fail_after(SILENCE_S):
                await self.line.send(frame(b"O", orders) + raw_frame(b"T", exhibit.to_tar()))
                kind, body = await self.line.receive()
                machine = dict(json.loads(body))
        except (*CLOSED, ValueError, TypeError, TimeoutError) as error:
            raise RefereeError(
                f"the subject's room did not start ({type(error).__name__}): has its image a python3?"
            ) from error
        if kind != b"L" or machine.get("confined") is not True:
            raise RefereeError(
                f"the subject's room answered {kind!r} on a machine {machine.get('machine')!r}: expected to hear that "
                "it is loaded, on x86_64 or aarch64, where a subject can be kept from its watcher"
            )

    async def _next(self) -> tuple[bytes, bytes]:
        """The next frame but for beats: the monitor says something every second while an answer is awaited."""
        kind, body = BEAT, b""
        while kind == BEAT:
            try:
                with anyio.fail_after(SILENCE_S):
                    kind, body = await self.line.receive()
            except (*CLOSED, WireError, TimeoutError) as error:
                raise RefereeError(
                    f"the subject's room was lost ({type(error).__name__} {error}); the subject can't reach its monitor"
                ) from error
        return kind, body

    async def receive(self, expected: bytes) -> bytes:
        """The body of the next frame. How long it may take, the monitor knows."""
        kind, body = await self._next()
        if kind == b"X":
            raise self._ended(body)
        if kind != expected:
            raise RefereeError(f"the monitor of the subject spoke out of turn: {kind!r} instead of {expected!r}")
        return body

    async def send(self, data: bytes) -> None:
        """Raises `RefereeError` when the monitor takes nothing more."""
        try:
            with anyio.fail_after(SILENCE_S):
                await self.line.send(data)
        except TimeoutError as error:
            raise RefereeError("the subject's room takes nothing more") from error
        except CLOSED:
            return  # its last words say why, and are read next

    async def ask(self, request: bytes) -> bytes:
        """Pass on one call and bring back its answer."""
        self.calls += 1
        if self.calls > self.bounds.calls:
            raise Fault("TIMEOUT", f"the suite was not done after {self.bounds.calls} calls of the subject")
        await self.send(raw_frame(b"C", request))
        body = await self.receive(b"R")
        self.answered += len(body)
        if self.answered > self.bounds.answer_bytes:
            raise Fault("MEMORY", f"the subject's answers are over {self.bounds.answer_bytes} bytes together")
        return body

    async def leave(self) -> Fault | None:
        """Have the subject take its leave, which shows that no answer was one too many; its fault, or None."""
        if self.over:
            return None
        await self.send(raw_frame(b"F", b""))
        kind, body = await self._next()
        if kind != b"X":
            raise RefereeError(f"the monitor of the subject spoke out of turn: {kind!r} instead of its last word")
        fault = self._ended(body)
        return None if fault.reading == "DONE" else fault

    def _ended(self, body: bytes) -> Fault:
        """How the subject's process ended, by the word of its monitor: but for `done`, it is a rejection."""
        try:
            word = dict(json.loads(body))
            end, self.cpu_s = str(word["end"]), float(word["cpu_s"])
        except (ValueError, TypeError, KeyError) as error:
            raise RefereeError(f"the monitor of the subject sent nonsense: {body[:80]!r}") from error
        kind, _, why = end.partition(":")
        words = {
            "cpu": f"the subject used its {self.bounds.cpu_s} s of the processor",
            "blocked": f"the subject kept the suite waiting for more than {self.bounds.wall_s:g} s, doing nothing",
        }
        readings = {"done": "DONE", "timeout": "TIMEOUT", "memory": "MEMORY", "crash": "CRASH", "breach": "CRASH"}
        if kind not in readings:
            raise RefereeError(f"the monitor of the subject said {end!r}")
        said = words.get(why, f"the subject's process ended: {why}")
        return Fault(readings[kind], said, breach=kind == "breach")
