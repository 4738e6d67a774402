"""Fisher's exact test of a contrast whose arms are not paired: each arm's cells are a group of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cells.bounds import Reach
from cells.deciders.comparison import Comparison, Figures
from cells.stats import fisher_exact

if TYPE_CHECKING:
    from cells.pair_counts import Side

__all__ = ["FisherDecider"]

MOST_READINGS = 4096
"""So many readings of the unjudged cells are gone through; with more, the bounds of p are undefined."""


class FisherDecider:
    """Fisher's exact test of the two arms' passes and failures."""

    def __init__(self, comparison: Comparison) -> None:
        self._of = comparison
        self._passed = (comparison.treatment.count("pass"), comparison.control.count("pass"))
        self._failed = (comparison.treatment.count("fail"), comparison.control.count("fail"))

    def _p(self, treatment: tuple[int, int], control: tuple[int, int]) -> float:
        return fisher_exact(*treatment, *control, alternative=self._of.item.alternative).p_value

    def best_p(self) -> float:
        """The treatment's cells all one way, the control's all the other."""
        n, m = len(self._of.treatment), len(self._of.control)
        more, less = self._p((n, 0), (0, m)), self._p((0, n), (m, 0))
        return min(more, less)

    def figures(self) -> Figures:
        """The p-value of the judged cells; 1 where an arm has none."""
        return Figures(p_value=self._p((self._passed[0], self._failed[0]), (self._passed[1], self._failed[1])))

    def reach(self, opening: frozenset[Side]) -> Reach:
        """The extremes over every number of passes among each arm's opened cells."""
        extra = [_opened(side, opening) for side in (self._of.treatment, self._of.control)]
        judged = [passed + failed for passed, failed in zip(self._passed, self._failed, strict=True)]
        n, m = judged[0] + extra[0], judged[1] + extra[1]
        if not n or not m:
            return Reach(open=sum(extra))
        low = self._passed[0] / n - (self._passed[1] + extra[1]) / m
        high = (self._passed[0] + extra[0]) / n - self._passed[1] / m
        if (extra[0] + 1) * (extra[1] + 1) > MOST_READINGS:
            return Reach(open=sum(extra), effect_low=low, effect_high=high)
        values = [
            self._p((a, n - a), (c, m - c))
            for a in range(self._passed[0], self._passed[0] + extra[0] + 1)
            for c in range(self._passed[1], self._passed[1] + extra[1] + 1)
        ]
        return Reach(open=sum(extra), effect_low=low, effect_high=high, p_low=min(values), p_high=max(values))


def _opened(side: Sequence[Side], opening: frozenset[Side]) -> int:
    return sum(said in opening for said in side)
