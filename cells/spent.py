"""What all tries of a set of cells cost together: what was paid, whatever came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Literal, get_args

from cells.costs import figure_of
from harness.analysis import Quantity

if TYPE_CHECKING:
    from cells.readable import Outcome

__all__ = ["Spent", "Total", "spent"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Total:
    """A sum over `n` tries; None if the figure of one (`unknown` of them) is not known. A lower bound makes it one."""

    value: float | None
    n: int
    unknown: int
    lower_bounds: int

    @property
    def bound(self) -> Literal["exact", "at_least"]:
        """Whether the value is exact or a lower bound."""
        return "at_least" if self.lower_bounds else "exact"


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """Totals over every try that had a call of the model, VOID ones too: `wall_s` in seconds, `usd` in US dollars."""

    tokens: Total
    usd: Total
    wall_s: Total
    calls: Total


def spent(tries: Iterable[Outcome]) -> Spent:
    """Add up what the tries cost. One without a call cost nothing, and has no price that could be missing."""
    paid = [outcome for outcome in tries if outcome.spend.calls != 0]
    return Spent(**{quantity: _total(paid, quantity) for quantity in get_args(Quantity)})


def _total(tries: Iterable[Outcome], quantity: Quantity) -> Total:
    figures = [figure_of(outcome, quantity) for outcome in tries]
    known = [value for value, _bound in figures if value is not None]
    return Total(
        value=fsum(known) if len(known) == len(figures) else None,
        n=len(figures),
        unknown=len(figures) - len(known),
        lower_bounds=sum(bound == "at_least" for _value, bound in figures),
    )
