"""
What unjudged cells could make of a contrast: bounds over every reading of them, and the set that bounds hold for.

A bound is about one declared set. It names the digest of that set, and is expired for any other: a set that has grown
may hold what the bound never saw.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cells.pair_counts import PairState, Side
from harness.canonical import digest_names

if TYPE_CHECKING:
    from cells.readable import Cell

__all__ = ["OPENINGS", "Bounds", "DeclaredSet", "Reach", "could_be", "declared_set", "expired_bounds", "opened"]

OPENINGS: Mapping[str, frozenset[Side]] = {
    "halted": frozenset({"halted"}),
    "unscorable": frozenset({"unscorable"}),
    "unjudged": frozenset({"halted", "unscorable", "none"}),
}
"""Which sides are read as a pass and as a failure: halts, what the referee could not decide, all without a number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredSet:
    """A declared set of cells by its name: the digest of its sorted identities, and how many they are."""

    digest: str
    cells: int

    def __str__(self) -> str:
        return f"SET {self.digest[:12]} ({self.cells} cells)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """
    How far the readings of `open` unjudged pairs (or cells, where arms are not paired) move a contrast.

    `effect` is the risk difference over what is then judged, treatment less control. `p_low` and `p_high` are None for
    a test that has no p-value, and where there are too many readings to go through. `verdict_holds` is set by tests
    that decide without a family.
    """

    open: int
    effect_low: float | None = None
    effect_high: float | None = None
    p_low: float | None = None
    p_high: float | None = None
    verdict_holds: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """
    A contrast under every reading of its unjudged sides, each by itself as a pass or as a failure.

    `over` says which sides were read: `halted`, `unscorable`, or `unjudged`, which is both of them and all that has no
    number. `sign_holds` says whether the effect has one sign (or is 0) in every reading; `verdict_holds` whether the
    verdict is one, None where there is none. Those two are all that is told over `unjudged`: no figure is printed that
    took a VOID for a pass or a failure. The bounds hold for the set of `cells` cells whose digest is `taken_over`.
    """

    over: str
    open: int
    effect_low: float | None
    effect_high: float | None
    sign_holds: bool | None
    p_low: float | None
    p_high: float | None
    verdict_holds: bool | None
    taken_over: str
    cells: int

    @classmethod
    def of(cls, over: str, reach: Reach, taken_over: DeclaredSet) -> Bounds:
        """The bounds that a test's reach gives over one set."""
        return cls(
            over=over,
            open=reach.open,
            effect_low=reach.effect_low,
            effect_high=reach.effect_high,
            sign_holds=_one_sign(reach.effect_low, reach.effect_high),
            p_low=reach.p_low,
            p_high=reach.p_high,
            verdict_holds=reach.verdict_holds,
            taken_over=taken_over.digest,
            cells=taken_over.cells,
        )

    def in_words(self) -> Bounds:
        """The same without its figures."""
        return replace(self, effect_low=None, effect_high=None, p_low=None, p_high=None)


def _one_sign(low: float | None, high: float | None) -> bool | None:
    if low is None or high is None:
        return None
    return (low > 0) == (high > 0) and (low < 0) == (high < 0)


def declared_set(cells: Iterable[Cell]) -> DeclaredSet:
    """Name a declared set: SHA-256 of the canonical list of its identities, sorted, so that order is nothing."""
    names = list(map(str, cells))
    return DeclaredSet(digest=digest_names(names), cells=len(names))


def opened(pairs: Iterable[PairState], opening: frozenset[Side]) -> list[PairState]:
    """The pairs that these sides alone keep from being judged."""
    readable = opening | {"pass", "fail"}
    return [
        pair
        for pair in pairs
        if {pair.treatment, pair.control} <= readable and not {pair.treatment, pair.control} <= {"pass", "fail"}
    ]


def could_be(pairs: Sequence[PairState], treatment: Side, control: Side) -> int:
    """How many of these opened pairs have a reading in which the sides are as said."""
    return sum(pair.treatment in {treatment, *_OPEN} and pair.control in {control, *_OPEN} for pair in pairs)


_OPEN: frozenset[Side] = frozenset({"halted", "unscorable", "none"})


def expired_bounds(stored: Mapping[str, Any], now: DeclaredSet) -> list[str]:
    """
    What is wrong with the bounds of a stored scoreboard (its JSON) for the declared set as it is `now`: a line for each
    that was taken over another set, those of the pass rates in one.
    """
    lines = []
    if (over := DeclaredSet(digest=stored["over"]["digest"], cells=stored["over"]["cells"])) != now:
        lines.append(f"bounds of the pass rates: expired: taken over {over}, now {now}")
    for contrast in (*stored["contrasts"], *stored["added"]):
        for item in contrast["bounds"]:
            then = DeclaredSet(digest=item["taken_over"], cells=item["cells"])
            if then != now:
                lines.append(
                    f"{contrast['name']}, bounds over {item['over']} cells: expired: taken over {then}, now {now}"
                )
    return lines
