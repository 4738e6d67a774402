"""Agreement with statsmodels, on every function that both have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import Table2x2, mcnemar
from statsmodels.stats.descriptivestats import sign_test as their_sign_test
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from cells.stats import clopper_pearson, fisher_exact, holm, mcnemar_exact, sign_test, smoothed_odds_ratio

COUNT = st.integers(0, 60)
SETTINGS = settings(deadline=None, max_examples=40)


@SETTINGS
@given(COUNT, COUNT, COUNT, COUNT)
def test_exact_mcnemar(both, b01, b10, neither):
    """`mcnemar(exact=True)` is the two-sided test, whatever pairs agree."""
    theirs = mcnemar([[both, b10], [b01, neither]], exact=True).pvalue
    assert mcnemar_exact(b01, b10, alternative="two-sided").p_value == pytest.approx(theirs, rel=1e-9)


@SETTINGS
@given(COUNT, COUNT, st.integers(0, 20))
def test_the_sign_test(wins, losses, ties):
    """`sign_test` leaves ties out too; its statistic is half of the difference."""
    samples = [1.0] * wins + [-1.0] * losses + [0.0] * ties
    if wins + losses == 0:
        return
    statistic, p_value = their_sign_test(samples)
    ours = sign_test(wins, losses, alternative="two-sided")
    assert (wins - losses) / 2 == statistic
    assert ours.p_value == pytest.approx(p_value, rel=1e-9)


@SETTINGS
@given(st.integers(1, 400), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_clopper_pearson(n, data, level):
    """`proportion_confint(method="beta")` is the exact interval."""
    k = data.draw(st.integers(0, n))
    theirs = proportion_confint(k, n, alpha=1 - level, method="beta")
    assert clopper_pearson(k, n, level=level) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 40])
def test_holm(size):
    """`multipletests(method="holm")`, in the order given, ties and a 1 among them."""
    raw = np.random.default_rng(size).random(size).round(1) ** 3
    assert holm(raw.tolist()) == pytest.approx(multipletests(raw, method="holm")[1].tolist(), abs=1e-12)


@SETTINGS
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_odds_ratios(a, b, c, d):
    """`Table2x2` has the sample's odds ratio; a half added to two counts makes the smoothed one of the discordant."""
    assert fisher_exact(a, b, c, d, alternative="two-sided").odds_ratio == pytest.approx(
        Table2x2([[a, b], [c, d]]).oddsratio
    )
    assert smoothed_odds_ratio(a, b) == pytest.approx(Table2x2([[a + 0.5, b + 0.5], [1, 1]]).oddsratio)
