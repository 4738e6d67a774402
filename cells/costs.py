"""What the cells of a condition or an arm cost, with what each figure is taken over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal, TypeAlias

from cells.groups import Group, Members

if TYPE_CHECKING:
    from harness.analysis import Quantity

__all__ = ["Cost", "Median", "cost", "median_of"]

Bound: TypeAlias = Literal["exact", "at_least"]
"""Whether a figure is exact, or has a lower bound in it and so is one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Median:
    """
    A median over `n` cells, or None if there is no cell or if the figure of one (`unknown` of them) is not known.

    It is `at_least` if `lower_bounds` of the figures are lower bounds: then so is the median.
    """

    value: float | None
    n: int
    unknown: int
    lower_bounds: int

    @property
    def bound(self) -> Bound:
        """Whether the value is exact or a lower bound."""
        return "at_least" if self.lower_bounds else "exact"

    @property
    def exact(self) -> int:
        """How many of the figures are exact."""
        return self.n - self.unknown - self.lower_bounds


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """
    Medians over the `n` cells of a group in which the subject did something: declared or halted ends.

    `tokens` are of all directions, `calls` of the model, `wall_s` seconds of the seat, `usd` US dollars; `usd_exact` is
    over the exact prices alone, as if those that are bounds or void had been left out.
    """

    group: Group
    n: int
    tokens: Median
    calls: Median
    wall_s: Median
    usd: Median
    usd_exact: Median

    def of(self, quantity: Quantity) -> Median:
        """The median of one quantity."""
        median_of_it: Median = getattr(self, quantity)
        return median_of_it


def median_of(figures: Sequence[float | None], *, lower_bounds: int = 0) -> Median:
    """The median of figures: undefined if any is unknown, for a median of the others would be of others."""
    known = [value for value in figures if value is not None]
    whole = bool(figures) and len(known) == len(figures)
    return Median(
        value=float(median(known)) if whole else None,
        n=len(figures),
        unknown=len(figures) - len(known),
        lower_bounds=lower_bounds,
    )


def cost(members: Members) -> Cost:
    """The medians of cost of a group."""
    figures = members.figures
    exact = [usd for usd, bound in zip(figures.usd, figures.at_least, strict=True) if usd is not None and not bound]
    return Cost(
        group=members.group,
        n=len(figures.usd),
        tokens=median_of(figures.tokens),
        calls=median_of(figures.calls),
        wall_s=median_of(figures.wall_s),
        usd=median_of(figures.usd, lower_bounds=sum(figures.at_least)),
        usd_exact=median_of(exact),
    )
