"""
What the registered bootstrap takes: 50,000 replicates over 290 units in 202 clusters, beside a plain loop of numpy's.

    python bench/bootstrap.py [--turns 5]

The clusters are of the sizes of arXiv:2606.31511: tasks of two benchmarks under up to three models. Prints the best and
the median of the turns in seconds of CPU, which other work on the machine does not lengthen (one thread does all), the
best by the clock, the loop's time for as many replicates (from a tenth of them), and how many times as long that is.
Ends with status 1 if the best is not under half a second, or if an equal seed does not give an equal interval.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from cells.stats import Bootstrap, Cluster, cluster_bootstrap

TARGET_S = 0.5
REPLICATES = 50_000
CELLS = [("HE+", 24, 0), ("HE+", 40, 0), ("HE+", 59, 0), ("MBPP+", 47, 0), ("MBPP+", 60, 47), ("MBPP+", 60, 83)]
"""By benchmark, units and the number of the first task: 290 units that share 202 tasks."""


def study() -> list[Cluster]:
    """Clusters of the study's sizes, with differences as rare as its own."""
    chance = np.random.default_rng(1)
    sizes = Counter((name, first + at) for name, units, first in CELLS for at in range(units))
    ways = (-1, 0, 1)
    return [
        Cluster(
            stratum=name,
            name=f"{name}|{task}",
            total=int(chance.choice(ways, size=size, p=(0.03, 0.88, 0.09)).sum()),
            size=size,
        )
        for (name, task), size in sizes.items()
    ]


def loop(clusters: list[Cluster], replicates: int) -> float:
    """CPU seconds of a plain loop: each replicate draws the clusters of each stratum and takes the ratio of sums."""
    chance = np.random.default_rng(1)
    strata = {one.stratum for one in clusters}
    parts = [[one for one in clusters if one.stratum == name] for name in sorted(strata)]
    arrays = [(np.array([one.total for one in of]), np.array([one.size for one in of])) for of in parts]
    start = time.process_time()
    values = np.empty(replicates)
    for at in range(replicates):
        top = bottom = 0.0
        for totals, sizes in arrays:
            drawn = chance.integers(0, len(totals), len(totals))
            top, bottom = top + totals[drawn].sum(), bottom + sizes[drawn].sum()
        values[at] = top / bottom
    np.quantile(values, [0.025, 0.975])
    return time.process_time() - start


def timed(clusters: list[Cluster], seed: int) -> tuple[float, float, Bootstrap]:
    """Seconds of one bootstrap, of CPU and by the clock, and what it found."""
    start, begun = time.process_time(), time.perf_counter()
    found = cluster_bootstrap(clusters, seed=seed, replicates=REPLICATES)
    return time.process_time() - start, time.perf_counter() - begun, found


def main() -> None:
    """Measure and compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=5)
    turns = parser.parse_args().turns
    clusters = study()
    taken = [timed(clusters, 1) for _ in range(turns)]
    seconds, clock, found = sorted(cpu for cpu, _, _ in taken), min(wall for _, wall, _ in taken), taken[0][2]
    floor = 10 * loop(clusters, REPLICATES // 10)
    units = sum(one.size for one in clusters)
    equal = all(one == found for _, _, one in taken) and timed(clusters, 2)[2] != found
    print(f"{units:.0f} units in {found.clusters} clusters of {found.strata} strata, {found.replicates:,} replicates")
    print(f"best {seconds[0]:.3f} s of CPU, median {seconds[turns // 2]:.3f} s; limit {TARGET_S}; clock {clock:.3f} s")
    print(f"plain loop {floor:.2f} s of CPU: {floor / seconds[0]:.0f} times as long")
    print(f"seed 1: {found.interval.low:.4f} to {found.interval.high:.4f}; equal seeds give equal intervals: {equal}")
    sys.exit(0 if seconds[0] < TARGET_S and equal else 1)


if __name__ == "__main__":
    main()
