"""Playing many cells at once, retrying what is VOID, and stopping when something of ours is plainly down."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

import anyio

from cells.cell import play
from cells.house import House
from cells.journal import Journal
from cells.lockstep import Lockstep, never_played
from cells.plan import declared
from cells.stopping import stop_if_met
from harness.errors import FenceError, GateRefused, MirrorBroken, MirrorLost, TokensShown
from harness.outcome import CellOutcome, outcome_to_json
from harness.values import CellKey, Void

__all__ = ["play_all"]


_TURN_S = 0.02
"""Seconds after which a worker without a cell that may start looks again."""

_GATES = {FenceError.cause: "cell", MirrorBroken.cause: "mirror", TokensShown.cause: "tokens"}
"""What stops a run at once, by the cause of the VOID that it is recorded as."""


@dataclass
class _Streak:
    """VOIDs in a row of one cause: a dead engine or model server would otherwise burn every cell's tries."""

    limit: int
    cause: str | None = None
    length: int = 0
    detail: str = ""

    def saw(self, outcome: CellOutcome) -> None:
        """Count an outcome; one that is only another's consequence says nothing."""
        if _follows(outcome):
            return
        if not isinstance(outcome.end, Void):
            self.cause, self.length = None, 0
            return
        self.length = self.length + 1 if outcome.end.cause == self.cause else 1
        self.cause, self.detail = outcome.end.cause, outcome.end.detail

    @property
    def told(self) -> str:
        """Why, in a sentence."""
        return f"stopped early: {self.length} tries in a row were VOID({self.cause}): {self.detail}."

    @property
    def over(self) -> bool:
        """Whether to give up for now."""
        return self.length >= self.limit


def _follows(outcome: CellOutcome) -> bool:
    """Whether a cell is VOID since the one that it mirrors is."""
    return isinstance(outcome.end, Void) and outcome.end.cause == MirrorLost.cause


@dataclass
class _Queue:
    cells: deque[CellKey]
    tries: dict[CellKey, int] = field(default_factory=dict)

    def again(self, cell: CellKey, outcome: CellOutcome, lockstep: Lockstep, *, retries: int) -> None:
        """Put a cell that ended VOID back, as often as registered; one that only followed its source goes with it."""
        if outcome.is_final:
            return
        follows = _follows(outcome) and not lockstep.lost(cell)
        self.tries[cell] = self.tries.get(cell, 0) + (0 if follows else 1)
        if follows or (self.tries[cell] <= retries and not _follows(outcome)):
            self.cells.append(cell)
        else:
            lockstep.give_up(cell)


async def play_all(house: House, journal: Journal, cells: Iterable[CellKey]) -> None:
    """
    Play every cell to a final outcome, in order, `concurrency` at once. A VOID is tried again as often as registered;
    each try is a line of the record, written as soon as it is known.

    A cell that stays VOID has no outcome: the next session tries it again. After `5 + 2 x concurrency` VOIDs in a row
    of one cause the session stops, and says so. One VOID(fence) or one packet that an audit refuses stops it at once:
    raises `GateRefused`, and whatever is under way is cut off. Once a stop rule is met no further cell starts, and no
    further try. A cell that mirrors another starts once that one has; it is tried again with it, at no try of its own.
    """
    experiment = house.parts.experiment
    queue = _Queue(deque(cells))
    lockstep = Lockstep(house, journal, queue.cells)
    streak = _Streak(limit=5 + 2 * experiment.concurrency)
    retries = declared(house.registration, journal.progress).void_retries

    async def work() -> None:
        while queue.cells and not streak.over and journal.progress.stopped is None:
            cell = lockstep.take(queue.cells)
            if cell is None:  # what is left waits for a source that another worker is about to put back
                await anyio.sleep(_TURN_S)
                continue
            outcome = await _play_once(house, journal, lockstep, cell)
            # No await before the cell is back in the queue: those that mirror it must not find it nowhere.
            _refuse_what_stops_all(outcome)
            streak.saw(outcome)
            queue.again(cell, outcome, lockstep, retries=retries)
            await stop_if_met(house, journal)

    async with anyio.create_task_group() as workers:
        for _ in range(min(experiment.concurrency, len(queue.cells))):
            workers.start_soon(work)
    if streak.over and queue.cells:
        journal.watcher.note(f"{streak.told} {len(queue.cells)} cells are left; put it right, then run again.")


def _refuse_what_stops_all(outcome: CellOutcome) -> None:
    """No other cell is played behind a fence that was seen open, nor with packets that are not what they say."""
    gate = _GATES.get(outcome.end.cause) if isinstance(outcome.end, Void) else None
    if gate is not None and isinstance(outcome.end, Void):
        raise GateRefused(gate, f"{outcome.cell} (try {outcome.attempt}): {outcome.end.detail}")


async def _play_once(house: House, journal: Journal, lockstep: Lockstep, cell: CellKey) -> CellOutcome:
    attempt = journal.progress.next_attempt(cell)
    await journal.add("cell.started", {"cell": asdict(cell), "attempt": attempt})
    if lockstep.lost(cell):
        outcome = never_played(cell, attempt)
    else:
        outcome = await lockstep.settled(await play(house, cell, attempt, mirror=lockstep.line(cell)))
    await journal.add("cell.ended", outcome_to_json(outcome))
    lockstep.ended(outcome)
    return outcome
