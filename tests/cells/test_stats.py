"""The statistics: published figures, properties, agreement with scipy, and refusals."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, studentized_range

from cells.stats import (
    best_attainable_p,
    clopper_pearson,
    holm,
    mcnemar_exact,
    resolvable_ratio,
    sign_test,
    smoothed_odds_ratio,
    spread_probability,
)

COUNTS = st.integers(0, 60)
DIRECTIONS = st.sampled_from(["greater", "less", "two-sided"])
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("b01", "b10", "p", "ratio", "share"),
    [
        (25, 7, 0.001051, 3.40, (0.60, 0.91)),
        (21, 3, 0.0001386, 6.14, (0.68, 0.97)),
        (22, 7, 0.004065, 3.00, (0.56, 0.90)),
        (18, 15, 0.3642, 1.19, (0.36, 0.72)),
        (19, 4, 0.0013, 4.33, (0.61, 0.95)),
    ],
)
def test_published_contrasts(b01, b10, p, ratio, share):
    """Exact one-sided McNemar, odds ratio and interval of each published contrast come out as printed."""
    test = mcnemar_exact(b01, b10, alternative="greater")
    assert test.p_value == pytest.approx(p, rel=5e-4)
    assert (test.b01, test.b10, test.n, test.alternative) == (b01, b10, b01 + b10, "greater")
    assert smoothed_odds_ratio(b01, b10) == pytest.approx(ratio, abs=0.005)
    assert clopper_pearson(b01, b01 + b10) == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize(("b01", "b10", "p"), [(20, 20, 0.5627), (12, 23, 0.9795), (11, 8, 0.3238)])
def test_published_descriptives(b01, b10, p):
    """The published descriptive contrasts come out as printed, ties of direction included."""
    assert mcnemar_exact(b01, b10, alternative="greater").p_value == pytest.approx(p, abs=5e-5)


def test_published_family():
    """Holm over the published family of three, in the order registered."""
    raw = [mcnemar_exact(b01, b10, alternative="greater").p_value for b01, b10 in ((25, 7), (21, 3), (22, 7))]
    assert holm(raw) == pytest.approx([0.002102, 0.0004157, 0.004065], rel=5e-4)


@pytest.mark.parametrize(("wins", "losses", "p"), [(5, 0, 0.03125), (3, 1, 0.3125), (2, 0, 0.25)])
def test_published_sign_tests(wins, losses, p):
    """The published one-sided sign tests over tasks are exact binary fractions."""
    assert sign_test(wins, losses, alternative="greater").p_value == p


def test_published_spread():
    """Resolvable ratios and the spread clause under the registered standard deviation."""
    assert resolvable_ratio(0.30458, 3) == pytest.approx(2.007164, abs=5e-6)
    assert 1 / resolvable_ratio(0.30458, 3) == pytest.approx(0.4982, abs=5e-5)
    assert resolvable_ratio(0.30458, 2) == pytest.approx(2.3474, abs=5e-5)
    assert spread_probability(1.5, 0.30458, 3) == pytest.approx(0.614, abs=5e-4)
    assert 20 * spread_probability(1.5, 0.30458, 3) == pytest.approx(12, abs=0.5)


@pytest.mark.parametrize(
    ("b01", "b10", "alternative", "p"),
    [
        (0, 0, "two-sided", 1),
        (0, 0, "greater", 1),
        (0, 0, "less", 1),
        (3, 3, "two-sided", 1),
        (4, 3, "two-sided", 1),
        (5, 0, "two-sided", 0.0625),
        (9, 2, "two-sided", 0.065430),
        (10, 2, "two-sided", 0.038574),
        (9, 2, "greater", 0.032715),
        (9, 2, "less", 0.994141),
    ],
)
def test_mcnemar_by_hand(b01, b10, alternative, p):
    """Small exact McNemar tests whose p-value can be counted by hand."""
    assert mcnemar_exact(b01, b10, alternative=alternative).p_value == pytest.approx(p, abs=5e-7)


def test_ties_are_not_in_a_sign_test():
    """7 wins, 1 loss and 12 ties are a test of n = 8."""
    test = sign_test(7, 1, alternative="two-sided")
    assert test.p_value == 0.0703125
    assert test.n == 8


@pytest.mark.parametrize("bad", [2.5, 2.0, -1, math.nan, math.inf, True, "3", None, [[1, 2, 3]] * 3])
def test_a_count_that_is_no_count_is_refused(bad):
    """Fractions, negatives, NaN, truth values and whole tables are refused, showing the argument and its value."""
    with pytest.raises(ValueError, match=r"b01 is .*expected a whole number"):
        mcnemar_exact(bad, 3, alternative="greater")
    with pytest.raises(ValueError, match=r"losses is .*expected a whole number"):
        sign_test(3, bad, alternative="greater")
    with pytest.raises(ValueError, match=r"k is .*expected a whole number"):
        clopper_pearson(bad, 3)
    with pytest.raises(ValueError, match=r"n is .*expected a whole number"):
        best_attainable_p(bad, alternative="greater")
    with pytest.raises(ValueError, match=r"b10 is .*expected a whole number"):
        smoothed_odds_ratio(3, bad)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: sign_test(1, 0, alternative="bigger"), "alternative is 'bigger'.*greater, less, two-sided"),
        (lambda: clopper_pearson(4, 3), "k is 4: expected at most n, which is 3"),
        (lambda: clopper_pearson(0, 0), "n is 0: expected a whole number of 1 or more"),
        (lambda: clopper_pearson(1, 3, level=1), "level is 1"),
        (lambda: resolvable_ratio(0, 3), "sd_ln is 0.0: expected a finite number above 0"),
        (lambda: resolvable_ratio(math.inf, 3), "sd_ln is inf"),
        (lambda: resolvable_ratio(1e6, 1), "no number a machine holds"),
        (lambda: resolvable_ratio(0.3, 0), "n is 0"),
        (lambda: resolvable_ratio(0.3, 3, alpha=0), "alpha is 0"),
        (lambda: resolvable_ratio(0.3, 3, power=math.nan), "power is nan"),
        (lambda: spread_probability(0.5, 0.3, 3), "ratio is 0.5: expected 1 or more"),
        (lambda: spread_probability(1.5, 0.3, 1), "n is 1: expected a whole number of 2 or more"),
        (lambda: spread_probability(math.nan, 0.3, 3), "ratio is nan"),
    ],
)
def test_an_argument_out_of_range_is_refused(call, says):
    """Each function names the argument, its value and what was expected."""
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.parametrize(
    ("raw", "adjusted"),
    [
        ([0.01, 0.011], [0.02, 0.02]),
        ([0.04, 0.01, 0.03], [0.06, 0.03, 0.06]),
        ([0.001, 1.0], [0.002, 1.0]),
        ([0.5, 0.9], [1.0, 1.0]),
        ([0.2], [0.2]),
    ],
)
def test_holm_by_hand(raw, adjusted):
    """Input order is kept, the running maximum holds, 1 is the cap, and a p of 1 still counts in the family's size."""
    assert holm(raw) == pytest.approx(adjusted)


def test_holm_refuses():
    """An empty family is refused; a NaN, a negative or a truth value is refused with its place and its name."""
    with pytest.raises(ValueError, match="the family is empty"):
        holm([])
    with pytest.raises(ValueError, match="p-value 2 of 3 is nan"):
        holm([0.1, math.nan, 0.2])
    with pytest.raises(ValueError, match=r"p-value 2 of 2 \(C2\) is nan"):
        holm([0.1, math.nan], names=["C1", "C2"])
    with pytest.raises(ValueError, match=r"p-value 1 of 1 is 1\.5"):
        holm([1.5])
    with pytest.raises(ValueError, match="p-value 1 of 1 is True"):
        holm([True])
    with pytest.raises(ValueError, match="1 names for 2 p-values"):
        holm([0.1, 0.2], names=["C1"])


@settings(deadline=None)
@given(COUNTS, COUNTS, DIRECTIONS)
def test_exact_tests_agree_with_the_binomial(more, fewer, alternative):
    """Both exact tests are scipy's binomial test with one half, in every direction."""
    n = more + fewer
    expected = binomtest(more, n, 0.5, alternative=alternative).pvalue if n else 1.0
    assert mcnemar_exact(more, fewer, alternative=alternative).p_value == pytest.approx(expected, rel=1e-9)
    assert sign_test(more, fewer, alternative=alternative).p_value == pytest.approx(expected, rel=1e-9)


@settings(deadline=None)
@given(COUNTS, COUNTS)
def test_exact_tests_are_symmetric_and_monotone(more, fewer):
    """Swapping the counts swaps the directions, and one more win never raises the p-value of `greater`."""
    greater = mcnemar_exact(more, fewer, alternative="greater").p_value
    assert greater == mcnemar_exact(fewer, more, alternative="less").p_value
    two_sided = mcnemar_exact(more, fewer, alternative="two-sided").p_value
    assert two_sided == mcnemar_exact(fewer, more, alternative="two-sided").p_value
    assert mcnemar_exact(more + 1, fewer, alternative="greater").p_value <= greater
    assert smoothed_odds_ratio(more, fewer) * smoothed_odds_ratio(fewer, more) == pytest.approx(1)


@settings(deadline=None)
@given(COUNTS, COUNTS, DIRECTIONS)
def test_nothing_beats_the_best_attainable(more, fewer, alternative):
    """No split of n pairs gives a smaller p-value than the best attainable one."""
    best = best_attainable_p(more + fewer, alternative=alternative)
    assert best <= sign_test(more, fewer, alternative=alternative).p_value
    assert best == pytest.approx(min(1, (1 if alternative != "two-sided" else 2) * 0.5 ** (more + fewer)))


@settings(deadline=None)
@given(P_VALUES)
def test_holm_properties(raw):
    """Adjusted values are at least the raw ones and at most 1, keep their order, and permute with the family."""
    adjusted = holm(raw)
    assert all(before <= after <= 1 for before, after in zip(raw, adjusted, strict=True))
    assert adjusted[raw.index(min(raw))] == pytest.approx(min(1, len(raw) * min(raw)))
    pairs = sorted(zip(raw, adjusted, strict=True))
    assert [after for _, after in pairs] == sorted(adjusted)
    assert holm(raw[::-1]) == adjusted[::-1]


@settings(deadline=None)
@given(st.integers(1, 80), st.data())
def test_clopper_pearson_agrees_with_scipy(n, data):
    """The interval is scipy's exact one, holds the share, mirrors with it, and widens with its level."""
    k = data.draw(st.integers(0, n))
    low, high = clopper_pearson(k, n)
    expected = binomtest(k, n).proportion_ci(0.95, method="exact")
    assert (low, high) == pytest.approx((expected.low, expected.high), rel=1e-7, abs=1e-12)
    assert low <= k / n <= high
    assert clopper_pearson(n - k, n) == pytest.approx((1 - high, 1 - low))
    wider = clopper_pearson(k, n, level=0.99)
    assert wider.low <= low
    assert high <= wider.high


@settings(max_examples=15, deadline=None)
@given(st.floats(1.01, 20), st.floats(0.05, 2), st.integers(2, 12))
def test_spread_agrees_with_scipy(ratio, sd_ln, n):
    """The spread clause is the upper tail of scipy's studentized range with infinite degrees of freedom."""
    expected = studentized_range.sf(math.log(ratio) / sd_ln, n, math.inf)
    assert spread_probability(ratio, sd_ln, n) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("ratio", "sd_ln", "n", "p"), [(1.0, 0.3, 2, 1.0), (1e9, 0.01, 5, 0.0), (1.0001, 3.0, 10_000, 1.0), (2, 1e-9, 3, 0)]
)
def test_spread_at_its_ends(ratio, sd_ln, n, p):
    """Very narrow and very wide spreads stay probabilities and raise no numerical warning."""
    assert spread_probability(ratio, sd_ln, n) == pytest.approx(p, abs=1e-6)


@settings(deadline=None)
@given(st.floats(0.01, 3), st.integers(1, 200))
def test_resolvable_ratio_shrinks_with_n(sd_ln, n):
    """More cells resolve smaller ratios, a larger spread larger ones, and none below 1."""
    assert 1 < resolvable_ratio(sd_ln, n + 1) < resolvable_ratio(sd_ln, n) < resolvable_ratio(sd_ln * 1.1, n)
    assert math.log(resolvable_ratio(sd_ln, n)) == pytest.approx(2.801585 * sd_ln * math.sqrt(2 / n), rel=1e-6)


def test_importing_the_package_loads_no_scipy():
    """The package can be imported by a command that computes nothing, at no cost."""
    import subprocess
    import sys

    code = "import sys, cells.stats; print('scipy' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
