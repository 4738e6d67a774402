"""
Selection: which cells have no verdict or no price, and whether that befell the arms alike.

A comparison is over the cells that were judged. Where a limit, a failure, a gate or a missing price took more of them
from one arm than from the other, its figures are of a selected set, and a reader must be told before reading them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

from cells.conditions import Census

if TYPE_CHECKING:
    from harness.analysis import Contrast, Ratio

__all__ = ["ArmShare", "Imbalance", "imbalances"]

Side: TypeAlias = Literal["treatment", "control"]


def _planned(arm: Census) -> int:
    return arm.planned


def _costed(arm: Census) -> int:
    return arm.declared + arm.halted


@dataclass(frozen=True, slots=True)
class _Kind:
    """One way out of a comparison: how it is told, which cells of a census it took, and out of which."""

    what: str
    plural: str
    one: str
    count: Callable[[Census], int]
    of: Callable[[Census], int] = _planned


KINDS = (
    _Kind("halts", "Halts", "halted cell", count=lambda arm: arm.halted),
    _Kind("voids", "Voids", "void cell", count=lambda arm: arm.void),
    _Kind("failed boots", "Failed boots", "failed boot", count=lambda arm: arm.failed_boot),
    _Kind("refusals", "Refused cells", "refused cell", count=lambda arm: arm.refused),
    _Kind(
        "not fired",
        "Cells that were not fired",
        "cell that was not fired",
        count=lambda arm: arm.classes.get("NOT_FIRED", 0),
    ),
    _Kind("unscorable", "Unscorable cells", "unscorable cell", count=lambda arm: arm.unscorable),
    _Kind("unpriced", "Cells without a price", "cell without a price", count=lambda arm: arm.unpriced, of=_costed),
    _Kind(
        "lower bounds",
        "Prices that are lower bounds",
        "price that is a lower bound",
        count=lambda arm: arm.lower_bounds,
        of=_costed,
    ),
)
"""What takes a cell out of a comparison, or blunts its figure, in the order told. Prices are of the cells that cost."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmShare:
    """How many cells of an arm it befell, `count` of `of`."""

    arm: str
    count: int
    of: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Imbalance:
    """
    Something that did not befall the arms alike, with the sentence that says so. `shares` are the arms' counts.

    `comparison`, `side` and `arm` are set where all of it is on one side of a registered comparison; then `extras` and
    `model` are the comparison's (None: of every model), and `everywhere` is whether no other cell at all is affected.
    """

    what: str
    extras: str
    model: str | None
    shares: tuple[ArmShare, ...]
    sentence: str
    comparison: str | None = None
    side: Side | None = None
    arm: str | None = None
    everywhere: bool = False


def imbalances(arms: Sequence[Census], comparisons: Sequence[Contrast | Ratio]) -> tuple[Imbalance, ...]:
    """
    Everything that befell the `arms` (censuses of arms with their extras and model) unequally, in a fixed order.

    Where all of it is on one side of one of the registered `comparisons` that is said; elsewhere the counts are, of
    arms under the same extras and model. O(kinds x comparisons x arms).
    """
    found: list[Imbalance] = []
    for kind in KINDS:
        one_sided = _one_sided(kind, arms, comparisons)
        found += one_sided
        if not any(item.everywhere for item in one_sided):
            found += _uneven(kind, arms)
    return tuple(found)


def _one_sided(kind: _Kind, arms: Sequence[Census], comparisons: Sequence[Contrast | Ratio]) -> list[Imbalance]:
    everywhere = sum(kind.count(arm) for arm in arms)
    found: dict[str, Imbalance] = {}
    for item in comparisons:
        shares = {name: _share(kind, name, _members(item, name, arms)) for name in (item.treatment, item.control)}
        hit = [share for share in shares.values() if share.count]
        if len(hit) != 1 or not all(share.of for share in shares.values()):
            continue
        (only,) = hit
        side: Side = "treatment" if only.arm == item.treatment else "control"
        whole = only.count == everywhere and _sides(only.arm, comparisons) == {side}
        scope = "Every" if whole else f"In {item.name!r} every"
        sentence = f"{scope} {kind.one} is a {side} cell: {only.count} of {only.count} are {only.arm}."
        found.setdefault(
            sentence,
            Imbalance(
                what=kind.what,
                extras=item.extras,
                model=item.model,
                shares=tuple(shares.values()),
                sentence=sentence,
                comparison=item.name,
                side=side,
                arm=only.arm,
                everywhere=whole,
            ),
        )
    return list(found.values())


def _members(item: Contrast | Ratio, name: str, arms: Iterable[Census]) -> list[Census]:
    """The censuses of one side of a comparison."""
    return [
        arm
        for arm in arms
        if arm.group.arm == name and arm.group.extras == item.extras and item.model in {None, arm.group.model}
    ]


def _share(kind: _Kind, name: str, members: Iterable[Census]) -> ArmShare:
    members = list(members)
    return ArmShare(arm=name, count=sum(map(kind.count, members)), of=sum(map(kind.of, members)))


def _sides(name: str, comparisons: Iterable[Contrast | Ratio]) -> set[Side]:
    """On which sides an arm stands; an arm may be one comparison's treatment and another's control."""
    sides: set[Side] = set()
    for item in comparisons:
        if item.treatment == name:
            sides.add("treatment")
        if item.control == name:
            sides.add("control")
    return sides


def _uneven(kind: _Kind, arms: Iterable[Census]) -> Iterable[Imbalance]:
    """The groups of arms under the same extras and model whose shares differ."""
    alike: dict[tuple[str, str], list[ArmShare]] = {}
    for arm in arms:
        if kind.of(arm):
            share = _share(kind, arm.group.arm, [arm])
            alike.setdefault((arm.group.extras, arm.group.model), []).append(share)
    for (extras, model), shares in alike.items():
        if len({Fraction(share.count, share.of) for share in shares}) > 1:
            counts = ", ".join(f"{share.arm} {share.count} of {share.of}" for share in shares)
            where = f"extras {extras}, model {model}"
            yield Imbalance(
                what=kind.what,
                extras=extras,
                model=model,
                shares=tuple(shares),
                sentence=f"{kind.plural} are unequal between the arms ({where}): {counts}.",
            )
