"""The harness's end of the subject's room: builds, asks, and takes an answer for what it is, or raises a `Fault`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from harness.errors import RefereeError
from harness.tree import Tree
from referees.command_wire import packed, unpacked
from referees.frame_line import CLOSED, Line
from referees.pytest_wire import BEAT, FRAME, LOAD, WireError, frame, raw_frame

__all__ = ["Bounds", "Fault", "SubjectLine"]

PATIENCE = 10
"""Times as long as all limits together may a machine take that does other things as well."""
SILENCE_S = 60.0
"""After this long without a word of its server, a room is lost."""
QUIET_S = 5.0
"""A room that is late, and did not say in this time that it goes on, is silent: that is five of its beats."""
SAID = 2000
"""Characters of what the subject's room says of itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """What one run of a suite may use: seconds, bytes, calls. `judge_s` and `report_bytes` bound the suite's side."""

    cpu_s: int
    wall_s: float
    memory_bytes: int
    build_s: float
    calls: int
    output_bytes: int
    answer_bytes: int
    judge_s: float
    report_bytes: int

    @property
    def patience_s(self) -> float:
        """Seconds by the clock for all calls together: what takes longer is the machine's doing."""
        return PATIENCE * (self.cpu_s + self.wall_s)


class Fault(Exception):  # noqa: N818 - it is the subject's fault, and named so
    """
    The subject's end or breach: a class of the referee's table, and why. It is not `sure` where the referee's program
    in a room is lost, or late where it can be stopped: a failure of the machine's could also bring that about.
    """

    def __init__(self, reading: str, why: str, *, sure: bool = True) -> None:
        super().__init__(why)
        self.reading = reading
        self.why = why
        self.sure = sure


class SubjectLine:
    """The subject's room, one call at a time; `died` has the class and the words of calls that died of a signal."""

    def __init__(self, line: Line, bounds: Bounds) -> None:
        self.line = line
        self.bounds = bounds
        self.confined = False
        self.waited = 0.0
        self.heard = 0.0
        self.calls = 0
        self.answered = 0
        self.cpu_s = 0.0
        self.died: list[tuple[str, str]] = []

    async def load(self, orders: Mapping[str, Any], exhibit: Tree) -> None:
        """Hand over the exhibit. Up to here nothing of the subject's has run, so a failure is a `RefereeError`."""
        bounds = self.bounds
        limits = {
            "cpu_s": bounds.cpu_s,
            "blocked_s": bounds.wall_s,
            "memory_bytes": bounds.memory_bytes,
            "output_bytes": bounds.output_bytes,
            "build_s": bounds.build_s,
        }
        try:
            with anyio.fail_after(bounds.judge_s):
                order = frame(b"O", {**orders, **limits, "build_bytes": bounds.answer_bytes})
                await self.line.send(order + raw_frame(b"T", exhibit.to_tar()))
                kind, body = await self.line.receive()
        except (*CLOSED, WireError, TimeoutError) as error:
            raise RefereeError(
                f"the subject's room did not start ({type(error).__name__}): has its image a python3?"
            ) from error
        if kind != b"L":
            raise RefereeError(f"the subject's room answered {kind!r} instead of saying that it is loaded")
        self.confined = body == b'{"confined":true}'

    def _late(self, within_s: float) -> Fault | RefereeError:
        """
        What to make of an answer that does not come. Where no program can stop the server, one that says nothing is the
        machine's doing; one that says that it goes on has shown that the machine was too busy, and nothing else.
        """
        if not self.confined:
            return Fault("TIMEOUT", f"the subject's room did not answer for {within_s:g} s", sure=False)
        quiet_s = anyio.current_time() - self.heard
        if quiet_s >= QUIET_S:
            return RefereeError(
                f"the subject's room said nothing for {quiet_s:.0f} s, which no program can bring about"
            )
        why = f"ten times all limits together went by, and none was reached: no answer in {within_s:g} s"
        return Fault("UNSCORABLE", why)

    async def _receive(self, expected: bytes, within_s: float, most: int) -> bytes:
        """The body of the next frame but for beats, within these seconds and bytes."""
        self.heard = anyio.current_time()
        until = self.heard + max(0.0, within_s)
        kind, body = BEAT, b""
        while kind == BEAT:
            now = anyio.current_time()
            try:
                with anyio.fail_after(max(0.0, min(SILENCE_S, until - now))):
                    kind, body = await self.line.receive(most)
            except TimeoutError:
                raise self._late(within_s) from None
            except CLOSED:
                raise await self._lost() from None
            except WireError as error:
                raise Fault("CRASH", f"the subject's room spoke nonsense: {error}", sure=False) from None
            self.heard = anyio.current_time()
        if kind != expected:
            raise Fault("CRASH", f"the subject's room spoke out of turn: {kind!r}", sure=False)
        return body

    async def _lost(self) -> Fault | RefereeError:
        """
        Whose doing it is that the channel has closed. A program that is kept from the two processes there may bring
        about the end of one, as by taking all memory; of both, only the machine.
        """
        status = await self.line.last_word()
        if status is not None:
            return Fault("CRASH", f"the server in the subject's room ended, status {status}", sure=False)
        if not self.confined:
            return Fault("CRASH", "the subject's room was lost", sure=False)
        return RefereeError("the subject's room was lost: nothing in it outlived its server, which no program can do")

    async def built(self) -> None:
        """Wait for the build, and raise a `Fault` for one that failed or left no program."""
        body = await self._receive(b"H", PATIENCE * 2 * self.bounds.build_s, FRAME)
        try:
            told = dict(json.loads(body))
            reading, why = str(told.get("reading", "")), str(told.get("why", ""))[:SAID]
        except (ValueError, TypeError, RecursionError):
            raise Fault("CRASH", "the subject's room said nonsense of its build", sure=False) from None
        if reading:
            raise Fault(reading if reading in {"INTERFACE_MISS", "TIMEOUT"} else "NO_BUILD", why)

    async def ask(
        self, argv: Sequence[str], env: Mapping[str, str], stdin: bytes
    ) -> tuple[dict[str, int], bytes, bytes]:
        """One call: its exit `status` or the `signal` that it died of, and its outputs."""
        self.calls += 1
        bounds = self.bounds
        if self.calls > bounds.calls:
            raise Fault("TIMEOUT", f"the suite was not done after {bounds.calls} calls")
        started = anyio.current_time()
        try:
            with anyio.fail_after(SILENCE_S):
                await self.line.send(raw_frame(b"C", packed({"argv": list(argv), "env": dict(env)}, stdin)))
        except TimeoutError:
            raise self._late(SILENCE_S) from None
        except CLOSED:
            raise await self._lost() from None
        left_s = bounds.patience_s - self.waited
        body = await self._receive(b"R", left_s, min(LOAD, 2 * bounds.output_bytes + FRAME))
        self.waited += anyio.current_time() - started
        return self._answer(body, argv)

    def _answer(self, body: bytes, argv: Sequence[str]) -> tuple[dict[str, int], bytes, bytes]:
        try:
            told, (out, err) = unpacked(body, 2)
            end = _End.of(told)
        except (WireError, ValueError, TypeError, KeyError):
            raise Fault("CRASH", "the subject's room answered nonsense", sure=False) from None
        call = f"call {self.calls}, {' '.join(argv)[:120]!r},"
        self.answered += len(out) + len(err)
        self.cpu_s += end.cpu_s
        if end.failed:
            raise Fault("INTERFACE_MISS", f"the program can't be started: {end.failed}")
        if end.over:
            raise Fault(*end.breach(call, self.bounds))
        if self.answered > self.bounds.answer_bytes:
            raise Fault("MEMORY", f"the outputs are over {self.bounds.answer_bytes} bytes together")
        if end.signal:
            # One that the server did not send: the kernel's, for memory, or the program's own doing.
            self.died.append(("MEMORY" if end.signal == 9 else "CRASH", f"{call} died of signal {end.signal}"))
            return {"signal": end.signal}, out, err
        return {"status": end.status}, out, err


@dataclass(frozen=True, kw_only=True, slots=True)
class _End:
    """How a call ended, checked."""

    status: int
    signal: int
    over: str
    failed: str
    cpu_s: float

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> _End:
        """Raises `ValueError`, `TypeError` or `KeyError` for what is none."""
        status, signal, cpu_s = told["status"] or 0, told["signal"] or 0, float(told["cpu_s"])
        if type(status) is not int or type(signal) is not int or not math.isfinite(cpu_s):
            raise ValueError("no status")
        if not (0 <= status < 256 and 0 <= signal < 128 and cpu_s >= 0.0):
            raise ValueError("no status")
        over, failed = str(told["over"] or "")[:40], str(told["failed"] or "")[:SAID]
        return cls(status=status, signal=signal, over=over, failed=failed, cpu_s=cpu_s)

    def breach(self, call: str, bounds: Bounds) -> tuple[str, str]:
        """Class and reason of a call that the server ended."""
        match self.over:
            case "cpu":
                return "TIMEOUT", f"{call} used up the {bounds.cpu_s} s of the processor that all calls have"
            case "blocked":
                return "TIMEOUT", f"{call} waited: all calls together could not run for {bounds.wall_s:g} s"
            case "memory":
                return "MEMORY", f"{call} held over {bounds.memory_bytes} bytes"
            case "output":
                return "MEMORY", f"{call} put out over {bounds.output_bytes} bytes"
            case "processes":
                return "CRASH", f"{call} had more processes at once than one may"
            case _:
                return "CRASH", f"{call} left processes that could not be ended"
