"""Prices of usage by a rate card: exact, a lower bound, or void; a void has no figure, not 0.00."""

from __future__ import annotations

from dataclasses import dataclass, fields

from harness.values import ExactPrice, LowerBoundPrice, Price, Usage, VoidPrice

__all__ = ["RateTable"]

_MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class RateTable:
    """US dollars per million tokens, by the five directions of `Usage`."""

    input: float
    output: float
    cache_read: float = 0.0
    cache_write_5m: float = 0.0
    cache_write_1h: float = 0.0

    @staticmethod
    def void(reason: str = "no rate card for this model") -> Price:
        """The price where there is no rate card."""
        return VoidPrice(reason=reason)

    def _known(self, usage: Usage) -> float:
        return sum((getattr(usage, item.name) or 0) * self._rate(item.name) for item in fields(self)) / _MILLION

    def _rate(self, direction: str) -> float:
        return float(getattr(self, direction))

    def price(self, usage: Usage) -> Price:
        """The price of `usage`: exact when every direction that costs something is known, else a lower bound."""
        unknown = [item.name for item in fields(self) if getattr(usage, item.name) is None and self._rate(item.name)]
        usd = round(self._known(usage), 10)
        if not unknown:
            return ExactPrice(usd=usd)
        return LowerBoundPrice(usd=usd, reason=f"unknown tokens: {', '.join(unknown)}")

    def upper(self, usage: Usage, estimate: int) -> float:
        """At most so many US dollars: the known price, or `estimate` tokens in the dearest direction."""
        if isinstance(self.price(usage), ExactPrice):
            return self._known(usage)
        return estimate * max(self._rate(item.name) for item in fields(self)) / _MILLION
