"""
How far the costs of one condition lie apart: what the registered spread leads one to expect, and what the run has.

The run's own spread is reported and gates nothing: a floor that moved with the data would be none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cells.stats import spread_probability

if TYPE_CHECKING:
    from cells.groups import Members
    from harness.analysis import Quantity, Ratio

__all__ = ["OwnSpread", "Wide", "figures_by_condition", "own_spread", "read_wide"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wide:
    """
    The spread clause: a condition looks wide when its largest figure is over `ratio` times its smallest.

    `probability` has the chance of it by number of cells, (n, chance), under the registered spread; `expected` is its
    sum over the `conditions` with two figures or more, how many look wide by sampling alone; `seen` is how many do.
    """

    ratio: float
    probability: tuple[tuple[int, float], ...]
    conditions: int
    expected: float
    seen: int


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnSpread:
    """
    The run's own standard deviation of the natural log, pooled within the `conditions` that have two figures or more,
    of `cells` cells in all. Lower bounds among the figures count as they stand, and are `lower_bounds` of them.
    """

    sd_ln: float
    conditions: int
    cells: int
    lower_bounds: int


Figures = list[tuple[float, bool]]
"""The known figures above 0 of one condition, each with whether it is a lower bound."""


def figures_by_condition(conditions: Iterable[Members], quantity: Quantity) -> list[Figures]:
    """The figures of each condition that have a logarithm; a condition with one that is unknown or 0 is left out."""
    found = []
    for members in conditions:
        figures = members.figures.column(quantity)
        bounds = members.figures.bounds(quantity)
        known = [
            (float(value), bound)
            for value, bound in zip(figures, bounds, strict=True)
            if value is not None and value > 0
        ]
        if len(known) == len(figures) and len(known) >= 2:
            found.append(known)
    return found


def read_wide(item: Ratio, conditions: Sequence[Figures]) -> Wide | None:
    """The spread clause of a ratio; None where none was registered."""
    if item.wide is None or item.sd_ln is None:
        return None
    sizes = Counter(map(len, conditions))
    probability = {n: spread_probability(item.wide, item.sd_ln, n) for n in sorted(sizes)}
    ranges = [max(of)[0] / min(of)[0] for of in conditions]
    return Wide(
        ratio=item.wide,
        probability=tuple(probability.items()),
        conditions=len(conditions),
        expected=math.fsum(probability[n] * times for n, times in sizes.items()),
        seen=sum(wide > item.wide for wide in ranges),
    )


def own_spread(conditions: Sequence[Figures]) -> OwnSpread | None:
    """
    The pooled standard deviation within conditions; None where no condition has two figures.

    Source: the pooled variance of a one-way layout, G. W. Snedecor and W. G. Cochran, Statistical Methods, 8th edition
    (1989), section 12.3.
    """
    freedom = sum(len(of) - 1 for of in conditions)
    if not freedom:
        return None
    squares = 0.0
    for of in conditions:
        logs = [math.log(value) for value, _ in of]
        mean = math.fsum(logs) / len(logs)
        squares += math.fsum((value - mean) ** 2 for value in logs)
    return OwnSpread(
        sd_ln=math.sqrt(squares / freedom),
        conditions=len(conditions),
        cells=sum(map(len, conditions)),
        lower_bounds=sum(bound for of in conditions for _, bound in of),
    )
