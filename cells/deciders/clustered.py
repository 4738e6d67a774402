"""McNemar's test of a contrast whose pairs depend on each other within clusters."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from cells.bounds import Reach, could_be, opened
from cells.deciders.comparison import Comparison, Figures
from cells.pair_counts import PairState, Side, count_pairs
from cells.stats import ClusteredPair, best_attainable_p, mcnemar_clustered

if TYPE_CHECKING:
    from cells.stats import ClusteredMcNemar

__all__ = ["ClusteredMcNemarDecider"]

MOST_READINGS = 4096
"""So many readings of the unjudged pairs are gone through; with more, the bounds of p are undefined."""


class ClusteredMcNemarDecider:
    """McNemar's statistic with the variance between clusters, after Durkalski and others."""

    def __init__(self, comparison: Comparison) -> None:
        self._of = comparison
        self._clusters: dict[str, list[PairState]] = {}
        for pair in comparison.pairs:
            name = comparison.cluster_of(pair.cells[0].unit)
            if name is not None:
                self._clusters.setdefault(name, []).append(pair)

    def best_p(self) -> float:
        """Every cluster wholly in the claimed direction: then z is the root of how many clusters there are."""
        if not self._clusters:
            return best_attainable_p(0, alternative=self._of.item.alternative)
        way = (0, 1) if self._of.item.alternative == "less" else (1, 0)
        return self._test(ClusteredPair(name=name, n=1, b01=way[0], b10=way[1]) for name in self._clusters).p_value

    def _test(self, clusters: Iterable[ClusteredPair]) -> ClusteredMcNemar:
        return mcnemar_clustered(list(clusters), alternative=self._of.item.alternative)

    def figures(self) -> Figures:
        """The p-value and z of the clusters that have a judged pair."""
        judged = {name: count_pairs(pairs) for name, pairs in self._clusters.items()}
        clusters = [
            ClusteredPair(name=name, n=counts.judged, b01=counts.treatment_only, b10=counts.control_only)
            for name, counts in judged.items()
            if counts.judged
        ]
        if not clusters:
            return Figures(p_value=1.0)
        test = self._test(clusters)
        return Figures(p_value=test.p_value, statistic=test.z)

    def reach(self, opening: frozenset[Side]) -> Reach:
        """
        The extremes over every reading, found by going through them: one more win may lower this test's z.

        The effect is the mean over clusters of their risk difference, whose sign is z's.
        """
        ranges = {
            name: found for name, pairs in self._clusters.items() if (found := _range(pairs, opening)) is not None
        }
        n_open = sum(of.n for of in ranges.values())
        if not ranges:
            return Reach(open=0)
        low, high = (sum(pick(of.net) / of.judged for of in ranges.values()) / len(ranges) for pick in (min, max))
        if prod(len(of.net) for of in ranges.values()) > MOST_READINGS:
            return Reach(open=n_open, effect_low=low, effect_high=high)
        values = [
            self._test(
                ClusteredPair(name=name, n=of.judged, b01=max(net, 0), b10=max(-net, 0))
                for (name, of), net in zip(ranges.items(), nets, strict=True)
            ).p_value
            for nets in product(*(of.net for of in ranges.values()))
        ]
        return Reach(open=n_open, effect_low=low, effect_high=high, p_low=min(values), p_high=max(values))


class _Range:
    """What a cluster's net can be over `judged` pairs, `n` of them opened ones."""

    def __init__(self, judged: int, n: int, net: range) -> None:
        self.judged, self.n, self.net = judged, n, net


def _range(pairs: list[PairState], opening: frozenset[Side]) -> _Range | None:
    counts, more = count_pairs(pairs), opened(pairs, opening)
    judged = counts.judged + len(more)
    if not judged:
        return None
    low, high = counts.net - could_be(more, "fail", "pass"), counts.net + could_be(more, "pass", "fail")
    return _Range(judged, len(more), range(low, high + 1))
