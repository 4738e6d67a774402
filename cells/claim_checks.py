"""What is looked at, once the cells are declared, of all that an experiment says of its result beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cells.comparing import compare
from cells.stop_rules import StopRules, refuse_met_at_once
from cells.strata import placer
from harness.figure_refs import Known, known_of

if TYPE_CHECKING:
    from harness.analysis import Analysis
    from harness.experiment import Experiment
    from harness.values import CellKey

__all__ = ["known_figures", "refuse_idle_claims"]


def known_figures(analysis: Analysis, cells: Sequence[CellKey]) -> Known:
    """What references may name in an experiment of these declared cells: its strata too."""
    strata = {}
    for item in analysis.contrasts:
        place = placer(item.strata, analysis.groupings)
        pairs = compare(item, cells, lambda _cell: "none", analysis).pairs if item.strata else ()
        places = dict.fromkeys(place(pair.cells[0].unit) for pair in pairs)
        strata[item.name] = [name for name in places if name is not None]
    return known_of(analysis, cells, strata)


def refuse_idle_claims(experiment: Experiment, cells: Sequence[CellKey]) -> None:
    """Refuse claims about figures that no declared cell gives, and a stop rule that is met before the first cell."""
    experiment.refuse_bad_claims(known_figures(experiment.analysis, cells))
    if experiment.stops:
        refuse_met_at_once(StopRules(rules=experiment.stops, cells=cells, analysis=experiment.analysis))
