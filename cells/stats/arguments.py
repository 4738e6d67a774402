"""Checks of arguments: a figure that could only give nonsense is refused, showing it and what was expected."""

from __future__ import annotations

import math
from numbers import Real
from operator import index
from typing import Any, Literal, TypeAlias, get_args

__all__ = ["Alternative", "count", "direction", "inside_unit", "positive", "probability"]

Alternative: TypeAlias = Literal["greater", "less", "two-sided"]
"""The direction of a test: `greater` and `less` are one-sided."""


def count(label: str, value: Any, *, least: int = 0) -> int:
    """`value` as a whole number of at least `least`; floats, booleans, tables and anything else are refused."""
    expected = f"expected a whole number of {least} or more"
    if isinstance(value, bool):
        raise ValueError(f"{label} is {value!r}: {expected}, not a truth value")  # noqa: TRY004 - one type for all
    try:
        number = index(value)
    except TypeError:
        raise ValueError(f"{label} is {value!r}: {expected}") from None
    if number < least:
        raise ValueError(f"{label} is {number}: {expected}")
    return number


def direction(value: Any) -> Alternative:
    """`value` as an alternative."""
    if value not in get_args(Alternative):
        raise ValueError(f"alternative is {value!r}: expected one of {', '.join(get_args(Alternative))}")
    known: Alternative = value
    return known


def _real(label: str, value: Any, expected: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{label} is {value!r}: {expected}")
    return float(value)


def positive(label: str, value: Any) -> float:
    """`value` as a finite number above 0."""
    expected = "expected a finite number above 0"
    number = _real(label, value, expected)
    if number <= 0:
        raise ValueError(f"{label} is {number!r}: {expected}")
    return number


def probability(label: str, value: Any) -> float:
    """`value` as a number from 0 to 1, both included."""
    expected = "expected a number from 0 to 1"
    number = _real(label, value, expected)
    if not 0 <= number <= 1:
        raise ValueError(f"{label} is {number!r}: {expected}")
    return number


def inside_unit(label: str, value: Any) -> float:
    """`value` as a number between 0 and 1, both excluded."""
    expected = "expected a number between 0 and 1, both excluded"
    number = _real(label, value, expected)
    if not 0 < number < 1:
        raise ValueError(f"{label} is {number!r}: {expected}")
    return number
