"""What became of the pairs of a contrast: the state of each side, and the counts of pairs by what both sides say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

from cells.pairing import CellPair
from cells.readable import Cell
from cells.settled import Settled
from harness.values import Halt

__all__ = ["PairCounts", "PairState", "Side", "count_pairs", "side_of", "unjudged"]

Side: TypeAlias = Literal["pass", "fail", "halted", "unscorable", "none"]
"""What one cell of a pair says; `none` is a VOID, a failed boot, a refused or a missing cell: no number of any kind."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PairState:
    """A pair of cells and what each side says."""

    cells: CellPair
    treatment: Side
    control: Side


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

    def __add__(self, other: PairCounts) -> PairCounts:
        return PairCounts(**{item.name: getattr(self, item.name) + getattr(other, item.name) for item in fields(self)})

    @property
    def judged(self) -> int:
        """The pairs with a verdict on both sides."""
        return self.both + self.treatment_only + self.control_only + self.neither

    @property
    def discordant(self) -> int:
        """The judged pairs that differ."""
        return self.treatment_only + self.control_only

    @property
    def net(self) -> int:
        """What the treatment alone passes less what the control alone does."""
        return self.treatment_only - self.control_only

    @property
    def treatment_passed(self) -> int:
        """The treatment's passes among judged pairs."""
        return self.both + self.treatment_only

    @property
    def control_passed(self) -> int:
        """The control's passes among judged pairs."""
        return self.both + self.control_only


def side_of(cell: Cell, settled: Settled) -> Side:
    """What one cell says."""
    outcome = settled.outcomes.get(cell)
    if outcome is None:
        return "none"
    passed = outcome.passed
    if passed is not None:
        return "pass" if passed else "fail"
    if isinstance(outcome.end, Halt):
        return "halted"
    return "unscorable" if outcome.undecided else "none"


_JUDGED = {
    ("pass", "pass"): "both",
    ("pass", "fail"): "treatment_only",
    ("fail", "pass"): "control_only",
    ("fail", "fail"): "neither",
}


def _kind(pair: PairState) -> str:
    sides = (pair.treatment, pair.control)
    if "unscorable" in sides or "none" in sides:
        return "without_verdict"
    return _JUDGED.get(sides, "halted")


def count_pairs(pairs: Collection[PairState]) -> PairCounts:
    """Count the pairs by kind."""
    kinds = Counter(map(_kind, pairs))
    return PairCounts(
        declared=len(pairs),
        **{item.name: kinds[item.name] for item in fields(PairCounts) if item.name != "declared"},
    )


def unjudged(pairs: Sequence[PairState], settled: Settled) -> dict[str, tuple[int, int]]:
    """The cells of the pairs that were not judged, by class, as (treatment, control)."""
    sides: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for pair in pairs:
        for side, said, cell in zip(sides, (pair.treatment, pair.control), pair.cells, strict=True):
            if said not in {"pass", "fail"}:
                side[settled.label(cell)] += 1
    treatment, control = sides
    return {label: (treatment[label], control[label]) for label in sorted({*treatment, *control})}
