"""
What a referee says of the candidates whose class is known beforehand: the reference, the degenerate battery, and each
mutant. A suite that accepts one of the latter, or not the reference, measures nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import anyio

from harness.errors import RefereeError
from harness.ports import Referee, RoomOpener
from harness.tasks.mutants import mutants
from harness.tasks.task import Task
from harness.tree import Exhibit, Tree
from harness.values import Verdict

__all__ = ["Characterised", "Kind", "characterise", "least_margin"]

Kind: TypeAlias = Literal["reference", "battery", "mutant"]

_WORDS: Mapping[tuple[Kind, bool], str] = {
    ("reference", True): "accepted",
    ("reference", False): "rejected",
    ("battery", True): "accepted",
    ("battery", False): "rejected",
    ("mutant", True): "survived",
    ("mutant", False): "killed",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Characterised:
    """
    One candidate. `word` is `accepted` or `rejected`, for a mutant `survived` or `killed`, and `not measured` where the
    referee failed or could not decide; `holds` is whether that is as it must be. `failed` counts the tests that did not
    pass, None where the suite did not run.
    """

    name: str
    kind: Kind
    word: str
    holds: bool
    reading: str | None = None
    failed: int | None = None
    total: int | None = None
    detail: str = ""


async def characterise(
    referee: Referee,
    task: Task,
    rooms: RoomOpener,
    *,
    kinds: Iterable[Kind] = ("reference", "battery", "mutant"),
    at_once: int = 1,
) -> tuple[Characterised, ...]:
    """
    Judge every candidate of `kinds`, `at_once` of them at a time; the rows stand in a fixed order.

    A referee that fails on one gives a row `not measured`; what a workspace raises comes through.
    """
    todo = [(kind, name, tree) for kind in kinds for name, tree in _candidates(referee, task, kind).items()]
    rows: dict[int, Characterised] = {}
    limiter = anyio.CapacityLimiter(at_once)

    async def judge(index: int, kind: Kind, name: str, tree: Tree) -> None:
        async with limiter:
            rows[index] = await _judged(referee, task, rooms, kind=kind, name=name, tree=tree)

    async with anyio.create_task_group() as group:
        for index, (kind, name, tree) in enumerate(todo):
            group.start_soon(judge, index, kind, name, tree)
    return tuple(rows[index] for index in range(len(todo)))


def _candidates(referee: Referee, task: Task, kind: Kind) -> Mapping[str, Tree]:
    match kind:
        case "reference":
            return {"reference": referee.reference(task.sealed)}
        case "battery":
            return referee.battery(task.open, task.sealed)
        case "mutant":
            return mutants(task.sealed)


async def _judged(
    referee: Referee, task: Task, rooms: RoomOpener, *, kind: Kind, name: str, tree: Tree
) -> Characterised:
    try:
        verdict = await referee.judge(Exhibit(tree=tree), task.open, task.sealed, rooms)
    except RefereeError as error:
        return Characterised(name=name, kind=kind, word="not measured", holds=False, detail=str(error))
    if verdict.standing == "unscorable":
        return Characterised(
            name=name, kind=kind, word="not measured", holds=False, reading=verdict.reading, detail=verdict.detail
        )
    return _row(kind, name, verdict)


def _row(kind: Kind, name: str, verdict: Verdict) -> Characterised:
    accepted = verdict.standing == "accepted"
    counted = [
        (tier.passed, tier.total) for tier in verdict.tiers if tier.passed is not None and tier.total is not None
    ]
    return Characterised(
        name=name,
        kind=kind,
        word=_WORDS[kind, accepted],
        holds=accepted == (kind == "reference"),
        reading=verdict.reading,
        failed=sum(total - passed for passed, total in counted) if counted else None,
        total=sum(total for _, total in counted) if counted else None,
        detail=verdict.detail,
    )


def least_margin(rows: Sequence[Characterised]) -> int | None:
    """The fewest tests that any killed mutant fails; 0 if a mutant survived; None if no mutant was measured."""
    measured = [row for row in rows if row.kind == "mutant" and row.word in {"killed", "survived"}]
    counts = [row.failed for row in measured if row.failed is not None]
    return min(counts, default=None)
