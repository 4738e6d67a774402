"""What all tries of a set of cells cost together: what was paid, whatever came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from math import fsum
from typing import TYPE_CHECKING, Literal, NamedTuple

from harness.money import dollars, in_figures, sum_of
from harness.values import LowerBoundPrice, VoidPrice

if TYPE_CHECKING:
    from cells.readable import Outcome

__all__ = ["Paid", "Purse", "Spent", "Total", "paid", "spent"]


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


class Paid(NamedTuple):
    """What one try cost, None where that is unknown. A try without a call is not `priced`: it has no price to miss."""

    tokens: int | None
    calls: int | None
    wall_s: float | None
    usd: Decimal | None
    priced: bool
    lower_bound: bool


def paid(outcome: Outcome) -> Paid:
    """What one try cost, its dollars as the decimal that they are written as."""
    spend = outcome.spend
    price, calls = spend.price, spend.calls
    usd = None if isinstance(price, VoidPrice) else dollars(price.usd)
    return Paid(spend.tokens, calls, spend.wall_s, usd, calls != 0, isinstance(price, LowerBoundPrice))


@dataclass(slots=True)
class Purse:
    """Adds tries up. Cents are added as decimals, since floats of them drift."""

    n: int = 0
    priced: int = 0
    lower_bounds: int = 0
    tokens: list[int] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    usd: list[Decimal] = field(default_factory=list)

    def add(self, one: Paid) -> None:
        """One more try."""
        self.n += 1
        if one.tokens is not None:
            self.tokens.append(one.tokens)
        if one.calls is not None:
            self.calls.append(one.calls)
        if one.wall_s is not None:
            self.wall_s.append(one.wall_s)
        if one.priced:
            self.priced += 1
            self.lower_bounds += one.lower_bound
            if one.usd is not None:
                self.usd.append(one.usd)

    def pour(self, *others: Purse) -> None:
        """All that is in the others, too."""
        for other in others:
            self.n += other.n
            self.priced += other.priced
            self.lower_bounds += other.lower_bounds
            self.tokens += other.tokens
            self.calls += other.calls
            self.wall_s += other.wall_s
            self.usd += other.usd

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
    purse = Purse()
    for outcome in tries:
        purse.add(paid(outcome))
    return purse.spent()
