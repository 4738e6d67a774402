"""An interval by resampling whole clusters, since what shares a task is not independent of each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cells.stats.arguments import count, inside_unit
from cells.stats.intervals import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Bootstrap", "Cluster", "cluster_bootstrap"]

_BLOCK = 1 << 20
"""So many draws are held at once: memory stays flat however many replicates there are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """
    What one cluster adds: `total` to the numerator and `size` to the denominator. For a paired risk difference `total`
    is the units that the treatment alone passes less those that the control alone passes, `size` the units.
    """

    stratum: str
    name: str
    total: float
    size: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Bootstrap:
    """The ratio of the sums as it was seen, and its percentile interval; `clusters` in `strata` were resampled."""

    value: float
    interval: Interval
    level: float
    replicates: int
    seed: int
    clusters: int
    strata: int


def cluster_bootstrap(
    clusters: Sequence[Cluster], *, seed: int, replicates: int = 10_000, level: float = 0.95
) -> Bootstrap:
    """
    The percentile interval of sum(total) / sum(size), whole clusters drawn with replacement within each stratum.

    The order in which clusters are given changes nothing: they are resampled by stratum and name. Time and draws grow
    with `replicates` times the number of clusters. Raises `ValueError` for fewer than two clusters, a stratum of one
    (it could not vary), a cluster named twice in a stratum or standing in two, a `total` that is no finite number, or a
    `size` that is not a finite number above 0.

    Source: A. C. Davison and D. V. Hinkley, "Bootstrap Methods and their Application" (1997), sections 3.2 (strata) and
    3.8 (clusters); B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap" (1993), section 13.3, for the
    percentiles.
    """
    import numpy as np

    level, replicates, seed = inside_unit("level", level), count("replicates", replicates, least=1), count("seed", seed)
    strata = _strata(clusters)
    generator = np.random.Generator(np.random.PCG64(seed))
    tops, bottoms = np.zeros(replicates), np.zeros(replicates)
    for members in strata:
        totals = np.array([member.total for member in members], dtype=np.float64)
        sizes = np.array([member.size for member in members], dtype=np.float64)
        _add_draws(generator, totals, sizes, tops, bottoms)
    tail = (1 - level) / 2
    low, high = np.quantile(tops / bottoms, [tail, 1 - tail])
    ordered = [member for members in strata for member in members]
    return Bootstrap(
        value=math.fsum(member.total for member in ordered) / math.fsum(member.size for member in ordered),
        interval=Interval(float(low), float(high)),
        level=level,
        replicates=replicates,
        seed=seed,
        clusters=len(ordered),
        strata=len(strata),
    )


def _add_draws(
    generator: np.random.Generator,
    totals: NDArray[np.float64],
    sizes: NDArray[np.float64],
    tops: NDArray[np.float64],
    bottoms: NDArray[np.float64],
) -> None:
    """Add what a stratum gives to each replicate: as many clusters as it has, drawn with replacement."""
    n = len(totals)
    rows = max(1, _BLOCK // n)
    for start in range(0, len(tops), rows):
        block = slice(start, min(start + rows, len(tops)))
        drawn = generator.integers(0, n, size=(block.stop - block.start, n), dtype="int32")
        tops[block] += totals[drawn].sum(axis=1)
        bottoms[block] += sizes[drawn].sum(axis=1)


def _strata(clusters: Sequence[Cluster]) -> list[list[Cluster]]:
    """The clusters by stratum and name, checked."""
    if len(clusters) < 2:
        raise ValueError(f"there are {len(clusters)} clusters: expected at least 2")
    known: dict[str, str] = {}
    grouped: dict[str, list[Cluster]] = {}
    for cluster in sorted(clusters, key=lambda one: (one.stratum, one.name)):
        _check(cluster)
        if cluster.name in known:
            raise ValueError(
                f"cluster {cluster.name!r} is given twice, in strata {known[cluster.name]!r} and {cluster.stratum!r}: "
                "expected each cluster once, in one stratum"
            )
        known[cluster.name] = cluster.stratum
        grouped.setdefault(cluster.stratum, []).append(cluster)
    single = [name for name, members in grouped.items() if len(members) == 1]
    if single:
        raise ValueError(f"stratum {single[0]!r} has one cluster, which can't vary: pool it with another")
    return list(grouped.values())


def _check(cluster: Cluster) -> None:
    if not math.isfinite(cluster.total):
        raise ValueError(f"cluster {cluster.name!r} has total {cluster.total!r}: expected a finite number")
    if not (math.isfinite(cluster.size) and cluster.size > 0):
        raise ValueError(f"cluster {cluster.name!r} has size {cluster.size!r}: expected a finite number above 0")
