"""Judging a run's recorded exhibits again, with no call of any model, and comparing verdict by verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from cells.freeze import reopen_for_judging
from cells.house import House
from cells.plan import read_run
from cells.verdicts import judge
from harness.canonical import plain
from harness.clock import Clock
from harness.errors import Blamed, UsageError
from harness.outcome import CellOutcome
from harness.record import Record
from harness.tree import Exhibit
from harness.values import TierReading, Verdict

__all__ = ["Rescored", "rescore", "summary"]

_NAMED = 5
"""How many tests whose readings differ are named."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rescored:
    """
    One verdict of an outcome given again: `now` is None when the referee could not work, and `why` says what differs.
    `round` is that of the candidate that was judged, None where only what ships was.
    """

    cell: str
    attempt: int
    recorded: str
    now: str | None
    identical: bool
    why: str
    round: int | None = None


async def rescore(
    folder: Path,
    *,
    clock: Clock,
    keep: bool,
    seen: Callable[[Rescored], None],
    told: Callable[[str], None],
    begun: Callable[[int], None] = lambda _total: None,
) -> tuple[list[Rescored], list[str]]:
    """
    Judge each recorded exhibit and candidate again in sealed workspaces, with the run's own tasks and suites.

    Returns the rows, and a sentence for each thing that judges and is not as it was frozen (code, referee, image,
    walls): the verdicts are then those of another instrument. `told` gets these sentences before anything is judged,
    `begun` how many exhibits there are, `seen` each row as it comes. With `keep` both become an entry of the record.
    Raises `UsageError` when nothing was judged: of nothing, everything is identical.
    """
    judged = _judged_exhibits(folder)
    frozen, changed = await reopen_for_judging(folder, clock=clock)
    for sentence in changed:
        told(sentence)
    house = House.of(frozen, clock=clock)
    await frozen.parts.backend.reap()
    rows: dict[int, Rescored] = {}
    limiter = anyio.CapacityLimiter(house.parts.experiment.concurrency)

    async def again(index: int, one: _Judged) -> None:
        async with limiter:
            rows[index] = await _judge_again(house, one)
        seen(rows[index])

    begun(len(judged))
    async with anyio.create_task_group() as tasks:
        for index, one in enumerate(judged):
            tasks.start_soon(again, index, one)
    found = [rows[index] for index in sorted(rows)]
    if keep:
        with Record(folder, registration_digest=frozen.registration.digest, clock=clock) as record:
            record.append("run.rescored", plain(summary(found, changed)))
    return found, changed


@dataclass(frozen=True, kw_only=True, slots=True)
class _Judged:
    """One tree that was judged of an outcome, and the verdict on it."""

    outcome: CellOutcome
    exhibit: str
    verdict: Verdict
    round: int | None = None


def _judged_exhibits(folder: Path) -> list[_Judged]:
    progress, _head = read_run(folder)
    judged = [one for outcome in progress.outcomes() for one in _judged_of(outcome)]
    if not judged:
        raise UsageError(f"{folder} has no judged exhibit in its record: expected one at least. Run it first")
    return judged


def _judged_of(outcome: CellOutcome) -> Iterator[_Judged]:
    """What ships, or the candidates that were judged, equal ones once."""
    verdict, seen = outcome.verdict or outcome.would_be, set[str]()
    if verdict is None or outcome.exhibit is None:
        return
    if not outcome.candidates:
        yield _Judged(outcome=outcome, exhibit=outcome.exhibit, verdict=verdict)
    for one in outcome.candidates:
        if one.exhibit not in seen:
            yield _Judged(outcome=outcome, exhibit=one.exhibit, verdict=one.verdict, round=one.round)
        seen.add(one.exhibit)


def summary(rows: list[Rescored], changed: list[str]) -> dict[str, Any]:
    """The comparison as JSON data: counts, and every row that differs."""
    differing = [row for row in rows if not row.identical]
    return {
        "judged": len(rows),
        "identical": len(rows) - len(differing),
        "instrument_changes": changed,
        "differing": [
            {
                "cell": row.cell,
                "attempt": row.attempt,
                "round": row.round,
                "recorded": row.recorded,
                "now": row.now,
                "why": row.why,
            }
            for row in differing
        ],
    }


async def _judge_again(house: House, one: _Judged) -> Rescored:
    outcome, before = one.outcome, one.verdict
    exhibit = Exhibit(tree=await anyio.to_thread.run_sync(house.store.get_tree, one.exhibit))
    try:
        task = house.parts.tasks[f"{outcome.cell.benchmark}/{outcome.cell.task}"]
        now: Verdict | None = await judge(house, task, exhibit)
        why = "" if now is not None and now.same_as(before) else _difference(before, now)
    except Blamed as error:
        now, why = None, f"not judged: {error.cause}: {error}"
    return Rescored(
        cell=str(outcome.cell),
        attempt=outcome.attempt,
        recorded=before.reading,
        now=None if now is None else now.reading,
        identical=now is not None and now.same_as(before),
        why=why,
        round=one.round,
    )


def _difference(before: Verdict, now: Verdict | None) -> str:
    """Everything that two verdicts do not agree on."""
    assert now is not None
    pairs: list[tuple[str, object, object]] = [
        ("reading", before.reading, now.reading),
        ("standing", before.standing, now.standing),
        ("would-be reading", before.would_be, now.would_be),
        ("code", before.evidence.code[:12], now.evidence.code[:12]),
        ("suite", before.evidence.suite[:12], now.evidence.suite[:12]),
        ("tiers", [_tier(tier) for tier in before.tiers], [_tier(tier) for tier in now.tiers]),
    ]
    parts = [f"{name} {was!r} -> {is_now!r}" for name, was, is_now in pairs if was != is_now]
    return "; ".join([*parts, *_tests(before, now)])


def _tier(tier: TierReading) -> str:
    counts = "" if tier.passed is None else f" {tier.passed}/{tier.total}"
    return f"{tier.tier} {tier.reading}{counts}"


def _tests(before: Verdict, now: Verdict) -> list[str]:
    """The tests whose readings differ, the first few by name."""
    was = {test.id: test.reading for test in before.tests}
    is_now = {test.id: test.reading for test in now.tests}
    names = [name for name in {**was, **is_now} if was.get(name) != is_now.get(name)]
    said = [f"test {name} {was.get(name)!r} -> {is_now.get(name)!r}" for name in names[:_NAMED]]
    return [*said, *([f"and {len(names) - _NAMED} tests more"] if len(names) > _NAMED else [])]
