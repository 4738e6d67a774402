"""Power, the count rule and guards: published figures, brute force, and what is refused."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cells.stats import (
    count_rule,
    exact_power,
    harm_gate,
    material_rescue,
    mcnemar_exact,
    null_separation,
    stratum_gate,
)

DIRECTIONS = ["greater", "less", "two-sided"]


@pytest.mark.parametrize(("n", "share", "power"), [(38, 0.737, 0.72), (36, 0.75, 0.83)])
def test_published_powers(n, share, power):
    """Of a family of three at 0.05, as printed (arXiv:2606.31511)."""
    assert round(exact_power(n, share, alpha=0.05 / 3, alternative="greater"), 2) == power


@settings(deadline=None)
@given(st.integers(0, 40), st.floats(0, 1), st.sampled_from([0.001, 0.01, 0.05, 0.2]), st.sampled_from(DIRECTIONS))
def test_power_is_the_sum_over_all_outcomes(n, share, alpha, alternative):
    """Each number of pairs that rejects, weighted by how likely it is."""
    expected = sum(
        math.comb(n, more) * share**more * (1 - share) ** (n - more)
        for more in range(n + 1)
        if mcnemar_exact(more, n - more, alternative=alternative).p_value <= alpha
    )
    assert exact_power(n, share, alpha=alpha, alternative=alternative) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("alternative", DIRECTIONS)
def test_at_one_half_the_power_is_the_size(alternative):
    """The exact test never rejects more often than it says."""
    for n in range(60):
        assert exact_power(n, 0.5, alpha=0.05, alternative=alternative) <= 0.05


@pytest.mark.parametrize("n", [0, 1, 4, 5, 6, 11, 40, 101])
def test_the_null_separation_is_the_least_that_chance_seldom_reaches(n):
    """One step less would be reached too often; with too few pairs nothing is enough."""
    d = null_separation(n, alpha=0.05)

    def reached(least: int) -> float:
        return sum(math.comb(n, b) for b in range(n + 1) if abs(2 * b - n) >= least) / 2**n

    assert d > n or reached(d) <= 0.05
    assert reached(d - 2) > 0.05 or d <= 2


def test_the_count_rule_counts_either_way():
    """At the separation and above it, whichever side is the larger."""
    assert [count_rule(b, c, separation=5) for b, c in ((9, 4), (4, 9), (9, 5), (5, 9))] == [True, True, False, False]


@pytest.mark.parametrize(
    ("b10", "n", "value", "passes"), [(7, 290, 0.0241, False), (3, 290, 0.0103, True), (2, 100, 0.02, True)]
)
def test_the_harm_gate_as_published(b10, n, value, passes):
    """Both published shares to the printed digits; the bound itself passes."""
    guard = harm_gate(b10, n)
    assert (round(guard.value, 4), guard.passes) == (value, passes)


def test_material_rescue_as_published():
    """A placebo's net of 3 is less than half of 18; one of 9 is not, and nothing is less than half of a loss."""
    assert material_rescue(3, 18).passes
    assert not material_rescue(9, 18).passes
    assert not material_rescue(0, -4).passes


def test_the_stratum_gate_has_two_ways_to_fail():
    """A net of -2 or less; and harm that is significant by itself."""
    assert stratum_gate(0, 1).passes
    assert not stratum_gate(0, 2).passes
    assert not stratum_gate(0, 5, worst_net=-9).passes
    assert stratum_gate(0, 4, worst_net=-9).passes


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: exact_power(-1, 0.5, alpha=0.05, alternative="greater"), "n is -1"),
        (lambda: exact_power(5, math.nan, alpha=0.05, alternative="greater"), "share is nan"),
        (lambda: exact_power(5, 0.5, alpha=0.0, alternative="greater"), "alpha is 0.0"),
        (lambda: exact_power(5, 0.5, alpha=0.05, alternative="more"), "alternative is 'more'"),
        (lambda: null_separation(2.5, alpha=0.05), "n is 2.5"),
        (lambda: count_rule(3, 1, separation=0), "separation is 0"),
        (lambda: harm_gate(3, 2), "b10 is 3: expected at most n"),
        (lambda: harm_gate(0, 0), "n is 0"),
        (lambda: material_rescue(True, 3), "placebo net is True"),
        (lambda: stratum_gate(1, -1), "b10 is -1"),
    ],
)
def test_what_is_no_argument_is_refused_with_its_value(call, said):
    """The name, the value, and nothing computed."""
    with pytest.raises(ValueError, match=said):
        call()
