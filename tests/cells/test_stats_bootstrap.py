"""The cluster bootstrap: same seed, same ends; coverage; what is resampled; what is refused."""

import math

import numpy as np
import pytest

from cells.stats import Cluster, cluster_bootstrap


def clusters(n: int, *, seed: int, strata: int = 2, shift: float = 0.1) -> list[Cluster]:
    """Made ones: each of one to three units that tend to go the same way."""
    chance = np.random.default_rng(seed)
    made = []
    for at in range(n):
        size, way = int(chance.choice([1, 1, 2, 3])), chance.normal(shift, 0.6)
        total = sum(max(-1, min(1, round(way + chance.normal(0, 0.3)))) for _ in range(size))
        made.append(Cluster(stratum=f"s{at % strata}", name=f"t{at}", total=total, size=size))
    return made


def test_the_same_seed_gives_the_same_ends_in_any_order():
    """Another seed gives others."""
    made = clusters(60, seed=1)
    found = cluster_bootstrap(made, seed=7)
    assert cluster_bootstrap([*made[30:], *made[29::-1]], seed=7) == found
    assert cluster_bootstrap(made, seed=8).interval != found.interval
    assert (found.clusters, found.strata, found.value) == (
        60,
        2,
        sum(c.total for c in made) / sum(c.size for c in made),
    )


def test_whole_clusters_are_drawn():
    """Units that all go as their task goes vary as much as tasks do: far more than as many single units would."""
    whole = [Cluster(stratum="s", name=f"t{n}", total=10 * (-1) ** n, size=10) for n in range(20)]
    single = [Cluster(stratum="s", name=f"t{n}", total=(-1) ** n, size=1) for n in range(200)]
    wide, narrow = cluster_bootstrap(whole, seed=1).interval, cluster_bootstrap(single, seed=1).interval
    assert wide.high - wide.low > 2.5 * (narrow.high - narrow.low)


def test_strata_are_resampled_apart():
    """Two strata that are constant within themselves leave no variation; pooled they would."""
    apart = [Cluster(stratum=s, name=f"{s}{n}", total=t, size=1) for s, t in (("a", 0), ("b", 1)) for n in range(10)]
    assert cluster_bootstrap(apart, seed=1).interval == (0.5, 0.5)
    pooled = [Cluster(stratum="", name=one.name, total=one.total, size=1) for one in apart]
    low, high = cluster_bootstrap(pooled, seed=1).interval
    assert low < 0.4
    assert high > 0.6


def test_the_interval_covers_as_often_as_it_says():
    """Of 300 made samples, 95% intervals hold the truth about that often: within three standard errors and a little."""
    many = clusters(40_000, seed=0)
    truth = sum(c.total for c in many) / sum(c.size for c in many)
    hits = 0
    for seed in range(1, 301):
        low, high = cluster_bootstrap(clusters(80, seed=seed), seed=seed, replicates=600).interval
        hits += low <= truth <= high
    assert 0.90 <= hits / 300 <= 0.985


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "there are 0 clusters"),
        ([Cluster(stratum="s", name="a", total=1, size=1)], "there are 1 clusters"),
        ([Cluster(stratum="s", name="a", total=1, size=1)] * 2, "'a' is given twice"),
        ([Cluster(stratum=s, name="a", total=1, size=1) for s in "st"], "in strata 's' and 't'"),
        ([Cluster(stratum=s, name=s, total=1, size=1) for s in "st"], "stratum 's' has one cluster"),
        ([Cluster(stratum="s", name=n, total=math.nan, size=1) for n in "ab"], "total nan"),
        ([Cluster(stratum="s", name=n, total=1, size=0) for n in "ab"], "size 0"),
        ([Cluster(stratum="s", name=n, total=1, size=math.inf) for n in "ab"], "size inf"),
    ],
)
def test_what_can_not_be_resampled_is_refused_by_name(given, said):
    """The cluster or stratum that it is about."""
    with pytest.raises(ValueError, match=said):
        cluster_bootstrap(given, seed=1)


@pytest.mark.parametrize("changed", [{"replicates": 0}, {"level": 1.0}, {"seed": -1}])
def test_a_setting_out_of_range_is_refused(changed):
    """By name and value."""
    (name,) = changed
    with pytest.raises(ValueError, match=f"{name} is"):
        cluster_bootstrap(clusters(10, seed=1), **{"seed": 1, **changed})
