"""The exact McNemar test of a contrast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cells.bounds import Reach
from cells.deciders.comparison import Comparison, Figures
from cells.stats import best_attainable_p, mcnemar_exact

if TYPE_CHECKING:
    from cells.pair_counts import Side
    from harness.analysis import Alternative

__all__ = ["McNemarDecider"]


class McNemarDecider:
    """Exact McNemar on the discordant pairs, in the registered direction."""

    def __init__(self, comparison: Comparison) -> None:
        self._of = comparison

    def best_p(self) -> float:
        """Every pair in the claimed direction."""
        return best_attainable_p(len(self._of.pairs), alternative=self._of.item.alternative)

    def figures(self) -> Figures:
        """The p-value of the judged pairs."""
        counts = self._of.counts
        test = mcnemar_exact(counts.treatment_only, counts.control_only, alternative=self._of.item.alternative)
        return Figures(p_value=test.p_value)

    def reach(self, opening: frozenset[Side]) -> Reach:
        """
        The least and the greatest p-value over every reading.

        A one-sided p falls with b01 and rises with b10, so its extremes lie where every opened pair speaks for one arm.
        Twice the smaller tail, a two-sided p, has its extremes at the same two corners, tail by tail.
        """
        more, counts, claim = self._of.opened(opening), self._of.counts, self._of.item.alternative
        b01, b10 = counts.treatment_only, counts.control_only
        corners = [(b01 + more.for_treatment, b10), (b01, b10 + more.for_control)]
        tails: list[Alternative] = ["greater", "less"] if claim == "two-sided" else [claim]
        of_tail = [[mcnemar_exact(*corner, alternative=tail).p_value for corner in corners] for tail in tails]
        low, high = more.effects(counts)
        return Reach(
            open=more.n,
            effect_low=low,
            effect_high=high,
            p_low=min(1.0, len(tails) * min(min(values) for values in of_tail)),
            p_high=min(1.0, len(tails) * min(max(values) for values in of_tail)),
        )
