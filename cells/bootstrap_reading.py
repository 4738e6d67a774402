"""The registered cluster bootstrap of a contrast: the interval of its paired risk difference, and its seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cells.pair_counts import PairCounts, PairState, count_pairs
from cells.stats import Cluster, cluster_bootstrap
from cells.strata import placer

if TYPE_CHECKING:
    from harness.grouping import Grouping, Resampling

__all__ = ["BootstrapReading", "read_bootstrap", "undrawable"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BootstrapReading:
    """
    The risk difference (b01 - b10) / n over the `n` judged pairs, and its percentile interval at `level`.

    `clusters` are those that have a judged pair; the `empty` others are in no draw. An equal set, `seed` and number of
    `replicates` give an equal interval. `undefined` says why there is none, and is None where there is one.
    """

    cluster: str
    within: tuple[str, ...]
    level: float
    replicates: int
    seed: int
    n: int
    clusters: int
    strata: int
    empty: int
    value: float | None
    low: float | None
    high: float | None
    undefined: str | None


def read_bootstrap(plan: Resampling, pairs: Sequence[PairState], groupings: Sequence[Grouping]) -> BootstrapReading:
    """Draw the clusters of the judged pairs as registered. What can't be resampled has no interval, and says why."""
    within, cluster = placer(plan.strata, groupings), placer((plan.cluster,), groupings)
    members: dict[tuple[str, str], list[PairState]] = {}
    for pair in pairs:
        unit = pair.cells[0].unit
        place = (within(unit), cluster(unit))
        if place[0] is not None and place[1] is not None:
            members.setdefault((place[0], place[1]), []).append(pair)
    counts = {place: count_pairs(of) for place, of in members.items()}
    judged = {place: of for place, of in counts.items() if of.judged}
    return _drawn(plan, judged, empty=len(counts) - len(judged))


def undrawable(plan: Resampling, pairs: Sequence[PairState], groupings: Sequence[Grouping]) -> str | None:
    """Why clusters could not be drawn even if every declared pair were judged; None if they could."""
    judged = [PairState(cells=pair.cells, treatment="pass", control="pass") for pair in pairs]
    return read_bootstrap(plan.model_copy(update={"replicates": 1}), judged, groupings).undefined


def _drawn(plan: Resampling, judged: dict[tuple[str, str], PairCounts], *, empty: int) -> BootstrapReading:
    value, low, high, undefined = None, None, None, None
    try:
        found = cluster_bootstrap(
            [Cluster(stratum=at, name=name, total=of.net, size=of.judged) for (at, name), of in judged.items()],
            seed=plan.seed,
            replicates=plan.replicates,
            level=plan.level,
        )
        value, (low, high) = found.value, found.interval
    except ValueError as error:  # too few clusters to vary, or a cluster across strata: said, and nothing made up
        undefined = str(error)
    return BootstrapReading(
        cluster=plan.cluster,
        within=plan.strata,
        level=plan.level,
        replicates=plan.replicates,
        seed=plan.seed,
        n=sum(of.judged for of in judged.values()),
        clusters=len(judged),
        strata=len({at for at, _name in judged}),
        empty=empty,
        value=value,
        low=low,
        high=high,
        undefined=undefined,
    )
