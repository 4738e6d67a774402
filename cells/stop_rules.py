"""
Stop rules: figures that end a run by the plan once they are where it was registered that they would end it.

A pure function of the record, so that whoever looks again comes to the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cells.figure_reading import FigureValue, figure_value
from cells.interim import Interim
from harness.analysis import Analysis
from harness.errors import ExperimentError
from harness.predictions import StopRule
from harness.values import CellKey

if TYPE_CHECKING:
    from harness.outcome import CellOutcome

__all__ = ["StopRules", "refuse_met_at_once"]


@dataclass(frozen=True, kw_only=True)
class StopRules:
    """The rules of an experiment over its declared cells."""

    rules: Sequence[StopRule]
    cells: Sequence[CellKey]
    analysis: Analysis

    def met(self, outcomes: Iterable[CellOutcome]) -> tuple[StopRule, FigureValue] | None:
        """
        The first rule whose figure is in its region for certain, with the figure; O(cells) a call.

        A figure that is a bound only meets a rule if every value that it may have does. Cells with outcomes
        that disagree meet none: no figure may be read of them.
        """
        tries = tuple(outcomes)
        for rule in self.rules:
            board = Interim(rule.ref, self.cells, tries, self.analysis)
            value = figure_value(rule.ref, board)
            if not board.broken and rule.span.covers(value.span):
                return rule, value
        return None


def refuse_met_at_once(rules: StopRules) -> None:
    """Raise `ExperimentError` for a rule that is met before the first cell: it would end a run that never began."""
    found = rules.met([])
    if found is not None:
        rule, value = found
        raise ExperimentError(f"stop rule {rule.name!r} ({rule}) is met before the first cell: there it is {value}")
