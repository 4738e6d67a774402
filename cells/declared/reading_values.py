"""One value of a row as what it should be: text, a number, a count, yes or no. Nothing is guessed or rounded."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

__all__ = ["IN_REACH", "BadValue", "as_count", "as_flag", "as_number", "as_text", "in_reach", "is_zero"]

_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_COMMA = re.compile(r"[+-]?[0-9]+(?:,[0-9]+)?(?:[eE][+-]?[0-9]+)?")

LEAST, MOST = 1e-18, 1e18
IN_REACH = f"0, or a number from {LEAST:g} to {MOST:g}"
"""What a figure is: beyond, sums and ratios of figures would be infinite, and nothing that was measured is there."""


def in_reach(number: float) -> bool:
    """Whether a number can be a figure."""
    return number == 0 or LEAST <= number <= MOST


def is_zero(text: str) -> bool:
    """Whether a number's text says 0: one that is far too small is read as 0 and does not say so."""
    return not text.lower().partition("e")[0].strip("+-0.,")


class BadValue(Exception):  # noqa: N818 - it is the value that is bad, and the caller adds the place
    """A value that is not what its column is said to hold; the message says what was expected."""

    def __init__(self, value: object, expected: str) -> None:
        text = repr(value)
        super().__init__(f"{text if len(text) <= 60 else text[:57] + '...'}: expected {expected}")


def as_text(value: Any) -> str:
    """A name or word. A whole number is its digits, as a CSV file has it; other types are refused."""
    if type(value) is str:
        return value
    if type(value) is int:
        return str(value)
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float and math.isfinite(value):
        return repr(value)
    raise BadValue(value, "text")


def as_number(value: Any, decimal: str = ".") -> float:
    """A number of 0 or more that is in reach, from a number or from its text with `decimal` before the decimals."""
    number: float
    if type(value) is float or type(value) is int:
        number = value
    elif type(value) is str:
        if not (_NUMBER if decimal == "." else _COMMA).fullmatch(value):
            raise BadValue(value, f"a number such as 12{decimal}5, or nothing where it is unknown")
        number = float(value if decimal == "." else value.replace(",", "."))
        if number == 0 and not is_zero(value):
            raise BadValue(value, IN_REACH)
    elif isinstance(value, Decimal):
        number = float(value)
    else:
        raise BadValue(value, "a number, or nothing where it is unknown")
    if in_reach(number):
        return float(number) or 0.0  # a zero has no sign
    if not math.isfinite(number):
        raise BadValue(value, "a finite number, or nothing where it is unknown")
    raise BadValue(value, "0 or more" if number < 0 else IN_REACH)


def as_count(value: Any, decimal: str = ".", *, least: int = 0) -> int:
    """A whole number of `least` or more, exact; 7.0 is 7, as tables with gaps write it."""
    count: int
    if type(value) is int:
        count = value
    elif type(value) is str and value.isascii() and value.isdigit():
        count = int(value) if len(value) <= 18 else least - 1
    else:
        number = as_number(value, decimal)
        if not number.is_integer() or number > 2**53:
            raise BadValue(value, "a whole number")
        count = int(number)
    if not least <= count < 10**18:
        raise BadValue(value, f"a whole number of {least} or more")
    return count


def as_flag(value: Any, meanings: Mapping[str, bool]) -> bool:
    """Yes or no, by a table of the words for each."""
    if type(value) is bool:
        return value
    try:
        return meanings[as_text(value)]
    except KeyError:
        raise BadValue(value, f"yes or no, as one of {', '.join(map(repr, meanings))}") from None
