"""What intervals cover, how often tests reject where nothing is there, and what was promised of power: by simulation."""

import math

import numpy as np
import pytest

from cells.stats import (
    ClusteredPair,
    clopper_pearson,
    exact_power,
    fisher_exact,
    holm,
    mcnemar_clustered,
    mcnemar_exact,
    null_separation,
    resolvable_ratio,
    sign_test,
    spread_probability,
)

DRAWS = 20_000
ALPHA = 0.05


def chance(seed: int) -> np.random.Generator:
    """A seeded generator: a simulation that passes, passes again."""
    return np.random.default_rng(seed)


def noise(share: float, draws: int = DRAWS) -> float:
    """Four standard errors of a simulated share."""
    return 4 * math.sqrt(max(share * (1 - share), 1 / draws) / draws)


def mcnemar_table(most: int, alternative: str) -> np.ndarray:
    """The p-value of every split of up to `most` pairs, by (b01, b10)."""
    found = np.ones((most + 1, most + 1))
    for b01 in range(most + 1):
        for b10 in range(most + 1 - b01):
            found[b01, b10] = mcnemar_exact(b01, b10, alternative=alternative).p_value
    return found


@pytest.mark.parametrize("n", [1, 8, 29, 120])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9])
def test_clopper_pearson_covers_at_least_its_level(n, share):
    """Whatever the share, small samples too; and it is not the whole line: at 29 and more it leaves shares out."""
    ends = np.array([clopper_pearson(k, n) for k in range(n + 1)])
    k = chance(1).binomial(n, share, DRAWS)
    covered = np.mean((ends[k, 0] <= share) & (share <= ends[k, 1]))
    assert covered >= 0.95 - noise(0.95)
    if n >= 29:
        assert np.mean(ends[:, 1] - ends[:, 0]) < 0.35


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
@pytest.mark.parametrize("discordant", [0.1, 0.5])
def test_the_size_of_mcnemars_test_is_at_most_its_level(alternative, discordant):
    """60 pairs of which either arm alone passes as often; how many are discordant is drawn too."""
    table, draw = mcnemar_table(60, alternative), chance(2)
    n = draw.binomial(60, discordant, DRAWS)
    b01 = draw.binomial(n, 0.5)
    rejected = np.mean(table[b01, n - b01] <= ALPHA)
    assert rejected <= ALPHA + noise(ALPHA)
    assert rejected > 0.001  # a test that never rejects would pass the line above


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_the_size_of_the_sign_test_is_at_most_its_level(alternative):
    """20 tasks whose log ratios are symmetric about 0, an eighth of them tied."""
    draw = chance(3)
    ratios = draw.standard_t(2, (DRAWS, 20)) * (draw.random((DRAWS, 20)) > 0.125)
    wins, losses = (ratios > 0).sum(axis=1), (ratios < 0).sum(axis=1)
    table = np.ones((21, 21))
    for a in range(21):
        for b in range(21 - a):
            table[a, b] = sign_test(a, b, alternative=alternative).p_value
    rejected = np.mean(table[wins, losses] <= ALPHA)
    assert 0.005 < rejected <= ALPHA + noise(ALPHA)


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_the_size_of_fishers_test_is_at_most_its_level(alternative, share):
    """Two groups of 14 and 9 cells with one share."""
    table = np.array(
        [[fisher_exact(a, 14 - a, c, 9 - c, alternative=alternative).p_value for c in range(10)] for a in range(15)]
    )
    draw = chance(4)
    rejected = np.mean(table[draw.binomial(14, share, DRAWS), draw.binomial(9, share, DRAWS)] <= ALPHA)
    assert 0.001 < rejected <= ALPHA + noise(ALPHA)


def made_clusters(draw: np.random.Generator, runs: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sizes, b01 and b10 of clusters of one to six pairs that go together, with no lean either way, in so many runs."""
    sizes = draw.integers(1, 7, (runs, n))
    lean = draw.normal(0, 0.9, (runs, n, 1)) + draw.normal(0, 0.5, (runs, n, 6))
    ways = np.sign(np.round(lean)) * (np.arange(6) < sizes[..., None])
    return sizes, (ways > 0).sum(axis=2), (ways < 0).sum(axis=2)


def test_the_clustered_tests_size_is_near_its_level_where_the_plain_tests_is_not():
    """80 clusters whose pairs go together: Durkalski's rejects one time in twenty, and pairs taken for independent more."""
    runs = 1000
    sizes, b01, b10 = made_clusters(chance(5), runs, 80)
    clustered = plain = 0
    for run in range(runs):
        rows = zip(sizes[run].tolist(), b01[run].tolist(), b10[run].tolist(), strict=True)
        made = [ClusteredPair(name=str(at), n=n, b01=more, b10=less) for at, (n, more, less) in enumerate(rows)]
        clustered += mcnemar_clustered(made, alternative="two-sided").p_value <= ALPHA
        pooled = mcnemar_exact(int(b01[run].sum()), int(b10[run].sum()), alternative="two-sided")
        plain += pooled.p_value <= ALPHA
    assert abs(clustered / runs - ALPHA) <= noise(ALPHA, runs)
    assert plain / runs > 2 * ALPHA


def test_holm_keeps_the_chance_of_any_false_claim():
    """Three contrasts against one control, none of them true: at least one is claimed in one family of twenty at most."""
    draw, runs, table = chance(6), 4000, mcnemar_table(120, "greater")
    control = draw.random((runs, 120)) < 0.4
    raw = np.empty((runs, 3))
    for at in range(3):
        arm = draw.random((runs, 120)) < 0.4
        raw[:, at] = table[(arm & ~control).sum(axis=1), (~arm & control).sum(axis=1)]
    claimed = np.mean([min(holm(list(family))) <= ALPHA for family in raw])
    assert 0.01 < claimed <= ALPHA + noise(ALPHA, runs)
    assert np.mean(raw.min(axis=1) <= ALPHA) > ALPHA + noise(ALPHA, runs)  # without it, more


@pytest.mark.parametrize(("n", "share"), [(38, 0.737), (36, 0.75), (20, 0.5)])
def test_the_power_told_before_a_run_is_what_the_test_has(n, share):
    """As often as it says, the exact test rejects among pairs that fall so."""
    alpha = ALPHA / 3
    table = np.array([mcnemar_exact(more, n - more, alternative="greater").p_value for more in range(n + 1)])
    rejected = np.mean(table[chance(7).binomial(n, share, DRAWS)] <= alpha)
    power = exact_power(n, share, alpha=alpha, alternative="greater")
    assert abs(rejected - power) <= noise(power)


@pytest.mark.parametrize("n", [7, 24, 61])
def test_chance_seldom_reaches_the_null_separation(n):
    """At most as often as the level; one step less would be reached more often."""
    apart = np.abs(2 * chance(8).binomial(n, 0.5, DRAWS) - n)
    separation = null_separation(n, alpha=ALPHA)
    assert np.mean(apart >= separation) <= ALPHA + noise(ALPHA)
    assert np.mean(apart >= separation - 2) > ALPHA - noise(ALPHA)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_the_resolvable_ratio_is_seen_four_times_in_five(n):
    """Lognormal costs that differ by it: the difference of mean logs is past the two-sided limit 80 times in a hundred."""
    sd, draw = 0.30458, chance(9)
    truth = math.log(resolvable_ratio(sd, n))
    difference = draw.normal(truth, sd, (DRAWS, n)).mean(axis=1) - draw.normal(0, sd, (DRAWS, n)).mean(axis=1)
    limit = 1.959964 * sd * math.sqrt(2 / n)
    assert abs(np.mean(np.abs(difference) > limit) - 0.80) <= noise(0.80)


@pytest.mark.parametrize(("ratio", "n"), [(1.5, 3), (1.5, 2), (2.0, 5)])
def test_conditions_look_wide_as_often_as_the_clause_says(ratio, n):
    """The largest of n lognormal costs over the smallest."""
    logs = chance(10).normal(0, 0.30458, (DRAWS, n))
    wide = np.mean(logs.max(axis=1) - logs.min(axis=1) > math.log(ratio))
    expected = spread_probability(ratio, 0.30458, n)
    assert abs(wide - expected) <= noise(expected)
