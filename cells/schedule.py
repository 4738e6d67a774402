"""Playing many cells at once, retrying what is VOID, and stopping when something of ours is plainly down."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

import anyio

from cells.cell import play
from cells.house import House
from cells.journal import Journal
from cells.plan import declared
from cells.stopping import stop_if_met
from harness.errors import FenceError, GateRefused
from harness.outcome import CellOutcome, outcome_to_json
from harness.values import CellKey, Void

__all__ = ["play_all"]


@dataclass
class _Streak:
    """VOIDs in a row of one cause: a dead engine or model server would otherwise burn every cell's tries."""

    limit: int
    cause: str | None = None
    length: int = 0
    detail: str = ""

    def saw(self, outcome: CellOutcome) -> None:
        """Count an outcome."""
        if not isinstance(outcome.end, Void):
            self.cause, self.length = None, 0
            return
        self.length = self.length + 1 if outcome.end.cause == self.cause else 1
        self.cause, self.detail = outcome.end.cause, outcome.end.detail

    @property
    def over(self) -> bool:
        """Whether to give up for now."""
        return self.length >= self.limit


@dataclass
class _Queue:
    cells: deque[CellKey]
    tries: dict[CellKey, int] = field(default_factory=dict)


async def play_all(house: House, journal: Journal, cells: Iterable[CellKey]) -> None:
    """
    Play every cell to a final outcome, in order, `concurrency` at once. A VOID is tried again as often as registered;
    each try is a line of the record, written as soon as it is known.

    A cell that stays VOID has no outcome: the next session tries it again. After `5 + 2 x concurrency` VOIDs in a row
    of one cause the session stops, and says so. One VOID(fence) stops it at once: raises `GateRefused`, and whatever is
    under way behind the same fence is cut off. Once a stop rule is met no further cell starts, and no further try.
    """
    experiment = house.parts.experiment
    queue = _Queue(deque(cells))
    streak = _Streak(limit=5 + 2 * experiment.concurrency)
    retries = declared(house.registration, journal.progress).void_retries

    async def work() -> None:
        while queue.cells and not streak.over and journal.progress.stopped is None:
            cell = queue.cells.popleft()
            outcome = await _play_once(house, journal, cell)
            await stop_if_met(house, journal)
            _refuse_a_broken_fence(outcome)
            streak.saw(outcome)
            queue.tries[cell] = queue.tries.get(cell, 0) + 1
            if not outcome.is_final and queue.tries[cell] <= retries:
                queue.cells.append(cell)

    async with anyio.create_task_group() as workers:
        for _ in range(min(experiment.concurrency, len(queue.cells))):
            workers.start_soon(work)
    if streak.over and queue.cells:
        journal.watcher.note(
            f"stopped early: {streak.length} tries in a row were VOID({streak.cause}): {streak.detail}. "
            f"{len(queue.cells)} cells are left; put it right, then run again."
        )


def _refuse_a_broken_fence(outcome: CellOutcome) -> None:
    """No other cell is played behind a fence that one cell has seen open."""
    if isinstance(outcome.end, Void) and outcome.end.cause == FenceError.cause:
        raise GateRefused("cell", f"{outcome.cell} (try {outcome.attempt}): {outcome.end.detail}")


async def _play_once(house: House, journal: Journal, cell: CellKey) -> CellOutcome:
    attempt = journal.progress.next_attempt(cell)
    await journal.add("cell.started", {"cell": asdict(cell), "attempt": attempt})
    outcome = await play(house, cell, attempt)
    await journal.add("cell.ended", outcome_to_json(outcome))
    return outcome
