"""Clustered McNemar and Fisher: known figures, what they reduce to, their size under the null, and refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cells.stats import ClusteredPair, fisher_exact, mcnemar_clustered

SMALL = st.integers(0, 12)


def pair(name: object, n: int, b01: int, b10: int) -> ClusteredPair:
    """A cluster."""
    return ClusteredPair(name=str(name), n=n, b01=b01, b10=b10)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 20))
def test_with_one_pair_a_cluster_it_is_mcnemars_statistic(b01, b10, alike):
    """(b01 - b10) / sqrt(b01 + b10), whatever number of pairs is alike."""
    kinds = [(1, 0)] * b01 + [(0, 1)] * b10 + [(0, 0)] * (alike + 1)
    found = mcnemar_clustered([pair(n, 1, *kind) for n, kind in enumerate(kinds)], alternative="two-sided")
    assert (found.clusters, found.informative) == (len(kinds), b01 + b10)
    if b01 + b10:
        assert found.z == pytest.approx((b01 - b10) / math.sqrt(b01 + b10))
    else:
        assert (found.z, found.p_value) == (None, 1.0)


def test_pairs_that_go_together_are_no_more_evidence_than_one():
    """Ten clusters of ten pairs that all go one way weigh as ten pairs do."""
    ways = [1] * 8 + [0] * 2
    together = mcnemar_clustered([pair(n, 10, 10 * w, 10 - 10 * w) for n, w in enumerate(ways)], alternative="greater")
    single = mcnemar_clustered([pair(n, 1, w, 1 - w) for n, w in enumerate(ways)], alternative="greater")
    assert together.z == pytest.approx(single.z)
    assert together.p_value == pytest.approx(0.0289, abs=1e-4)  # z = 6 / sqrt(10)


def test_its_size_is_what_it_says():
    """Of 2,000 made sets of 60 clusters without an effect, about one in twenty is called one."""
    chance = np.random.default_rng(1)
    called = 0
    for _ in range(2000):
        lean = chance.normal(0, 1, 60)
        sizes = chance.integers(1, 5, 60)
        made = [pair(n, int(s), int(s) if way > 0.8 else 0, int(s) if way < -0.8 else 0)
                for n, (s, way) in enumerate(zip(sizes, lean, strict=True))]  # fmt: skip
        called += mcnemar_clustered(made, alternative="two-sided").p_value <= 0.05
    assert 0.035 <= called / 2000 <= 0.065


@settings(deadline=None)  # the first call imports scipy.stats
@given(SMALL, SMALL, SMALL, SMALL)
def test_fisher_is_the_sum_over_tables_with_these_margins(a, b, c, d):
    """By whole numbers, in each direction."""
    row, column, total = a + b, a + c, a + b + c + d
    ways = {
        k: Fraction(math.comb(row, k) * math.comb(total - row, column - k), math.comb(total, column))
        for k in range(max(0, column - (total - row)), min(row, column) + 1)
    }
    expected = {
        "greater": sum(p for k, p in ways.items() if k >= a),
        "less": sum(p for k, p in ways.items() if k <= a),
        "two-sided": sum(p for p in ways.values() if p <= ways[a]),
    }
    for alternative, p in expected.items():
        found = fisher_exact(a, b, c, d, alternative=alternative)
        assert found.p_value == pytest.approx(float(p), abs=1e-9)
        assert found.odds_ratio == (a * d / (b * c) if b * c else None)


def test_the_lady_tasting_tea():
    """Three of four cups right: 17 of 70 (R. A. Fisher, The Design of Experiments, 1935)."""
    assert fisher_exact(3, 1, 1, 3, alternative="greater").p_value == pytest.approx(17 / 70)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "no clusters"),
        ([pair("a", 1, 1, 0)] * 2, "'a' is given twice"),
        ([pair("a", 0, 0, 0)], "n of cluster 'a' is 0"),
        ([pair("a", 1, 1, 1)], "'a' has 2 discordant of 1"),
        ([pair("a", 1, -1, 0)], "b01 of cluster 'a' is -1"),
        ([pair("a", 1, 0, math.nan)], "b10 of cluster 'a' is nan"),  # type: ignore[arg-type]  # what must be refused
    ],
)
def test_clusters_that_are_none_are_refused_by_name(given, said):
    """The cluster and the value."""
    with pytest.raises(ValueError, match=said):
        mcnemar_clustered(given, alternative="greater")


def test_counts_that_are_none_are_refused():
    """By the name of the cell."""
    with pytest.raises(ValueError, match=r"control_failed is 2\.5"):
        fisher_exact(1, 2, 3, 2.5, alternative="greater")  # type: ignore[arg-type]  # what must be refused
    with pytest.raises(ValueError, match="alternative is 'up'"):
        fisher_exact(1, 2, 3, 4, alternative="up")  # type: ignore[arg-type]  # what must be refused
