"""What all tries of a set of cells cost together: what was paid, whatever came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Literal, get_args

from cells.costs import figure_of
from harness.analysis import Quantity
from harness.money import dollars, in_figures, sum_of

if TYPE_CHECKING:
    from cells.readable import Outcome

__all__ = ["Spent", "Total", "spent"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Total:
    """
    A sum over `n` tries; None if the figure of one (`unknown` of them) is not known. A lower bound makes it one.

    `known` is the sum of the figures that are known: at least so much was paid.
    """

    value: float | None
    known: float
    n: int
    unknown: int
    lower_bounds: int

    @property
    def bound(self) -> Literal["exact", "at_least"]:
        """Whether the value is exact or a lower bound."""
        return "at_least" if self.lower_bounds else "exact"

    @property
    def exact(self) -> int:
        """How many of the figures are exact."""
        return self.n - self.unknown - self.lower_bounds


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """Totals over every try, VOID ones too: `wall_s` in seconds, `usd` in US dollars, of the tries that had a call."""

    tokens: Total
    usd: Total
    wall_s: Total
    calls: Total


def spent(tries: Iterable[Outcome]) -> Spent:
    """Add up what the tries cost. One without a call cost no money, and has no price that could be missing."""
    every = list(tries)
    paid = [outcome for outcome in every if outcome.spend.calls != 0]
    return Spent(**{name: _total(paid if name == "usd" else every, name) for name in get_args(Quantity)})


def _total(tries: Iterable[Outcome], quantity: Quantity) -> Total:
    figures = [figure_of(outcome, quantity) for outcome in tries]
    known = [value for value, _bound in figures if value is not None]
    # Cents are added as decimals: floats of them drift.
    total = in_figures(sum_of(map(dollars, known))) if quantity == "usd" else fsum(known)
    return Total(
        value=total if len(known) == len(figures) else None,
        known=total,
        n=len(figures),
        unknown=len(figures) - len(known),
        lower_bounds=sum(bound == "at_least" for _value, bound in figures),
    )
