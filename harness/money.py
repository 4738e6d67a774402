"""
US dollars in exact decimal arithmetic: a million small calls add up to what they cost, to the last digit.

A binary float has no 0.1, so sums of prices in floats drift; here nothing is rounded but where `to_cents` is asked to.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext

__all__ = ["HIGHEST", "PLACES", "ZERO", "checked_rate", "cost_of", "dollars", "in_figures", "sum_of", "to_cents"]

ZERO = Decimal(0)

HIGHEST = 10**9
"""The highest rate there may be, in dollars per million tokens."""

PLACES = 12
"""The most decimals that a rate may have."""

# Within these bounds nothing is ever rounded: 2**53 tokens at such a rate have 37 digits, and 1e12 calls of those 49.
_EXACT = Context(prec=100)
_CENT = Decimal("0.01")


def dollars(value: float | Decimal) -> Decimal:
    """The decimal that a person wrote as `value`: 0.1 is a tenth, and not the float nearest to it."""
    return value if isinstance(value, Decimal) else Decimal(repr(value))


def checked_rate(value: float | Decimal) -> Decimal:
    """A rate as a decimal. Raises `ValueError` for one that is negative, no number, or beyond what is exact."""
    rate = dollars(value)
    if not rate.is_finite() or rate < 0 or rate > HIGHEST:
        raise ValueError(f"a rate of {value}: expected US dollars per million tokens, from 0 to {HIGHEST}")
    if -int(rate.normalize().as_tuple().exponent) > PLACES:
        raise ValueError(f"a rate of {value}: expected at most {PLACES} decimals")
    return rate


def cost_of(tokens: int, per_million: Decimal) -> Decimal:
    """What `tokens` tokens cost at so many dollars per million, exactly."""
    return _EXACT.scaleb(_EXACT.multiply(Decimal(tokens), per_million), -6)


def sum_of(amounts: Iterable[Decimal]) -> Decimal:
    """The exact sum; 0 of nothing."""
    with localcontext(_EXACT):
        return sum(amounts, ZERO)


def to_cents(amount: Decimal, *, down: bool = False) -> Decimal:
    """
    The amount in whole cents: a half goes to the even cent, as banks do. `down` cuts instead, for what must stay a
    lower bound.
    """
    return amount.quantize(_CENT, rounding=ROUND_FLOOR if down else ROUND_HALF_EVEN, context=_EXACT)


def in_figures(amount: Decimal) -> float:
    """The amount as the float that prints with the same figures, up to 15 of them."""
    return float(amount)
