"""
The figures of a run that is going on, for whoever looks at one of them after each outcome.

The same functions as of the scoreboard, over the cells that the figure is of, and only when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from cells.bounds import declared_set
from cells.conditions import Census, censuses
from cells.contrasts import ContrastReading, read_contrast
from cells.costs import Cost, cost
from cells.groups import Members, by_arm, by_condition
from cells.ratios import RatioReading, read_ratio
from cells.settled import settle
from cells.spent import Spent, spent

if TYPE_CHECKING:
    from cells.guards import GuardReading
    from cells.registered import StopReading
    from harness.analysis import Analysis
    from harness.figure_refs import FigureRef
    from harness.outcome import CellOutcome
    from harness.values import CellKey

__all__ = ["Interim"]


class Interim:
    """What a figure that is there before the last outcome is read from; nothing of it is a verdict."""

    added: tuple[ContrastReading, ...] = ()
    guards: tuple[GuardReading, ...] = ()
    stop: StopReading | None = None

    def __init__(
        self, ref: FigureRef, cells: Sequence[CellKey], outcomes: Iterable[CellOutcome], analysis: Analysis
    ) -> None:
        self._ref, self._analysis = ref, analysis
        declared = [cell for cell in cells if self._is_of(cell)]
        known = set(declared)
        self._settled = settle(declared, [outcome for outcome in outcomes if outcome.cell in known])

    def _is_of(self, cell: CellKey) -> bool:
        """Whether the figure is of this cell; of comparisons, those that they select from."""
        wanted = ((self._ref.arm, cell.arm), (self._ref.extras, cell.extras), (self._ref.model, cell.model))
        placed = ((self._ref.benchmark, cell.benchmark), (self._ref.task, cell.task))
        return all(want in {None, has} for want, has in (*wanted, *placed))

    @property
    def planned(self) -> int:
        """The declared cells that the figure is of."""
        return len(self._settled.declared)

    @property
    def missing(self) -> tuple[str, ...]:
        """Those without an outcome."""
        return tuple(map(str, self._settled.missing))

    @property
    def broken(self) -> bool:
        """Whether a cell has several outcomes that disagree: no figure may be read of it."""
        return bool(self._settled.doubled)

    @cached_property
    def _conditions(self) -> tuple[Members, ...]:
        return by_condition(self._settled)

    @cached_property
    def _arms(self) -> tuple[Members, ...]:
        return by_arm(self._conditions)

    @cached_property
    def arms(self) -> tuple[Census, ...]:
        """The census of each arm."""
        return censuses(self._arms, (), tasks=False)

    @cached_property
    def conditions(self) -> tuple[Census, ...]:
        """The census of each condition."""
        return censuses(self._conditions, (), tasks=True)

    @cached_property
    def arm_costs(self) -> tuple[Cost, ...]:
        """What each arm costs."""
        return tuple(map(cost, self._arms))

    @cached_property
    def costs(self) -> tuple[Cost, ...]:
        """What each condition costs."""
        return tuple(map(cost, self._conditions))

    @cached_property
    def spent(self) -> Spent:
        """What every try cost together."""
        return spent(outcome for tries in self._settled.tries.values() for outcome in tries)

    @cached_property
    def contrasts(self) -> tuple[ContrastReading, ...]:
        """The contrast that the figure is of, without a verdict: no set has to be named that one is taken over."""
        named = [item for item in self._analysis.contrasts if item.name == self._ref.contrast]
        return tuple(
            read_contrast(item, self._settled, "incomplete", self._analysis, taken_over=declared_set(()))
            for item in named
        )

    @cached_property
    def ratios(self) -> tuple[RatioReading, ...]:
        """The ratio that the figure is of, without a verdict."""
        named = [item for item in self._analysis.ratios if item.name == self._ref.ratio]
        return tuple(read_ratio(item, self._conditions, self.costs, "incomplete") for item in named)
