"""The registered comparisons of verdicts: discordant pairs, what the test says of them, and what stands beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from cells.bootstrap_reading import BootstrapReading, read_bootstrap
from cells.bounds import OPENINGS, Bounds, DeclaredSet
from cells.comparing import compare
from cells.deciders import Comparison, Decider, decider
from cells.pair_counts import PairCounts, Side, side_of, unjudged
from cells.planned import Power, planned_power
from cells.stats import clopper_pearson, smoothed_odds_ratio
from cells.strata import Stratum, check_pooled, placer, stratify

if TYPE_CHECKING:
    from cells.settled import Settled
    from harness.analysis import Alternative, Analysis, Contrast

__all__ = ["ContrastReading", "Groups", "Status", "read_contrast"]

Status: TypeAlias = Literal["final", "incomplete", "refused"]
"""Whether a verdict may be read: not while cells are missing, and never from a record with irregular cells."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Groups:
    """What the cells of two arms that are not paired say, as (treatment, control)."""

    passed: tuple[int, int]
    failed: tuple[int, int]
    halted: tuple[int, int]
    unscorable: tuple[int, int]
    none: tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class ContrastReading:
    """
    One contrast. Figures are None where undefined, and where `status` withholds them.

    `p_value` is raw, `p_holm` adjusted within `family` (None for a count rule, a descriptive contrast, and one added
    after the data). `p_low` and `p_high` are the smallest and largest p-value that any reading of the halted cells,
    each as a pass or as a failure, would give; `bounds` say as much of the others without a number. `share` is the
    treatment's part of the discordant pairs with its exact 95 % interval, which takes pairs for independent. `unjudged`
    counts the cells of the pairs that are halted or have no verdict, by class, as (treatment, control). `replicated`
    says that units have more than one pair. `statistic` is the clustered test's z, `separation` the count rule's,
    `groups` the two arms of a test without pairs. `power` is what was told before the run.
    """

    name: str
    test: str
    treatment: str
    control: str
    extras: str
    model: str | None
    alternative: Alternative
    family: str
    qualifiers: tuple[str, ...]
    registered: bool
    status: Status
    pairs: PairCounts
    groups: Groups | None
    strata: tuple[Stratum, ...]
    unjudged: Mapping[str, tuple[int, int]]
    replicated: bool
    best_attainable_p: float | None
    power: Power | None
    p_value: float | None = None
    p_holm: float | None = None
    p_low: float | None = None
    p_high: float | None = None
    statistic: float | None = None
    separation: int | None = None
    odds_ratio: float | None = None
    share: float | None = None
    share_low: float | None = None
    share_high: float | None = None
    bounds: tuple[Bounds, ...] = ()
    bootstrap: BootstrapReading | None = None
    supported: bool | None = None


def read_contrast(
    item: Contrast,
    settled: Settled,
    status: Status,
    analysis: Analysis,
    *,
    taken_over: DeclaredSet,
    registered: bool = True,
) -> ContrastReading:
    """
    Read one contrast; unless `status` is final there are counts and no verdict.

    Raises `IntegrityError` if the counts of the pool are not the sum over its strata.
    """
    compared = compare(item, settled.declared, lambda cell: side_of(cell, settled), analysis)
    decides = decider(compared)
    reading = ContrastReading(
        name=item.name,
        test=item.test,
        treatment=item.treatment,
        control=item.control,
        extras=item.extras,
        model=item.model,
        alternative=item.alternative,
        family=analysis.family_of(item),
        qualifiers=item.qualifiers,
        registered=registered,
        status=status,
        pairs=compared.counts,
        groups=_groups(compared) if item.test == "fisher" else None,
        strata=_strata(compared, analysis, status),
        unjudged=unjudged(compared.pairs, settled),
        replicated=len({pair.cells[0].unit for pair in compared.pairs}) < len(compared.pairs),
        best_attainable_p=decides.best_p(),
        power=planned_power(item, analysis),
    )
    return _decided(reading, compared, decides, analysis, taken_over) if status == "final" else reading


def _strata(compared: Comparison, analysis: Analysis, status: Status) -> tuple[Stratum, ...]:
    """The strata of a contrast, whose sum was found to be the pool; none while units may have no place in them."""
    item = compared.item
    if not item.strata or status == "refused":
        return ()
    strata = stratify(
        compared.pairs,
        placer(item.strata, analysis.groupings),
        alternative=item.alternative if item.test == "mcnemar" else None,
        tested=status == "final",
    )
    check_pooled(item.name, compared.counts, strata)
    return strata


def _groups(compared: Comparison) -> Groups:
    treatment, control = Counter(compared.treatment), Counter(compared.control)

    def both(said: Side) -> tuple[int, int]:
        return treatment[said], control[said]

    return Groups(
        passed=both("pass"),
        failed=both("fail"),
        halted=both("halted"),
        unscorable=both("unscorable"),
        none=both("none"),
    )


def _decided(
    reading: ContrastReading, compared: Comparison, decides: Decider, analysis: Analysis, taken_over: DeclaredSet
) -> ContrastReading:
    item, counts, figures = compared.item, compared.counts, decides.figures()
    bounds = tuple(Bounds.of(over, decides.reach(opening), taken_over) for over, opening in OPENINGS.items())
    tested = replace(
        reading,
        p_value=figures.p_value,
        p_low=bounds[0].p_low,
        p_high=bounds[0].p_high,
        statistic=figures.statistic,
        separation=figures.separation,
        supported=figures.supported if reading.registered else None,
        bounds=bounds,
        bootstrap=None
        if item.bootstrap is None
        else read_bootstrap(item.bootstrap, compared.pairs, analysis.groupings),
    )
    if not counts.discordant:
        return tested
    low, high = clopper_pearson(counts.treatment_only, counts.discordant)
    return replace(
        tested,
        odds_ratio=smoothed_odds_ratio(counts.treatment_only, counts.control_only),
        share=counts.treatment_only / counts.discordant,
        share_low=low,
        share_high=high,
    )
