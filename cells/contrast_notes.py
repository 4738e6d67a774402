"""What is said in sentences beside a contrast: what its figures leave out, and what that could change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cells.figures import figure, p_text, rate_text

if TYPE_CHECKING:
    from cells.bounds import Bounds
    from cells.contrasts import ContrastReading

__all__ = ["qualified", "remarks"]

OPENED = {
    "halted": "halted cells",
    "unscorable": "cells that the referee could not decide",
    "unjudged": "all cells without a number",
}
"""How the sides that bounds are taken over are called."""


def qualified(qualifiers: Iterable[str]) -> str:
    """The qualifiers of a test as they stand beside its p-value."""
    return "; ".join(qualifiers) or "none"


def remarks(item: ContrastReading) -> Iterable[str]:
    """The sentences beside one contrast."""
    yield from _told(item)
    if item.pairs.without_verdict:
        yield f"{item.name}: {item.pairs.without_verdict} of {item.pairs.declared} pairs without a verdict."
    if item.pairs.halted:
        yield _halted(item)
    for bound in item.bounds:
        if bound.open:
            yield _reach(item, bound)
    for label, (treatment, control) in item.unjudged.items():
        yield f"{item.name}: {label}: {item.treatment} {treatment}, {item.control} {control}."
    if item.replicated and item.test != "mcnemar-clustered":
        yield f"{item.name}: units have more than one pair; the test takes pairs for independent."
    yield from _bootstrap(item)


def _told(item: ContrastReading) -> Iterable[str]:
    """What was registered of the test, and the sizes that go with what it says."""
    if item.power is not None:
        yield (
            f"{item.name}: registered power {rate_text(item.power.power)}: {item.power.pairs} discordant pairs, share "
            f"{rate_text(item.power.share)}, level {figure(item.power.alpha, 4)}."
        )
    if item.status == "final":
        yield _groups(item) if item.groups is not None else _sizes(item)
    if item.statistic is not None:
        yield f"{item.name}: z {figure(item.statistic, 3)} over clusters; the interval of the share knows none of them."
    if item.separation is not None:
        yield f"{item.name}: counts are told apart from a difference of {item.separation} on."


def _sizes(item: ContrastReading) -> str:
    pairs = item.pairs
    interval = (
        ""
        if item.share is None
        else f", exact 95 % interval {rate_text(item.share_low)} to {rate_text(item.share_high)}"
    )
    return (
        f"{item.name}: on {pairs.judged} common pairs {item.treatment} passes {pairs.treatment_passed}, "
        f"{item.control} {pairs.control_passed}; smoothed odds ratio {figure(item.odds_ratio, 2)}; share of the "
        f"discordant pairs {rate_text(item.share)}{interval}."
    )


def _groups(item: ContrastReading) -> str:
    assert item.groups is not None
    (passed, control_passed), (failed, control_failed) = item.groups.passed, item.groups.failed
    return (
        f"{item.name}: arms are not paired; {item.treatment} passes {passed} of {passed + failed} judged cells, "
        f"{item.control} {control_passed} of {control_passed + control_failed}."
    )


def _halted(item: ContrastReading) -> str:
    low, high = (p_text(value, withheld=item.status != "final") for value in (item.p_low, item.p_high))
    return (
        f"{item.name}: {item.pairs.halted} of {item.pairs.declared} pairs halted; with each halt read as a pass or as "
        f"a failure, p is {low} at least and {high} at most, qualifiers {qualified(item.qualifiers)}."
    )


def _reach(item: ContrastReading, bound: Bounds) -> str:
    """Whether sign and verdict are the same however these cells are read, with the extremes where p is not told yet."""
    cells = OPENED[bound.over]
    sign = "the sign holds under every reading of" if bound.sign_holds else "the sign depends on"
    told = f"{item.name}: {sign} {cells} ({bound.open})"
    if bound.effect_low is not None:
        told += f": difference {rate_text(bound.effect_low)} to {rate_text(bound.effect_high)}"
    if bound.over != "halted" and bound.p_low is not None:
        told += f", p {p_text(bound.p_low)} to {p_text(bound.p_high)}, qualifiers {qualified(item.qualifiers)}"
    if bound.verdict_holds is not None:
        told += "; the verdict holds" if bound.verdict_holds else "; the verdict depends on them"
    return told + f". Taken over SET {bound.taken_over[:12]}."


def _bootstrap(item: ContrastReading) -> Iterable[str]:
    found = item.bootstrap
    if found is None:
        return
    drawn = f"{found.clusters} clusters by {found.cluster}"
    drawn += f" within {', '.join(found.within)}" if found.within else ""
    drawn += f", {found.replicates:,} replicates, seed {found.seed}"
    if found.undefined is not None:
        yield f"{item.name}: the bootstrap of the risk difference ({drawn}) is undefined: {found.undefined}."
        return
    yield (
        f"{item.name}: paired risk difference {figure(found.value, 4)}, {100 * found.level:g} % interval "
        f"{figure(found.low, 4)} to {figure(found.high, 4)} (cluster bootstrap of {found.n} pairs: {drawn})."
    )
