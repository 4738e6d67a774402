# ruff: noqa: ARG002 - the contract hands every referee more than this one needs
"""
The `evalplus` referee: a public and a hidden tier of calls, judged by values.

The judge (this process) holds the expected values. Inside one sealed room a zygote forks a confined child for every
candidate and tier; what the child's calls return comes back as bytes, which only the judge compares. A candidate that
owned its whole room could claim other values, and would still have to know the right ones.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from harness.clock import Clock, SystemClock, fresh_token
from harness.errors import RefereeError, WorkspaceError
from harness.ports import PublicCheck, RoomOpener
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Exhibit, Tree
from harness.values import Evidence, Standing, TierReading, Verdict
from harness.views import Fact, PublicReading
from referees.evalplus_battery import degenerates
from referees.evalplus_cell import Cell, CellLost, in_cell, prepare, zygote_argv
from referees.evalplus_expected import Expected, ExpectedStore
from referees.evalplus_options import read_options
from referees.evalplus_render import FACT_CHARS, render
from referees.evalplus_suite import Suite, load_suite, referee_source
from referees.evalplus_tiers import TierRun, judge_tier

__all__ = ["EvalPlusReferee", "facts_of"]

T = TypeVar("T")

_MOST_FACTS = 6
_FACT_BYTES = 8 * FACT_CHARS
"""A value of more bytes than this has more characters than a fact may."""
_ATTEMPTS = 2


class EvalPlusReferee:
    """
    Judges `solution.py` by EvalPlus's inputs. Made with the options of `EvalPlusOptions`, as a mapping or by name;
    raises `ExperimentError` for others.

    A zygote that is lost while a candidate runs is tried again in a fresh room, where a known program is judged first.
    If that goes well and the zygote is lost again, the candidate did it: CRASH. Anything else that fails is ours.
    """

    name = "evalplus"
    classes: Mapping[str, Standing] = {
        "PASS": "accepted",
        "FAIL": "rejected",
        "NO_BUILD": "rejected",
        "INTERFACE_MISS": "rejected",
        "TIMEOUT": "rejected",
        "MEMORY": "rejected",
        "CRASH": "rejected",
        "UNSCORABLE": "unscorable",
    }
    clock: ClassVar[Clock] = SystemClock()

    def __init__(self, options: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        self.options = read_options({**(options or {}), **named})
        self._store = ExpectedStore()

    def suite(self, sealed: SealedHalf) -> Mapping[str, Any]:
        """
        What a verdict on this task depends on: counts, rule, options, digests; `digest` names it. `source` is the
        SHA-256 of the referee's own modules, which a registration pins beside it.
        """
        return {**load_suite(sealed, self.options).description, "source": referee_source()}

    def reference(self, sealed: SealedHalf) -> Tree:
        """The candidate that must PASS: prompt and canonical solution."""
        suite = load_suite(sealed, self.options)
        return Tree.of({self.options.file: suite.reference})

    def battery(self, task: OpenHalf, sealed: SealedHalf) -> Mapping[str, Tree]:
        """Degenerate candidates by name; every one must be rejected."""
        suite = load_suite(sealed, self.options)
        return degenerates(suite.entry_point, self.options.file)

    async def judge(self, exhibit: Exhibit, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener) -> Verdict:
        """The verdict on an exhibit. Raises `RefereeError` or `WorkspaceError` when, twice, it could not be had."""
        [verdict] = await self.judge_many([(exhibit, sealed)], rooms)
        return verdict

    async def judge_many(self, work: Sequence[tuple[Exhibit, SealedHalf]], rooms: RoomOpener) -> list[Verdict]:
        """
        Judge many exhibits in one room, which saves opening one for each: references and controls, whose candidates
        nobody hostile wrote. All expected values are there before the first candidate runs.
        """
        cases = [_Case(exhibit=exhibit, suite=load_suite(sealed, self.options)) for exhibit, sealed in work]
        verdicts: list[Verdict] = []
        lost_on = -1
        while len(verdicts) < len(cases):
            lost = await _twice(rooms, lambda cell: self._judge_from(cell, cases, verdicts))
            if lost is None:
                continue
            at = len(verdicts)
            if lost_on == at:
                # It ran right after a known program was judged rightly in a fresh room, and took that one down as well.
                verdicts.append(cases[at].verdict(_crash(cases[at].suite, lost), None, python="", seconds=None))
            lost_on = at
        return verdicts

    async def _judge_from(self, cell: Cell, cases: Sequence[_Case], verdicts: list[Verdict]) -> CellLost | None:
        """Judge what has no verdict yet, to the end or until a candidate has cost us the zygote."""
        left = cases[len(verdicts) :]
        expected = await self._expected(cell, [case.suite for case in left])
        for case, values in zip(left, expected, strict=True):
            started = self.clock.monotonic()
            try:
                public, hidden = await _examine(cell, case, values)
            except CellLost as lost:
                return lost
            seconds = self.clock.monotonic() - started
            verdicts.append(case.verdict(public, hidden, python=cell.python, seconds=seconds))
        return None

    @asynccontextmanager
    async def public_check(
        self, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener
    ) -> AsyncIterator[PublicCheck | None]:
        """
        The public tier for a seat's rounds, in one room that stays open. If a candidate costs us its zygote, that call
        and each later one gets a room of its own.
        """
        suite = load_suite(sealed, self.options)
        async with rooms() as room, room.stream(zygote_argv()) as stream:
            kept = Cell(room, stream)
            failed = await prepare(kept)
            expected: list[Expected] = []
            if failed is None:
                try:
                    expected = await self._expected(kept, [suite])
                except RefereeError as error:
                    failed = error
            if failed is None:
                yield _Check(kept, suite, expected[0], rooms)
                return
        # Outside the room, so that no task group of a backend wraps it.
        raise failed

    async def _expected(self, cell: Cell, suites: Sequence[Suite]) -> list[Expected]:
        wanted = self.options.python
        if wanted is not None and not f"{cell.python}.".startswith(f"{wanted}."):
            raise RefereeError(f"the room has Python {cell.python}: expected {wanted}, as the referee's options pin it")
        return await self._store.get(cell, suites)


@dataclass(frozen=True, kw_only=True)
class _Case:
    """An exhibit and the suite that judges it."""

    exhibit: Exhibit
    suite: Suite

    @property
    def code(self) -> bytes | None:
        """The candidate's source, or None when the exhibit has none."""
        entry = self.exhibit.tree.files.get(self.suite.options.file)
        return None if entry is None else entry.data

    def verdict(self, public: TierRun, hidden: TierRun | None, *, python: str, seconds: float | None) -> Verdict:
        """The verdict that two tiers make. The hidden one tells its class and nothing else."""
        decided = public if hidden is None else hidden
        execution = f"{fresh_token()} python {python}".strip()
        return Verdict(
            reading=decided.reading,
            standing=EvalPlusReferee.classes[decided.reading],
            evidence=Evidence(code=self.exhibit.digest, suite=self.suite.digest, execution=execution),
            tiers=(
                TierReading(tier="public", reading=public.reading, passed=public.passed, total=public.total),
                TierReading(tier="hidden", reading=hidden.reading)
                if hidden is not None
                else TierReading(tier="hidden", reading="NOT_RUN", ran=False),
            ),
            detail=f"public tier, {public.why}" if hidden is None else f"hidden tier: {hidden.reading}",
            seconds=seconds,
        )


async def _examine(cell: Cell, case: _Case, expected: Expected) -> tuple[TierRun, TierRun | None]:
    """The public tier, and after a PASS the hidden one, in a child of its own."""
    suite, code = case.suite, case.code
    if code is None:
        why = f"build: the exhibit has no {suite.options.file!r}"
        dropped = [entry.why for entry in case.exhibit.dropped if entry.path == suite.options.file]
        why += "".join(f" (it was left out: {reason})" for reason in dropped)
        return TierRun(reading="NO_BUILD", passed=0, total=len(suite.calls["public"]), violated=(), why=why), None
    public = await judge_tier(cell, suite, "public", expected, code, full=True)
    # A task without hidden calls is decided by its public ones.
    if public.reading != "PASS" or not suite.calls["hidden"]:
        return public, None
    return public, await judge_tier(cell, suite, "hidden", expected, code, full=False)


def _crash(suite: Suite, lost: CellLost) -> TierRun:
    why = f"twice the zygote was lost while it ran, right after it had judged a known program: {lost}"
    return TierRun(reading="CRASH", passed=0, total=len(suite.calls["public"]), violated=(), why=why)


async def _twice(rooms: RoomOpener, work: Callable[[Cell], Awaitable[T]]) -> T:
    """Do `work` in a cell; once more, in a fresh room, when something of ours fails."""
    try:
        return await in_cell(rooms, work)
    except (RefereeError, WorkspaceError):
        return await in_cell(rooms, work)


class _Check:
    """The public tier of one task, as a seat may ask for it."""

    def __init__(self, kept: Cell, suite: Suite, expected: Expected, rooms: RoomOpener) -> None:
        self._kept, self._suite, self._expected, self._rooms = kept, suite, expected, rooms

    async def __call__(self, code: str) -> PublicReading:
        """
        What the public tier says of `code`. Raises `RefereeError` or `WorkspaceError` when, twice, it can't be had.
        """
        data = code.encode("utf-8", "surrogatepass")
        run = await self._try(self._kept, data) if self._kept.usable else None
        for _ in range(_ATTEMPTS):
            if isinstance(run, TierRun):
                break
            # A room of this call's own: one kept for later calls could not be closed in the order it was opened in.
            run = await _twice(self._rooms, lambda cell: self._try(cell, data))
        if not isinstance(run, TierRun):
            assert run is not None
            run = _crash(self._suite, run)
        return self._reading(run)

    async def _try(self, cell: Cell, code: bytes) -> TierRun | CellLost:
        try:
            return await judge_tier(cell, self._suite, "public", self._expected, code, full=True)
        except CellLost as lost:
            return lost

    def _reading(self, run: TierRun) -> PublicReading:
        suite = self._suite
        return PublicReading(
            reading=run.reading,
            accepted=EvalPlusReferee.classes[run.reading] == "accepted",
            passed=run.passed,
            total=run.total,
            facts=facts_of(suite, self._expected, run),
        )


def facts_of(suite: Suite, expected: Expected, run: TierRun) -> tuple[Fact, ...]:
    """The first six violated public assertions that can be written, in source order."""
    facts: list[Fact] = []
    for index in run.violated:
        answer = expected["public"][index]
        if suite.rule == "not_none":
            value: Any = not (answer.kind == "V" and answer.data == b"N")
        elif answer.kind == "V" and len(answer.data) <= _FACT_BYTES:
            value = answer.value()
        else:
            continue
        fact = render(suite.rule, suite.entry_point, suite.calls["public"][index], value, atol=suite.atol)
        if fact is not None:
            facts.append(fact)
        if len(facts) == _MOST_FACTS:
            break
    return tuple(facts)
