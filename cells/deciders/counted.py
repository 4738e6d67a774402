"""The count rule of a contrast: no p-value, two counts and the difference that was said to tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cells.bounds import Reach
from cells.deciders.comparison import Comparison, Figures
from cells.stats import count_rule, null_separation

if TYPE_CHECKING:
    from cells.pair_counts import Side

__all__ = ["CountRuleDecider"]


class CountRuleDecider:
    """Supported if the discordant counts differ by the separation at least, the claimed way round."""

    def __init__(self, comparison: Comparison) -> None:
        self._of = comparison

    def best_p(self) -> None:
        """A count rule has no p-value."""

    def _separation(self, n: int) -> int:
        registered = self._of.item.separation
        assert registered is not None  # the contrast refuses anything else
        return null_separation(n, alpha=self._of.alpha) if registered == "null" else registered

    def _holds(self, b01: int, b10: int) -> bool:
        claimed = {"greater": b01 > b10, "less": b01 < b10, "two-sided": True}[self._of.item.alternative]
        return claimed and count_rule(b01, b10, separation=self._separation(b01 + b10))

    def figures(self) -> Figures:
        """Whether the counts of the judged pairs are apart."""
        b01, b10 = self._of.counts.treatment_only, self._of.counts.control_only
        return Figures(p_value=None, separation=self._separation(b01 + b10), supported=self._holds(b01, b10))

    def reach(self, opening: frozenset[Side]) -> Reach:
        """
        The verdict holds if it is the same where every opened pair speaks for one arm and for the other.

        In between, the counts are less apart or lean the same way; two opposite leanings that both tell are no verdict
        that holds.
        """
        more, counts = self._of.opened(opening), self._of.counts
        b01, b10 = counts.treatment_only, counts.control_only
        low, high = more.effects(counts)
        most, least = self._holds(b01 + more.for_treatment, b10), self._holds(b01, b10 + more.for_control)
        one_way = not most or (low is not None and high is not None and (low > 0) == (high > 0))
        return Reach(open=more.n, effect_low=low, effect_high=high, verdict_holds=most == least and one_way)
