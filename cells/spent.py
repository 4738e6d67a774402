"""What all tries of a set of cells cost together: what was paid, whatever came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from math import fsum
from typing import TYPE_CHECKING, Literal

from harness.money import dollars, in_figures, sum_of
from harness.values import LowerBoundPrice, VoidPrice

if TYPE_CHECKING:
    from cells.readable import Outcome

__all__ = ["Purse", "Spent", "Total", "spent"]


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Purse:
    """
    What `n` tries cost, to be added up: the figures that are known. A try without a call is not `priced`: it has no
    price to miss. Dollars are the decimals that they are written as, since floats of them drift.
    """

    n: int
    priced: int
    lower_bounds: int
    tokens: list[int]
    calls: list[int]
    wall_s: list[float]
    usd: list[Decimal]

    @classmethod
    def of(cls, tries: Sequence[Outcome]) -> Purse:
        """What these tries cost."""
        spends = [outcome.spend for outcome in tries]
        prices = [spend.price for spend in spends if spend.calls != 0]
        return cls(
            n=len(spends),
            priced=len(prices),
            lower_bounds=sum([isinstance(price, LowerBoundPrice) for price in prices]),
            tokens=[tokens for spend in spends if (tokens := spend.tokens) is not None],
            calls=[calls for spend in spends if (calls := spend.calls) is not None],
            wall_s=[wall_s for spend in spends if (wall_s := spend.wall_s) is not None],
            usd=[dollars(price.usd) for price in prices if not isinstance(price, VoidPrice)],
        )

    def __add__(self, other: Purse) -> Purse:
        return Purse(**{item.name: getattr(self, item.name) + getattr(other, item.name) for item in fields(self)})

    def spent(self) -> Spent:
        """All of it together."""
        return Spent(
            tokens=_total(sum(self.tokens), len(self.tokens), self.n),
            calls=_total(sum(self.calls), len(self.calls), self.n),
            wall_s=_total(fsum(self.wall_s), len(self.wall_s), self.n),
            usd=_total(in_figures(sum_of(self.usd)), len(self.usd), self.priced, self.lower_bounds),
        )


def _total(known: float, figures: int, n: int, lower_bounds: int = 0) -> Total:
    value = known if figures == n else None
    return Total(value=value, known=known, n=n, unknown=n - figures, lower_bounds=lower_bounds)


def spent(tries: Iterable[Outcome]) -> Spent:
    """Add up what the tries cost. One without a call cost no money, and has no price that could be missing."""
    return Purse.of(list(tries)).spent()
