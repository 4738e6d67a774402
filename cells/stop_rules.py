"""
Stop rules: figures that end a run by the plan once they are where it was registered that they would end it.

A pure function of the record, so that whoever looks again comes to the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cells.figure_reading import FigureValue, figure_value
from cells.readings import score
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

        A figure that is a bound only meets a rule if every value that it may have does. A record that is refused meets
        none: no figure may be read of it.
        """
        board = score(self.cells, outcomes, self._looked_at(), head=None, registration_id="")
        if board.status == "refused":
            return None
        for rule in self.rules:
            value = figure_value(rule.ref, board)
            if rule.span.covers(value.span):
                return rule, value
        return None

    def _looked_at(self) -> Analysis:
        """The analysis without what no rule names: nothing else has to be computed after each outcome."""
        contrasts = {rule.contrast for rule in self.rules}
        ratios = {rule.ratio for rule in self.rules}
        return self.analysis.model_copy(
            update={
                "contrasts": tuple(item for item in self.analysis.contrasts if item.name in contrasts),
                "ratios": tuple(item for item in self.analysis.ratios if item.name in ratios),
                "guards": (),
            }
        )


def refuse_met_at_once(rules: StopRules) -> None:
    """Raise `ExperimentError` for a rule that is met before the first cell: it would end a run that never began."""
    found = rules.met([])
    if found is not None:
        rule, value = found
        raise ExperimentError(f"stop rule {rule.name!r} ({rule}) is met before the first cell: there it is {value}")
