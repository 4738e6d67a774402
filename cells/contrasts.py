"""The registered comparisons of verdicts: discordant pairs, an exact p-value, and what stands beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from cells.pairing import CellPair, pair_up
from cells.settled import Settled
from cells.stats import best_attainable_p, clopper_pearson, holm, mcnemar_exact, smoothed_odds_ratio

if TYPE_CHECKING:
    from harness.analysis import Alternative, Contrast

__all__ = ["ContrastReading", "PairCounts", "Status", "adjust", "read_contrast"]

Status: TypeAlias = Literal["final", "incomplete", "refused"]
"""Whether a verdict may be read: not while cells are missing, and never from a record with irregular cells."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PairCounts:
    """
    What became of the `declared` pairs; the six kinds add up to it.

    `both`, `treatment_only`, `control_only` and `neither` count the passes of judged pairs. A pair is `halted` if one
    side or both were halted and the rest was judged; it is `without_verdict` if a side is missing or has no number.
    """

    declared: int
    both: int
    treatment_only: int
    control_only: int
    neither: int
    halted: int
    without_verdict: int

    @property
    def judged(self) -> int:
        """The pairs with a verdict on both sides."""
        return self.both + self.treatment_only + self.control_only + self.neither

    @property
    def treatment_passed(self) -> int:
        """The treatment's passes among judged pairs."""
        return self.both + self.treatment_only

    @property
    def control_passed(self) -> int:
        """The control's passes among judged pairs."""
        return self.both + self.control_only


@dataclass(frozen=True, kw_only=True, slots=True)
class ContrastReading:
    """
    One contrast. Figures are None where undefined, and where `status` withholds them.

    `p_value` is exact and raw, `p_holm` adjusted within the family (None for a contrast added after the data). `p_low`
    and `p_high` are the smallest and largest p-value that any reading of the halted cells, each as a pass or as a
    failure, would give. `share` is the treatment's part of the discordant pairs with its exact 95 % interval.
    `unjudged` counts the cells of the pairs that are halted or have no verdict, by class, as (treatment, control).
    `replicated` says that units have more than one pair, which the test takes for independent.
    """

    name: str
    test: str
    treatment: str
    control: str
    extras: str
    model: str | None
    alternative: Alternative
    qualifiers: tuple[str, ...]
    registered: bool
    status: Status
    pairs: PairCounts
    unjudged: Mapping[str, tuple[int, int]]
    replicated: bool
    best_attainable_p: float
    p_value: float | None = None
    p_holm: float | None = None
    p_low: float | None = None
    p_high: float | None = None
    odds_ratio: float | None = None
    share: float | None = None
    share_low: float | None = None
    share_high: float | None = None
    supported: bool | None = None


def _kind(pair: CellPair, settled: Settled) -> str:
    treatment, control = (settled.passed(cell) for cell in pair)
    if any(settled.passed(cell) is None and not settled.halted(cell) for cell in pair):
        return "without_verdict"
    if treatment is None or control is None:
        return "halted"
    if treatment == control:
        return "both" if treatment else "neither"
    return "treatment_only" if treatment else "control_only"


def _count(kinds: Sequence[str]) -> PairCounts:
    return PairCounts(
        declared=len(kinds),
        both=kinds.count("both"),
        treatment_only=kinds.count("treatment_only"),
        control_only=kinds.count("control_only"),
        neither=kinds.count("neither"),
        halted=kinds.count("halted"),
        without_verdict=kinds.count("without_verdict"),
    )


def _unjudged(pairs: Iterable[CellPair], settled: Settled) -> dict[str, tuple[int, int]]:
    sides: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for pair in pairs:
        for side, cell in zip(sides, pair, strict=True):
            if settled.passed(cell) is None:
                side[settled.label(cell)] += 1
    treatment, control = sides
    return {label: (treatment[label], control[label]) for label in sorted({*treatment, *control})}


def _bounds(pairs: Sequence[CellPair], settled: Settled, reading: ContrastReading) -> tuple[float, float]:
    """
    The least and the greatest p-value over every reading of the halted cells.

    A one-sided p falls with b01 and rises with b10, so its extremes lie where every halt speaks for one arm. Twice the
    smaller tail, a two-sided p, has its extremes at the same two corners, tail by tail.
    """
    halted = [pair for pair in pairs if _kind(pair, settled) == "halted"]
    for_treatment = sum(_could_be(pair, settled, (True, False)) for pair in halted)
    for_control = sum(_could_be(pair, settled, (False, True)) for pair in halted)
    b01, b10 = reading.pairs.treatment_only, reading.pairs.control_only
    corners = [(b01 + for_treatment, b10), (b01, b10 + for_control)]
    tails: list[Alternative] = ["greater", "less"] if reading.alternative == "two-sided" else [reading.alternative]
    of_tail = [[mcnemar_exact(*corner, alternative=tail).p_value for corner in corners] for tail in tails]
    return (
        min(1.0, len(tails) * min(min(values) for values in of_tail)),
        min(1.0, len(tails) * min(max(values) for values in of_tail)),
    )


def _could_be(pair: CellPair, settled: Settled, wanted: tuple[bool, bool]) -> bool:
    return all(settled.passed(cell) in {None, value} for cell, value in zip(pair, wanted, strict=True))


def read_contrast(item: Contrast, settled: Settled, status: Status, *, registered: bool = True) -> ContrastReading:
    """Read one contrast; unless `status` is final there are counts and no verdict."""
    pairs = pair_up(item, settled.declared)[0]
    reading = ContrastReading(
        name=item.name,
        test=item.test,
        treatment=item.treatment,
        control=item.control,
        extras=item.extras,
        model=item.model,
        alternative=item.alternative,
        qualifiers=item.qualifiers,
        registered=registered,
        status=status,
        pairs=_count([_kind(pair, settled) for pair in pairs]),
        unjudged=_unjudged(pairs, settled),
        replicated=len({treatment.unit for treatment, _ in pairs}) < len(pairs),
        best_attainable_p=best_attainable_p(len(pairs), alternative=item.alternative),
    )
    return _tested(reading, _bounds(pairs, settled, reading)) if status == "final" else reading


def _tested(reading: ContrastReading, bounds: tuple[float, float]) -> ContrastReading:
    b01, b10 = reading.pairs.treatment_only, reading.pairs.control_only
    test = mcnemar_exact(b01, b10, alternative=reading.alternative)
    tested = replace(reading, p_value=test.p_value, p_low=bounds[0], p_high=bounds[1])
    if not test.n:
        return tested
    interval = clopper_pearson(b01, test.n)
    return replace(
        tested,
        odds_ratio=smoothed_odds_ratio(b01, b10),
        share=b01 / test.n,
        share_low=interval.low,
        share_high=interval.high,
    )


def adjust(readings: Sequence[ContrastReading], alpha: float) -> tuple[ContrastReading, ...]:
    """Holm's adjustment over a family of final readings; one without a discordant pair stays in it with p = 1."""
    raw = [reading.p_value for reading in readings if reading.p_value is not None]
    if not readings or len(raw) < len(readings):
        return tuple(readings)
    adjusted = holm(raw, names=[reading.name for reading in readings])
    return tuple(
        replace(reading, p_holm=p_holm, supported=p_holm <= alpha)
        for reading, p_holm in zip(readings, adjusted, strict=True)
    )
