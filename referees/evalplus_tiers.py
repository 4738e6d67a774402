"""
One tier of one candidate: run it, compare what comes back, and say which class that is.

The first event in source order decides. TIMEOUT, MEMORY and CRASH may be the machine's doing, so each is run again: it
stands if it comes again; otherwise a third run decides, whatever it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio.to_thread

from harness.errors import RefereeError
from harness.values import Standing
from referees.evalplus_cell import Cell, CellLost, Job, Message
from referees.evalplus_compare import accepts
from referees.evalplus_expected import Answer, Expected
from referees.evalplus_suite import Suite, Tier
from referees.evalplus_values import nodes_in, parse

__all__ = ["CLASSES", "TierRun", "crashed", "judge_tier"]

CLASSES: Mapping[str, Standing] = {
    "PASS": "accepted",
    "FAIL": "rejected",
    "NO_BUILD": "rejected",
    "INTERFACE_MISS": "rejected",
    "TIMEOUT": "rejected",
    "MEMORY": "rejected",
    "CRASH": "rejected",
    "UNSCORABLE": "unscorable",
}
"""What a tier, and with it a candidate, may come to."""

_BUDGET_S = 60.0
_AGAIN = frozenset({"TIMEOUT", "MEMORY", "CRASH"})
_RESTARTS = 2
_LARGE = 64 << 10
_INLINE = 16 << 20
"""Twice what a reference may send whole, so that whole numbers given as floats still arrive as values."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TierRun:
    """What a tier came to. `violated` are indices of calls in source order; `why` says what decided."""

    reading: str
    passed: int
    total: int
    violated: tuple[int, ...]
    why: str


class _Watcher:
    """Listens to one run of a tier from call `first` on, and keeps the books over restarts."""

    def __init__(self, suite: Suite, tier: Tier, answers: Sequence[Answer], *, full: bool) -> None:
        self.suite, self.answers, self.full = suite, answers, full
        self.calls = suite.calls[tier]
        self.at, self.passed = 0, 0
        self.built = self.over = False
        self.violated: list[int] = []
        self.event: tuple[str, str] | None = None

    def note(self, reading: str, why: str) -> None:
        """The first event decides; `at` is the call it came in."""
        if self.event is None:
            self.event = (reading, f"call {self.at}: {why}" if self.built else f"build: {why}")

    async def listen(self, message: Message) -> bool:
        if not self.built:
            return self._build(message)
        if message.kind == "E" and self.at == len(self.calls):
            self.over = True
            return True
        if message.kind not in "VDOXM" or self.at >= len(self.calls):
            self.over = True
            self.note("CRASH", "broke the protocol")
            return False
        if await self._accepted(message):
            self.passed += 1
        else:
            self.violated.append(self.at)
            self.note(*_class_of(message))
        self.at += 1
        return self.full or self.event is None

    def _build(self, message: Message) -> bool:
        text = message.payload.decode("utf-8", "replace")
        match message.kind:
            case "B":
                self.built = True
                return True
            case "n":
                self.note("NO_BUILD", text)
            case "i":
                self.note("INTERFACE_MISS", f"no callable {self.suite.entry_point!r}")
            case "m":
                self.note("MEMORY", "out of memory")
            case _:
                self.note("CRASH", "broke the protocol")
        self.over = True
        return False

    async def _accepted(self, message: Message) -> bool:
        if max(len(message.payload), len(self.answers[self.at].data)) > _LARGE:
            return await anyio.to_thread.run_sync(self._accepts, message)
        return self._accepts(message)

    def _accepts(self, message: Message) -> bool:
        answer, suite = self.answers[self.at], self.suite
        if suite.rule == "not_none":
            there = not (answer.kind == "V" and answer.data == b"N")
            got = object() if message.kind in "OD" else _value(message, len(message.payload) + 1)
            return message.kind in "VDO" and got is not _BAD and accepts("not_none", "", (), there, got, atol=0.0)
        if message.kind == answer.kind and message.payload == answer.data:
            return True
        if message.kind != "V":
            return False
        if answer.kind == "D":
            return message.digest == answer.data
        expected = answer.value()
        # What is equal is made of as many values, but for a list read as a set.
        room = 20_000 if suite.rule == "set" else 0
        got = _value(message, 2 * nodes_in(expected) + 64 + room)
        args = self.calls[self.at]
        return got is not _BAD and accepts(suite.rule, suite.entry_point, args, expected, got, atol=suite.atol)


_BAD = object()


def _value(message: Message, max_nodes: int) -> object:
    try:
        return parse(message.payload, max_nodes=max_nodes)
    except ValueError:
        return _BAD


def _class_of(message: Message) -> tuple[str, str]:
    """The class of a call that was not accepted, and why."""
    text = message.payload[:200].decode("utf-8", "replace")
    match message.kind:
        case "M":
            return "MEMORY", "out of memory"
        case "X":
            return "FAIL", f"raised {text}"
        case "O":
            return "FAIL", f"returned {text}, which is no plain data"
        case _:
            return "FAIL", "another value was expected"


def crashed(suite: Suite, lost: CellLost) -> TierRun:
    """The public tier of a candidate that cost us two zygotes."""
    why = f"twice the zygote was lost while it ran, right after it had judged a known program: {lost}"
    return TierRun(reading="CRASH", passed=0, total=len(suite.calls["public"]), violated=(), why=why)


async def judge_tier(cell: Cell, suite: Suite, tier: Tier, expected: Expected, code: bytes, *, full: bool) -> TierRun:
    """
    Run `code` on a tier: to its end when `full`, else to the first violation.

    Raises `CellLost` when the zygote is gone, and `RefereeError` when the machine was too busy to say anything.
    """
    first = await _run(cell, suite, tier, expected, code, full=full)
    if first.reading not in _AGAIN:
        return first
    second = await _run(cell, suite, tier, expected, code, full=False)
    if second.reading == first.reading:
        return first
    return await _run(cell, suite, tier, expected, code, full=full)


async def _run(cell: Cell, suite: Suite, tier: Tier, expected: Expected, code: bytes, *, full: bool) -> TierRun:
    watcher = _Watcher(suite, tier, expected[tier], full=full)
    options, blobs = suite.options, suite.blobs(tier)
    limits = [max(options.min_time_s, options.time_factor * answer.cpu_s) for answer in expected[tier]]
    for _ in range(1 + _RESTARTS):
        start = watcher.at
        watcher.built = watcher.over = False
        job = Job(
            code=code,
            entry=suite.entry_point,
            prelude=suite.prelude,
            inputs=blobs[start:],
            limits=limits[start:] or [options.min_time_s],
            build=2 * options.min_time_s,
            budget=_BUDGET_S + options.time_factor * sum(answer.cpu_s for answer in expected[tier][start:]),
            memory=options.memory_bytes,
            inline=_INLINE,
        )
        ending = await cell.run(job, watcher.listen)
        if watcher.over or ending == "stopped":
            break
        watcher.note(*_class_of_ending(ending, suite))
        if not (full and watcher.built) or watcher.at >= len(blobs) - 1:
            break
        watcher.violated.append(watcher.at)
        watcher.at += 1
    reading, why = watcher.event or ("PASS", "every call was accepted")
    return TierRun(reading=reading, passed=watcher.passed, total=len(blobs), violated=tuple(watcher.violated), why=why)


def _class_of_ending(ending: str, suite: Suite) -> tuple[str, str]:
    """The class of a run that ended by itself before its last word."""
    head, _, detail = ending.partition(":")
    match head:
        case "timeout":
            words = {"cpu": "over its CPU time", "budget": "over the tier's CPU time", "blocked": "waited too long"}
            return "TIMEOUT", words.get(detail, "over its time")
        case "memory":
            return "MEMORY", "killed by the kernel, out of memory"
        case "crash":
            return "CRASH", detail
        case "done":
            return "CRASH", "ended before its last call"
        case _:
            raise RefereeError(f"{suite.task_id}: the machine was too busy to judge ({ending})")
