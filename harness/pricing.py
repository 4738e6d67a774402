"""
Prices of calls by the rates of the model that served them: exact, a lower bound, or void, which has no figure.

A call is priced whole: how long its prompt was decides the tier of all its tokens, as the providers have it. So prices
are taken call by call and added up, never from a total of tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Literal, TypeAlias

from harness.money import ZERO, checked_rate, cost_of, in_figures, sum_of, to_cents
from harness.values import ExactPrice, LowerBoundPrice, Price, Usage, VoidPrice

__all__ = ["NO_RATES", "CallPrice", "PriceList", "PriceSum", "RateTable", "Rounding", "Tariff", "Tier"]

Rounding: TypeAlias = Literal["raw", "cents"]
"""How the price of a try is written down: as it is, or in whole cents. Nothing is rounded before."""

NO_RATES = "no rate card for this model"
_PROMPT = ("input", "cache_write_5m", "cache_write_1h", "cache_read")


@dataclass(frozen=True, kw_only=True, slots=True)
class RateTable:
    """US dollars per million tokens, by the five directions of `Usage`."""

    input: Decimal
    output: Decimal
    cache_read: Decimal = ZERO
    cache_write_5m: Decimal = ZERO
    cache_write_1h: Decimal = ZERO

    @classmethod
    def of(cls, **rates: float | Decimal) -> RateTable:
        """The table of rates by direction; a float stands for the decimal that it prints as."""
        return cls(**{direction: checked_rate(rate) for direction, rate in rates.items()})

    def rate(self, direction: str) -> Decimal:
        """The rate of one direction."""
        found: Decimal = getattr(self, direction)
        return found

    def unknown(self, usage: Usage) -> list[str]:
        """The directions that cost something and whose tokens are not known."""
        return [item.name for item in fields(self) if getattr(usage, item.name) is None and self.rate(item.name)]

    def known(self, usage: Usage) -> Decimal:
        """What the tokens cost that are known."""
        return sum_of(cost_of(getattr(usage, item.name) or 0, self.rate(item.name)) for item in fields(self))

    @property
    def dearest(self) -> Decimal:
        """The highest of the five rates."""
        return max(self.rate(item.name) for item in fields(self))


@dataclass(frozen=True, kw_only=True, slots=True)
class Tier:
    """The rates of every token of a call whose prompt has more than `above` tokens."""

    above: int
    rates: RateTable


@dataclass(frozen=True, kw_only=True, slots=True)
class CallPrice:
    """
    What calls cost: exactly `usd` dollars where `why` is empty, at least that many where it says why not, and None
    where nothing of it can be told.
    """

    usd: Decimal | None
    why: str = ""


def _shortest_prompt(usage: Usage) -> tuple[int, bool]:
    """At least so many tokens had the prompt, fresh and cached ones, and whether that is all of them."""
    parts = [getattr(usage, name) for name in _PROMPT]
    return sum(part or 0 for part in parts), None not in parts


@dataclass(frozen=True, kw_only=True, slots=True)
class Tariff:
    """The rates of one served model: those of an ordinary call, and of longer prompts by rising `above`."""

    base: RateTable
    tiers: tuple[Tier, ...] = ()

    def possible(self, usage: Usage) -> list[RateTable]:
        """The rates that a call of this usage may have been under: one, unless its prompt's length is not known."""
        least, whole = _shortest_prompt(usage)
        passed = [self.base, *(tier.rates for tier in self.tiers if tier.above < least)]
        open_ended = [] if whole else [tier.rates for tier in self.tiers if tier.above >= least]
        return [passed[-1], *open_ended]

    def reachable(self, total: Usage) -> list[RateTable]:
        """The rates that one of several calls may have been under, of which the sum alone is known."""
        most, whole = _shortest_prompt(total)
        return [self.base, *(tier.rates for tier in self.tiers if not whole or tier.above < most)]

    def price(self, usage: Usage) -> CallPrice:
        """The price of one call: exact if its tier and every direction that costs something are known."""
        tables = self.possible(usage)
        unknown = sorted({name for table in tables for name in table.unknown(usage)})
        known = {table.known(usage) for table in tables}
        if unknown:
            # At least 0.00 says nothing, and reads like a price.
            return CallPrice(usd=min(known) or None, why=f"unknown tokens: {', '.join(unknown)}")
        return CallPrice(
            usd=min(known), why="" if len(known) == 1 else "unknown length of the prompt, on which rates hang"
        )

    @property
    def dearest(self) -> Decimal:
        """The highest rate of any direction in any tier."""
        return max(table.dearest for table in (self.base, *(tier.rates for tier in self.tiers)))


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceList:
    """
    The rates that a model of an experiment is priced by: a tariff for each served model, `expected` the one that the
    condition's is served as. A call by a model that is not in the list has no price.
    """

    expected: str
    tariffs: Mapping[str, Tariff]
    rounding: Rounding = "raw"

    @classmethod
    def flat(cls, expected: str, rates: RateTable, *, rounding: Rounding = "raw") -> PriceList:
        """The list of one model with the same rates for every prompt."""
        return cls(expected=expected, tariffs={expected: Tariff(base=rates)}, rounding=rounding)

    def price(self, usage: Usage, served: str | None = None) -> CallPrice:
        """The price of one call; `served` None is a call that failed before anybody said who serves it."""
        name = self.expected if served is None else served
        tariff = self.tariffs.get(name)
        if tariff is not None:
            return tariff.price(usage)
        # A call that used nothing, as one that the server refused, costs nothing by any rates.
        return CallPrice(usd=ZERO) if usage == Usage.zero() else CallPrice(usd=None, why=f"no rates for {name!r}")

    def upper(self, usage: Usage, estimate: int, served: str | None = None) -> Decimal:
        """At most so many US dollars: the exact price, or else all tokens at the dearest rate there is for them."""
        price = self.price(usage, served)
        if price.usd is not None and not price.why:
            return price.usd
        tariff = self.tariffs.get(self.expected if served is None else served)
        dearest = max(item.dearest for item in self.tariffs.values()) if tariff is None else tariff.dearest
        return cost_of(estimate if usage.total is None else usage.total, dearest)


@dataclass(kw_only=True, slots=True)
class PriceSum:
    """The prices of calls, added up exactly, with how many of them were of which kind."""

    usd: Decimal = ZERO
    exact: int = 0
    lower_bound: int = 0
    void: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, price: CallPrice) -> None:
        """One more call."""
        if price.usd is not None:
            self.usd = sum_of((self.usd, price.usd))
        if price.why:
            self.reasons[price.why] += 1
        if price.usd is None:
            self.void += 1
        elif price.why:
            self.lower_bound += 1
        else:
            self.exact += 1

    def price(self, rounding: Rounding = "raw") -> Price:
        """
        The price of all of them: exact if each is, void if no cent of it can be told, else a lower bound.

        It is rounded here, once; a lower bound goes down, or it might be none any more.
        """
        calls = self.exact + self.lower_bound + self.void
        why = "; ".join(f"{reason} ({count} of {calls} calls)" for reason, count in sorted(self.reasons.items()))
        if why and not self.usd:
            return VoidPrice(reason=why)
        usd = self.usd if rounding == "raw" else to_cents(self.usd, down=bool(why))
        return LowerBoundPrice(usd=in_figures(usd), reason=why) if why else ExactPrice(usd=in_figures(usd))
