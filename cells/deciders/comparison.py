"""What a test of a contrast is given, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cells.bounds import Reach, could_be, opened
from cells.pair_counts import PairCounts, PairState, Side

if TYPE_CHECKING:
    from cells.strata import Placer
    from harness.analysis import Contrast

__all__ = ["Comparison", "Decider", "Figures", "Opened"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """
    The cells of one contrast: as `pairs`, and for arms that are not paired as what each side's cells say.

    `cluster_of` tells a unit's cluster, `alpha` is the level of the analysis, `counts` are of the pairs.
    """

    item: Contrast
    pairs: Sequence[PairState]
    treatment: Sequence[Side]
    control: Sequence[Side]
    cluster_of: Placer
    alpha: float
    counts: PairCounts

    def opened(self, opening: frozenset[Side]) -> Opened:
        """What reading these sides adds to the counts."""
        pairs = opened(self.pairs, opening)
        return Opened(
            n=len(pairs), for_treatment=could_be(pairs, "pass", "fail"), for_control=could_be(pairs, "fail", "pass")
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """`n` pairs that may be read either way; so many of them could speak for the treatment, and for the control."""

    n: int
    for_treatment: int
    for_control: int

    def effects(self, counts: PairCounts) -> tuple[float | None, float | None]:
        """The least and the greatest risk difference over the judged pairs and these."""
        n = counts.judged + self.n
        if not n:
            return None, None
        return (counts.net - self.for_control) / n, (counts.net + self.for_treatment) / n


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """
    What a test says of the judged pairs. `statistic` is a test's own, None where it has none or it is undefined;
    `separation` is the count rule's. `supported` is set by a test that decides without a family.
    """

    p_value: float | None
    statistic: float | None = None
    separation: int | None = None
    supported: bool | None = None


class Decider(Protocol):
    """A registered test over one comparison."""

    def __init__(self, comparison: Comparison) -> None: ...

    def best_p(self) -> float | None:
        """The smallest p-value that the declared cells could give; None for a test without one."""

    def figures(self) -> Figures:
        """What it says."""

    def reach(self, opening: frozenset[Side]) -> Reach:
        """What it could say if every opened side were read as a pass or as a failure."""
