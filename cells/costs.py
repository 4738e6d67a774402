"""What the cells of a condition or an arm cost, with what each figure is taken over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal, TypeAlias

from cells.conditions import Group
from cells.readable import Cell, Outcome
from cells.settled import Settled
from harness.values import Declared, ExactPrice, Halt, LowerBoundPrice, VoidPrice

if TYPE_CHECKING:
    from harness.analysis import Quantity

__all__ = ["Cost", "Median", "at_least", "cost", "figures_of", "median_of", "priced"]

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


def figures_of(outcomes: Iterable[Outcome], quantity: Quantity) -> list[float | None]:
    """A quantity of each try, None where it is unknown."""
    spends = [outcome.spend for outcome in outcomes]
    match quantity:
        case "tokens":
            return [spend.tokens for spend in spends]
        case "calls":
            return [spend.calls for spend in spends]
        case "wall_s":
            return [spend.wall_s for spend in spends]
        case "usd":
            prices = [spend.price for spend in spends]
            return [None if isinstance(price, VoidPrice) else price.usd for price in prices]


def at_least(outcomes: Iterable[Outcome], quantity: Quantity) -> list[bool]:
    """Whether the figure of each try is a lower bound only, which a price alone may be."""
    return [quantity == "usd" and isinstance(outcome.spend.price, LowerBoundPrice) for outcome in outcomes]


def priced(cells: Iterable[Cell], settled: Settled) -> list[Outcome]:
    """The outcomes in which the subject did something, so that a cost can be told of them."""
    found = (settled.outcomes.get(cell) for cell in cells)
    return [outcome for outcome in found if outcome is not None and isinstance(outcome.end, (Declared, Halt))]


def median_of(outcomes: Sequence[Outcome], quantity: Quantity) -> Median:
    """The median of a quantity: undefined if any figure is unknown, for a median of the others would be of others."""
    figures = figures_of(outcomes, quantity)
    known = [value for value in figures if value is not None]
    whole = bool(figures) and len(known) == len(figures)
    return Median(
        value=float(median(known)) if whole else None,
        n=len(figures),
        unknown=len(figures) - len(known),
        lower_bounds=sum(at_least(outcomes, quantity)),
    )


def cost(group: Group, cells: Iterable[Cell], settled: Settled) -> Cost:
    """The medians of cost of `cells`."""
    outcomes = priced(cells, settled)
    return Cost(
        group=group,
        n=len(outcomes),
        tokens=median_of(outcomes, "tokens"),
        calls=median_of(outcomes, "calls"),
        wall_s=median_of(outcomes, "wall_s"),
        usd=median_of(outcomes, "usd"),
        usd_exact=median_of([item for item in outcomes if isinstance(item.spend.price, ExactPrice)], "usd"),
    )
