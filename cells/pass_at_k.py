"""
pass@k of samples: the unbiased estimate a task, its mean over tasks, and an interval that takes tasks for the units.

Pure functions of counts, without a clock; chance is a generator with a fixed seed, so equal counts give equal figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

from cells.stats import Cluster, Interval, clopper_pearson, cluster_bootstrap
from cells.stats.arguments import count, inside_unit

__all__ = ["RESAMPLES", "SEED", "SOURCE", "PassAtK", "Tally", "estimate", "pass_at_k"]

SOURCE = "unbiased estimator of Chen et al. 2021, arXiv:2107.03374, section 2.1"
RESAMPLES = 10_000
"""How many times the bootstrap draws as many tasks as there are, with replacement."""
SEED = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """One task: how many samples were judged, and how many of them were right."""

    samples: int
    right: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PassAtK:
    """
    The mean over `tasks` tasks, and its interval by `method`. The interval is None where the counts allow none, and
    then `method` says why.
    """

    k: int
    value: float
    tasks: int
    interval: Interval | None
    level: float
    method: str


def estimate(samples: int, right: int, k: int) -> float:
    """
    The chance that of `k` samples, drawn without replacement from `samples` of which `right` are right, one is right.

    Raises `ValueError` for counts that are none, `right` above `samples`, and `k` above `samples`.

    Source: M. Chen et al., "Evaluating Large Language Models Trained on Code" (2021), arXiv:2107.03374, section 2.1. It
    is computed with whole numbers, so that nothing is lost where the two binomials are huge.
    """
    samples, right, k = count("samples", samples, least=1), count("right", right), count("k", k, least=1)
    if right > samples:
        raise ValueError(f"right is {right}: expected at most samples, which is {samples}")
    if k > samples:
        raise ValueError(f"k is {k}: expected at most samples, which is {samples}")
    every = comb(samples, k)
    return (every - comb(samples - right, k)) / every


def pass_at_k(tallies: Sequence[Tally], k: int, *, level: float = 0.95) -> PassAtK:
    """
    pass@k over the tasks of `tallies`, each of which needs `k` samples. Raises `ValueError` otherwise, and for none.

    Where every task's estimate is 0 or 1 (as with one sample a task) tasks are a plain share, and the interval is the
    exact Clopper-Pearson one. Else it is a percentile interval of the cluster bootstrap: whole tasks are drawn, since
    the samples of one task are not independent of each other.

    Source of the bootstrap: A. C. Davison and D. V. Hinkley, "Bootstrap Methods and their Application" (1997), section
    3.8; B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap" (1993), section 13.3.
    """
    level = inside_unit("level", level)
    if not tallies:
        raise ValueError("there are no tasks: expected at least one")
    estimates = [estimate(tally.samples, tally.right, k) for tally in tallies]
    # A plain sum of few distinct values in any order: sorted, so that the order of tasks changes no digit.
    value = sum(sorted(estimates)) / len(estimates)
    interval, method = _interval(estimates, level)
    return PassAtK(k=k, value=value, tasks=len(estimates), interval=interval, level=level, method=method)


def _interval(estimates: list[float], level: float) -> tuple[Interval | None, str]:
    whole = [round(item) for item in estimates if item in (0.0, 1.0)]
    if len(whole) == len(estimates):
        return clopper_pearson(sum(whole), len(whole), level=level), "Clopper-Pearson over tasks"
    if len(estimates) == 1:
        return None, "none: one task says nothing of how tasks differ"
    if len(set(estimates)) == 1:
        return None, "none: every task has the same estimate, so that drawing tasks says nothing"
    method = f"cluster bootstrap over tasks, percentile, {RESAMPLES} resamples, seed {SEED}"
    # Tasks have no names here, and need none: sorted, they are drawn alike whatever order they came in.
    tasks = [Cluster(stratum="tasks", name=f"{at:09}", total=item, size=1) for at, item in enumerate(sorted(estimates))]
    return cluster_bootstrap(tasks, seed=SEED, replicates=RESAMPLES, level=level).interval, method
