"""
The strata of a contrast: what its pool splits into, each with its own figures, and the sum that must be the pool's.

A stratum is made of parts of the unit and of registered groupings; a unit that a grouping does not place is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias

from cells.pair_counts import PairCounts, PairState, count_pairs
from cells.pairing import sides
from cells.readable import Cell
from cells.stats import clopper_pearson, mcnemar_exact, smoothed_odds_ratio
from harness.errors import IntegrityError
from harness.values import Unit

if TYPE_CHECKING:
    from harness.analysis import Alternative, Contrast
    from harness.grouping import Grouping

__all__ = ["POOL", "Placer", "Stratum", "check_pooled", "placer", "stratify", "unplaced"]

Placer: TypeAlias = Callable[[Unit], "str | None"]
"""Tells the stratum or cluster of a unit; None where a grouping does not place it."""

POOL = "all"
"""The one stratum of what is not split."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stratum:
    """
    One part of a contrast's pairs. Its p-value is exact and raw, in the contrast's direction: it is described and not
    adjusted, and no verdict rests on it; only a part of an exact McNemar test has one. Figures are None where undefined
    and while verdicts are withheld.
    """

    name: str
    pairs: PairCounts
    p_value: float | None = None
    odds_ratio: float | None = None
    share: float | None = None
    share_low: float | None = None
    share_high: float | None = None


def _part(name: str, groupings: dict[str, Grouping]) -> Placer:
    match name:
        case "benchmark":
            return lambda unit: unit.benchmark
        case "model":
            return lambda unit: unit.model
        case "task":
            return lambda unit: f"{unit.benchmark}|{unit.task}"
        case "unit":
            return str
        case _:
            members = groupings[name].members if name in groupings else {}
            places = {of: stratum for stratum, units in members.items() for of in units}
            return lambda unit: places.get(str(unit), places.get(f"{unit.benchmark}|{unit.task}"))


def placer(names: Iterable[str], groupings: Iterable[Grouping]) -> Placer:
    """Which stratum a unit is in, by these parts and groupings, crossed in this order."""
    known = {grouping.name: grouping for grouping in groupings}
    parts = [_part(name, known) for name in names]

    def place(unit: Unit) -> str | None:
        found = [part(unit) for part in parts]
        return None if None in found else "|".join(map(str, found)) or POOL

    return place


def stratify(
    pairs: Sequence[PairState], place: Placer, *, alternative: Alternative | None, tested: bool
) -> tuple[Stratum, ...]:
    """
    Split the pairs and read each part, in the order in which the parts first come; pairs that have no place drop.

    Without an `alternative` the parts have no p-value: an exact one would not be the contrast's own test.
    """
    parts: dict[str, list[PairState]] = {}
    for pair in pairs:
        name = place(pair.cells[0].unit)
        if name is not None:
            parts.setdefault(name, []).append(pair)
    return tuple(_read(name, count_pairs(members), alternative, tested=tested) for name, members in parts.items())


def _read(name: str, counts: PairCounts, alternative: Alternative | None, *, tested: bool) -> Stratum:
    if not tested:
        return Stratum(name=name, pairs=counts)
    b01, b10 = counts.treatment_only, counts.control_only
    p_value = None if alternative is None else mcnemar_exact(b01, b10, alternative=alternative).p_value
    if not counts.discordant:
        return Stratum(name=name, pairs=counts, p_value=p_value)
    low, high = clopper_pearson(b01, counts.discordant)
    return Stratum(
        name=name,
        pairs=counts,
        p_value=p_value,
        odds_ratio=smoothed_odds_ratio(b01, b10),
        share=b01 / counts.discordant,
        share_low=low,
        share_high=high,
    )


def check_pooled(name: str, pooled: PairCounts, strata: Iterable[Stratum]) -> None:
    """Raise `IntegrityError` that names the first count of a contrast which is not the sum over its strata."""
    parts = list(strata)
    for item in fields(PairCounts):
        total = sum(getattr(part.pairs, item.name) for part in parts)
        if total != getattr(pooled, item.name):
            shown = " + ".join(f"{getattr(part.pairs, item.name)} ({part.name})" for part in parts) or "nothing"
            raise IntegrityError(
                f"contrast {name!r}: pooled {item.name} is {getattr(pooled, item.name)}, its strata make {total}: "
                f"{shown}; expected every pair in one stratum"
            )


def unplaced(item: Contrast, cells: Sequence[Cell], groupings: Sequence[Grouping]) -> list[str]:
    """A complaint for each split of a contrast under which a unit of it has no place; the first unit is named."""
    splits = {"strata": item.strata, "cluster": () if item.cluster is None else (item.cluster,)}
    if item.bootstrap is not None:
        splits |= {"bootstrap strata": item.bootstrap.strata, "bootstrap cluster": (item.bootstrap.cluster,)}
    splits = {what: names for what, names in splits.items() if names}
    if not splits:
        return []
    units = dict.fromkeys(cell.unit for side in sides(item, cells) for cell in side)
    complaints = []
    for what, names in splits.items():
        place = placer(names, groupings)
        lost = [unit for unit in units if place(unit) is None]
        if lost:
            complaints.append(
                f"{item.name}: {what} {', '.join(names)}: {len(lost)} units have no place, the first is {lost[0]}: "
                "expected every unit in the grouping"
            )
    return complaints
