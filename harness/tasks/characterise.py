"""
What a referee says of the candidates whose class is known beforehand: the reference, the degenerate battery, and each
mutant. A suite that accepts one of the latter, or not the reference, measures nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import anyio

from harness.errors import RefereeError
from harness.ports import Referee, RoomOpener
from harness.tasks.generated_mutants import Generated
from harness.tasks.mutants import mutants
from harness.tasks.task import Task
from harness.tree import Exhibit, Tree
from harness.values import TestReading, Verdict

__all__ = ["KINDS", "Characterised", "Judge", "Kind", "characterise", "counted", "holds", "least_margin"]

Kind: TypeAlias = Literal["reference", "battery", "mutant", "generated"]
KINDS: tuple[Kind, ...] = ("reference", "battery", "mutant")
"""What every suite is characterised by; generated mutants come on top where they are asked for."""

Judge: TypeAlias = Callable[[Exhibit], Awaitable[Verdict]]

_ACCEPTED: Mapping[Kind, str] = {"mutant": "survived", "generated": "survived"}
_REJECTED: Mapping[Kind, str] = {"mutant": "killed", "generated": "killed"}
_UNBUILT = "it does not build, so that no test ran: plant a fault in what builds"


@dataclass(frozen=True, kw_only=True, slots=True)
class Characterised:
    """
    One candidate. `word` is `accepted` or `rejected`, for a mutant `survived` or `killed`, and `not measured` where the
    referee failed or could not decide, or where a mutant does not build, so that no test ran: any suite would reject
    it. `holds` is whether that is as it must be. `failed` counts the tests that did not pass, None where the suite did
    not run or does not tell. `diff` is what a generated mutant changed.
    """

    name: str
    kind: Kind
    word: str
    holds: bool
    reading: str | None = None
    failed: int | None = None
    total: int | None = None
    detail: str = ""
    tests: tuple[TestReading, ...] = ()
    diff: str = ""

    @property
    def called(self) -> str:
        """The kind and the name; the reference has no other name."""
        return self.kind if self.name == self.kind else f"{self.kind} {self.name}"

    @property
    def said(self) -> tuple[str | None, str]:
        """What two judgements of one candidate must agree on, beside its tests."""
        return self.reading, self.word


async def characterise(
    referee: Referee,
    task: Task,
    rooms: RoomOpener,
    *,
    kinds: Iterable[Kind] = KINDS,
    at_once: int = 1,
    generated: Mapping[str, Generated] | None = None,
    judge: Judge | None = None,
) -> tuple[Characterised, ...]:
    """
    Judge every candidate of `kinds`, and the `generated` mutants, `at_once` of them at a time; the rows stand in a
    fixed order. `judge` takes the place of the referee's own where a verdict must go through more than that.

    A referee that fails on one gives a row `not measured`; what a workspace raises comes through.
    """

    async def own(exhibit: Exhibit) -> Verdict:
        return await referee.judge(exhibit, task.open, task.sealed, rooms)

    todo = [(kind, name, tree, "") for kind in kinds for name, tree in _candidates(referee, task, kind).items()]
    todo += [("generated", name, mutant.tree, mutant.diff) for name, mutant in (generated or {}).items()]
    rows: dict[int, Characterised] = {}
    limiter = anyio.CapacityLimiter(at_once)

    async def one(index: int, kind: Kind, name: str, tree: Tree, diff: str) -> None:
        async with limiter:
            rows[index] = await _judged(judge or own, kind=kind, name=name, tree=tree, diff=diff)

    async with anyio.create_task_group() as group:
        for index, candidate in enumerate(todo):
            group.start_soon(one, index, *candidate)
    return tuple(rows[index] for index in range(len(todo)))


def _candidates(referee: Referee, task: Task, kind: Kind) -> Mapping[str, Tree]:
    match kind:
        case "reference":
            return {"reference": referee.reference(task.sealed)}
        case "battery":
            return referee.battery(task.open, task.sealed)
        case "mutant":
            return mutants(task.sealed)
        case "generated":
            return {}


async def _judged(judge: Judge, *, kind: Kind, name: str, tree: Tree, diff: str) -> Characterised:
    try:
        verdict = await judge(Exhibit(tree=tree))
    except RefereeError as error:
        return Characterised(name=name, kind=kind, word="not measured", holds=False, detail=str(error), diff=diff)
    stillborn = kind in _REJECTED and _stillborn(verdict)
    if stillborn or verdict.standing == "unscorable":
        word, reading = "not measured", verdict.reading
        detail = f"{_UNBUILT}: {verdict.detail}" if stillborn else verdict.detail
        return Characterised(name=name, kind=kind, word=word, holds=False, reading=reading, detail=detail, diff=diff)
    return _row(kind, name, verdict, diff)


def _stillborn(verdict: Verdict) -> bool:
    """Whether no test ran, for what was judged does not build. Where a referee tells of no test, nobody knows."""
    return verdict.reading == "NO_BUILD" and {test.reading for test in verdict.tests} == {"NOT_RUN"}


def _row(kind: Kind, name: str, verdict: Verdict, diff: str) -> Characterised:
    accepted = verdict.standing == "accepted"
    failed, total = counted(verdict)
    return Characterised(
        name=name,
        kind=kind,
        word=_ACCEPTED.get(kind, "accepted") if accepted else _REJECTED.get(kind, "rejected"),
        holds=accepted == (kind == "reference"),
        reading=verdict.reading,
        failed=failed,
        total=total,
        detail=verdict.detail,
        tests=verdict.tests,
        diff=diff,
    )


def counted(verdict: Verdict) -> tuple[int | None, int | None]:
    """
    How many tests failed, of how many that are told of; None where that is not told, as by a hidden tier. A test that
    was not run, as behind one that never ended, says nothing against a candidate.
    """
    told = [(tier.passed, tier.total) for tier in verdict.tiers if tier.passed is not None and tier.total is not None]
    failed = sum(total - passed for passed, total in told)
    failed = max(0, failed - sum(test.reading == "NOT_RUN" for test in verdict.tests))
    known = bool(told) and (failed > 0 or verdict.standing == "accepted")
    return failed if known else None, sum(total for _, total in told) if told else None


def least_margin(rows: Sequence[Characterised]) -> int | None:
    """The fewest tests that any killed mutant fails; 0 if a mutant survived; None if no mutant was measured."""
    measured = [row for row in rows if row.kind == "mutant" and row.word in {"killed", "survived"}]
    counts = [0 if row.word == "survived" else row.failed for row in measured]
    return min((count for count in counts if count is not None), default=None)


def holds(rows: Iterable[Characterised]) -> bool:
    """
    Whether the suite may be relied on: every row but those of generated mutants is as it must be. Of the generated ones
    some may do the same as the reference, which nobody but a reader can tell.
    """
    return all(row.holds for row in rows if row.kind != "generated")
