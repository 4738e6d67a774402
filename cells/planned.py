"""What a registered contrast could show before it is run: how many pairs it can have, its best p-value, its power."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cells.bootstrap_reading import undrawable
from cells.comparing import compare
from cells.deciders import decider
from cells.stats import exact_power
from cells.strata import unplaced
from harness.errors import ExperimentError

if TYPE_CHECKING:
    from cells.readable import Cell
    from harness.analysis import Analysis, Contrast

__all__ = ["TESTS", "Power", "foreseen", "planned_power", "refuse_unreadable"]

TESTS = {
    "mcnemar": "exact McNemar",
    "mcnemar-clustered": "McNemar with the variance between clusters",
    "fisher": "Fisher's exact test, the arms not paired",
    "count-rule": "count rule, without a p-value",
}
"""What decides on a contrast, in words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Power:
    """
    The probability that the exact test gives a p-value of `alpha` or less on `pairs` discordant pairs of which `share`
    truly favour the treatment.

    Conditional on the number of pairs. Without a registered level `alpha` is Holm's first: the analysis's level over
    the size of the family, which every contrast of it can count on whatever the others show.
    """

    pairs: int
    share: float
    alpha: float
    power: float


def planned_power(item: Contrast, analysis: Analysis) -> Power | None:
    """The power of a contrast at what was registered to be expected; None where nothing was."""
    if item.power is None:
        return None
    alpha = item.power.alpha or analysis.alpha / analysis.family_size(item)
    power = exact_power(item.power.pairs, item.power.share, alpha=alpha, alternative=item.alternative)
    return Power(pairs=item.power.pairs, share=item.power.share, alpha=alpha, power=power)


def foreseen(item: Contrast, cells: Sequence[Cell], analysis: Analysis) -> dict[str, Any]:
    """
    What can be said of a contrast before the first call: `n` pairs (or cells, where arms are not paired), the best
    p-value that they could give (None for a count rule, and without any), and the registered power, if there is one.
    """
    compared = compare(item, cells, lambda _cell: "none", analysis)
    n = len(compared.pairs) or len(compared.treatment) + len(compared.control)
    power = planned_power(item, analysis)
    return {
        "name": item.name,
        "test": TESTS[item.test],
        "n": n,
        "alternative": item.alternative,
        "best_attainable_p": decider(compared).best_p() if n else None,
        "power": None if power is None else asdict(power),
    }


def refuse_unreadable(analysis: Analysis, cells: Sequence[Cell]) -> None:
    """
    Raise `ExperimentError` for a contrast that these cells could never be read by: a unit without a place in its strata
    or clusters, or clusters that no bootstrap can draw.
    """
    lines = []
    for item in analysis.contrasts:
        lost = unplaced(item, cells, analysis.groupings)
        lines += lost
        if item.bootstrap is not None and not lost:
            pairs = compare(item, cells, lambda _cell: "none", analysis).pairs
            why = undrawable(item.bootstrap, pairs, analysis.groupings)
            lines += [] if why is None else [f"{item.name}: bootstrap: {why}"]
    if lines:
        raise ExperimentError("\n".join(lines))
