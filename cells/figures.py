"""How figures and foreign text are written, the same wherever a person reads them."""

from __future__ import annotations

__all__ = ["UNDEFINED", "WITHHELD", "duration", "figure", "p_text", "printable", "rate_text", "whole_text"]

UNDEFINED = "undefined"
"""Printed for a figure that does not exist."""

WITHHELD = "withheld"
"""Printed for a verdict that may not be read yet, or not from this record."""


def printable(text: object) -> str:
    """
    Text on one line that can do nothing to a terminal: whatever does not print is written as its escape.

    Names, reasons and evidence come from files that others wrote.
    """
    line = " ".join(str(text).split())
    if line.isprintable():
        return line
    return "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode("ascii") for ch in line)


def figure(value: float | None, digits: int = 0) -> str:
    """A number with so many decimals and commas at the thousands, or `undefined`."""
    return UNDEFINED if value is None else f"{value:,.{digits}f}"


def whole_text(value: float | None) -> str:
    """A median of whole numbers: a decimal only where it falls between two of them."""
    return figure(value, 1).removesuffix(".0")


def rate_text(value: float | None) -> str:
    """A share from 0 to 1 with three decimals, or `undefined`."""
    return figure(value, 3)


def p_text(value: float | None, *, withheld: bool = False) -> str:
    """A p-value with four significant digits; `withheld` or `undefined` where there is none."""
    if value is None:
        return WITHHELD if withheld else UNDEFINED
    return f"{value:.4g}"


def duration(seconds: float | None) -> str:
    """Seconds as a person says them."""
    if seconds is None:
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
