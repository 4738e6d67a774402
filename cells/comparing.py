"""The cells of a registered contrast, put together for its test: in pairs, or side by side where no arm is paired."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cells.deciders import Comparison
from cells.pair_counts import PairState, Side, count_pairs
from cells.pairing import pair_up, sides
from cells.strata import placer

if TYPE_CHECKING:
    from cells.readable import Cell
    from harness.analysis import Analysis, Contrast

__all__ = ["compare"]


def compare(item: Contrast, declared: Sequence[Cell], said: Callable[[Cell], Side], analysis: Analysis) -> Comparison:
    """The declared cells that a contrast is about, and what each of them `said`."""
    paired = [] if item.test == "fisher" else pair_up(item, declared)[0]
    treatment, control = sides(item, declared) if item.test == "fisher" else ([], [])
    pairs = [PairState(cells=pair, treatment=said(pair[0]), control=said(pair[1])) for pair in paired]
    return Comparison(
        item=item,
        pairs=pairs,
        treatment=[said(cell) for cell in treatment],
        control=[said(cell) for cell in control],
        cluster_of=placer(() if item.cluster is None else (item.cluster,), analysis.groupings),
        alpha=analysis.alpha,
        counts=count_pairs(pairs),
    )
