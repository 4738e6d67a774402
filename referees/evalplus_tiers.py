"""
One tier of one candidate: run it, compare what comes back, and say which class that is.

The first event in source order decides. MEMORY, CRASH and waiting too long may be the machine's doing, so each is run
again: it stands if it comes again; otherwise a third run decides, whatever it says. The processor's time is counted, so
that a TIMEOUT by it stands at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import anyio.to_thread

from harness.errors import RefereeError
from harness.values import Standing
from referees.evalplus_answers import Answers
from referees.evalplus_cell import Cell, CellLost, Frame, Frames, Job, digest_of
from referees.evalplus_compare import accepts
from referees.evalplus_expected import Expected
from referees.evalplus_suite import Suite, Tier
from referees.evalplus_values import nodes_in, parse

__all__ = ["CLASSES", "TierRun", "crashed", "job_of", "judge_tier", "not_run"]

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
_SURE = frozenset({"timeout:cpu", "timeout:budget"})
"""Endings that are the candidate's doing on any machine: the processor's time that it used was counted."""
_REST = 0.1
"""The part of the least limit of one call that all calls after one over its time may take together."""
_SPENT = "the tier's CPU time was used up"
_ENDED = "the tier ends at its first violation"
_LARGE = 64 << 10
_INLINE = 16 << 20
"""Twice what is kept whole of a reference, so that whole numbers given as floats still arrive as values."""
_TOLD_BYTES = 4800
"""Of a violated public call, a value of more bytes is not told: it has more characters than a fact may."""
_END: Frame = ("E", b"")


@dataclass(frozen=True, kw_only=True, slots=True)
class TierRun:
    """
    What a tier came to: its reading, what decided it, that of each call in source order (`PASS`, the class that it came
    to, or `NOT_RUN`), and the CPU seconds of the candidate's processes, None where that is unknown. `sure` is whether
    it was a limit of the processor's time that ended it. `told` are the frames of violated public calls, as far as they
    are short: what the candidate gave instead, a claim. `left` is why calls were not run, where some were not. An
    `unclear` run ended at a gist that is not the reference's, and says nothing.
    """

    reading: str
    why: str
    calls: tuple[str, ...]
    cpu_s: float | None = None
    sure: bool = False
    told: Mapping[int, Frame] = field(default_factory=dict)
    left: str = "no call was made"
    unclear: bool = False

    @property
    def passed(self) -> int:
        """How many calls were accepted."""
        return self.calls.count("PASS")

    @property
    def violated(self) -> tuple[int, ...]:
        """The calls that were not, in source order."""
        return tuple(index for index, reading in enumerate(self.calls) if reading not in ("PASS", "NOT_RUN"))


class _Watcher:
    """Listens to one run of a tier from call `at` on, and keeps the books over restarts."""

    def __init__(self, suite: Suite, tier: Tier, answers: Answers, *, full: bool, quick: bool) -> None:
        self.suite, self.tier, self.answers, self.full, self.quick = suite, tier, answers, full, quick
        self.at = 0
        self.built = self.over = False
        self.calls = ["NOT_RUN"] * suite.total(tier)
        self.event: tuple[str, str] | None = None
        self.told: dict[int, Frame] = {}
        self.left = "no call was made"
        self.hurried = False
        self.unclear = False
        self._same: int | None = None
        self._frames = Frames()

    def begin(self) -> None:
        """A run begins. Most often all comes as the reference gave it, byte by byte: `_same` is how far it did so."""
        self.built = self.over = False
        self._same = 0 if self.at == 0 and self.suite.rule != "not_none" else None
        self._frames = Frames()

    def ended(self, reading: str, why: str, *, spent: bool) -> bool:
        """The process ended in call `at`, with all of the tier's time `spent` or not. Whether to go on behind it."""
        decided = self.event is not None
        self.note(reading, why)
        if not self.built or self.at >= len(self.calls):
            return False
        if not (spent and decided):
            self.calls[self.at] = reading
        self.at += 1
        if spent:
            self.left = _SPENT
        elif reading == "TIMEOUT" and self.full and not self.hurried:
            # What takes too long once most often does again: the others are to be quick.
            self.hurried = True
            left_s = self._rest_s(sum(self.answers.cpu_s[self.at :]))
            self.left = f"after a call over its time, those left have {left_s:.2g} s of CPU time together"
            return self.at < len(self.calls)
        return not spent and reading != "TIMEOUT" and self.at < len(self.calls)

    def note(self, reading: str, why: str) -> None:
        """The first event decides; `at` is the call it came in."""
        if self.event is None:
            self.event = (reading, f"call {self.at}: {why}" if self.built else f"build: {why}")
            if self.built and not self.full:
                self.left = _ENDED

    async def listen(self, piece: bytes) -> float | None:
        """What the child sent; how much longer it may go on, in CPU seconds, once that is less than its limits."""
        if self._same is not None:
            if self.answers.script.startswith(piece, self._same):
                self._same += len(piece)
                return None
            piece = self.settle() + piece
        go_on = await anyio.to_thread.run_sync(self._take, piece) if len(piece) > _LARGE else self._take(piece)
        if go_on and self.hurried:
            return self._rest_s(sum(self.answers.cpu_s[self.at :]))
        return None if go_on else 0.0

    def _rest_s(self, reference_s: float) -> float:
        """How long the calls that are left may take together once one was over its time."""
        options = self.suite.options
        return max(_REST * options.min_time_s, options.time_factor * reference_s)

    def settle(self) -> bytes:
        """Enter what came as the reference gave it; the bytes of the frame that it ended in the middle of."""
        same, self._same = self._same, None
        if same is None or (whole := self.answers.whole(same)) < 0:
            return self.answers.script[:same] if same else b""
        self.built, self.at = True, whole
        self.calls[:whole] = ["PASS"] * whole
        self.over = same == len(self.answers.script)
        return b"" if self.over else self.answers.script[self.answers.starts[whole] : same]

    def _take(self, piece: bytes) -> bool:
        frames = self._frames.take(piece)
        return all(self._call(frame) if self.built else self._build(frame) for frame in frames)

    def _call(self, frame: Frame) -> bool:
        if frame == _END and self.at == len(self.calls):
            self.over = True
            return True
        if frame[0] not in ("VQDOXM" if self.quick else "VDOXM") or self.at >= len(self.calls):
            self.over = True
            self.note("CRASH", "broke the protocol")
            return False
        accepted = self._accepts(frame)
        if not accepted and frame[0] == "Q":
            self.unclear = self.over = True
            self.note("UNSCORABLE", "another gist, which says nothing")
            return False
        reading, why = ("PASS", "") if accepted else _class_of(frame)
        self.calls[self.at] = reading
        if reading != "PASS":
            self.note(reading, why)
            if self.tier == "public" and len(frame[1]) <= _TOLD_BYTES:
                self.told[self.at] = frame
        self.at += 1
        return self.full or self.event is None

    def _build(self, frame: Frame) -> bool:
        kind, payload = frame
        match kind:
            case "B":
                self.built = True
                return True
            case "n":
                self.note("NO_BUILD", payload.decode("utf-8", "replace"))
            case "i":
                self.note("INTERFACE_MISS", f"no callable {self.suite.entry_point!r}")
            case "m":
                self.note("MEMORY", "out of memory")
            case _:
                self.note("CRASH", "broke the protocol")
        self.over = True
        return False

    def _accepts(self, frame: Frame) -> bool:
        (kind, payload), suite, answer = frame, self.suite, self.answers.frame(self.at)
        if suite.rule == "not_none":
            there = answer != ("V", b"N")
            got = object() if kind in "OQD" else _value(payload, len(payload) + 1)
            return kind in "VQDO" and got is not _BAD and accepts("not_none", "", (), there, got, atol=0.0)
        if frame == answer:
            return True
        if kind not in "VD":
            return False
        answer = self.answers.exact(self.at)
        if frame == answer:
            return True
        if kind != "V":
            return False
        if answer[0] == "D":
            return digest_of(payload) == answer[1]
        expected = self.answers.value(self.at)
        # What is equal is made of as many values, but for a list read as a set.
        room = 20_000 if suite.rule == "set" else 0
        got = _value(payload, 2 * nodes_in(expected) + 64 + room)
        args = suite.args(self.tier, self.at)
        return got is not _BAD and accepts(suite.rule, suite.entry_point, args, expected, got, atol=suite.atol)


_BAD = object()


def _value(payload: bytes, max_nodes: int) -> object:
    try:
        return parse(payload, max_nodes=max_nodes)
    except ValueError:
        return _BAD


def _class_of(frame: Frame) -> tuple[str, str]:
    """The class of a call that was not accepted, and why."""
    text = frame[1][:200].decode("utf-8", "replace")
    match frame[0]:
        case "M":
            return "MEMORY", "out of memory"
        case "X":
            return "FAIL", f"raised {text}"
        case "O":
            return "FAIL", f"returned {text}, which is no plain data"
        case _:
            return "FAIL", "another value was expected"


def not_run(suite: Suite, reading: str, why: str) -> TierRun:
    """The public tier of a candidate of which no call was made."""
    return TierRun(reading=reading, why=why, calls=("NOT_RUN",) * suite.total("public"))


def crashed(suite: Suite, lost: CellLost) -> TierRun:
    """The public tier of a candidate that cost us two zygotes."""
    return not_run(
        suite, "CRASH", f"twice the zygote was lost while it ran, right after it had judged a known program: {lost}"
    )


async def judge_tier(cell: Cell, suite: Suite, tier: Tier, expected: Expected, code: bytes, *, full: bool) -> TierRun:
    """
    Run `code` on a tier: to its end when `full`, else to the first violation.

    Raises `CellLost` when the zygote is gone, and `RefereeError` when the machine was too busy to say anything.
    """
    answers = expected[tier]
    job = job_of(suite, tier, answers, code)
    first = await _run(cell, suite, tier, answers, job, full=full)
    if first.sure or first.reading not in _AGAIN:
        return first
    second = await _run(cell, suite, tier, answers, job, full=False)
    runs = [first, second]
    if second.reading != first.reading:
        runs.append(await _run(cell, suite, tier, answers, job, full=full))
    decided = first if len(runs) == 2 else runs[-1]
    return replace(decided, cpu_s=sum(run.cpu_s or 0.0 for run in runs))


def job_of(suite: Suite, tier: Tier, answers: Answers, code: bytes) -> Job:
    """The run of `code` on all of a tier, under the limits that follow from what the reference took."""
    options = suite.options
    least, factor = options.min_time_s, options.time_factor
    calls = enumerate(answers.cpu_s) if factor * answers.longest_s > least else ()
    return Job(
        code=code,
        entry=suite.entry_point,
        prelude=suite.prelude,
        inputs=suite.inputs[tier],
        calls=suite.total(tier),
        build=2 * least,
        least=least,
        longer={index: factor * cpu_s for index, cpu_s in calls if factor * cpu_s > least},
        budget=_BUDGET_S + factor * answers.total_s,
        memory=options.memory_bytes,
        inline=_INLINE,
    )


async def _run(cell: Cell, suite: Suite, tier: Tier, answers: Answers, job: Job, *, full: bool) -> TierRun:
    """
    One run of a tier, in which large values go by their gist. Where one does not tell, all is run again with values and
    digests that do: what the calls before have left behind may matter.
    """
    run = await _run_once(cell, suite, tier, answers, job, full=full)
    if not run.unclear:
        return run
    again = await _run_once(cell, suite, tier, answers, replace(job, quick=False), full=full)
    return replace(again, cpu_s=(run.cpu_s or 0.0) + (again.cpu_s or 0.0))


async def _run_once(cell: Cell, suite: Suite, tier: Tier, answers: Answers, job: Job, *, full: bool) -> TierRun:
    """
    One run of a tier. A `full` one goes on behind a call that ended its process, until all are run, the tier's time is
    used up, or what is left behind a call over its time takes too long as well.
    """
    watcher, cpu_s, sure = _Watcher(suite, tier, answers, full=full, quick=job.quick), 0.0, False
    while True:
        watcher.begin()
        ending = await cell.run(replace(job, first=watcher.at, budget=job.budget - cpu_s), watcher.listen)
        watcher.settle()
        cpu_s += ending.cpu_s
        if watcher.over or ending.word == "stopped":
            break
        sure = sure or (watcher.event is None and ending.word in _SURE)
        spent = ending.word == "timeout:budget" or cpu_s >= job.budget
        if not watcher.ended(*_class_of_ending(ending.word, suite), spent=spent) or not full:
            break
    reading, why = watcher.event or ("PASS", "every call was accepted")
    calls = tuple(watcher.calls)
    return TierRun(
        reading=reading, why=why, calls=calls, cpu_s=cpu_s, sure=sure, told=watcher.told, left=watcher.left,
        unclear=watcher.unclear,
    )  # fmt: skip


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
