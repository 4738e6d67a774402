"""How a seat's options are checked when it is made: at registration, and never at their first use."""

from __future__ import annotations

from collections.abc import Iterable

from harness.errors import PluginError, unknown_name
from harness.tree import clean_path

__all__ = ["file_path", "flag", "names", "seconds", "text", "whole"]


def whole(seat: str, name: str, value: object, *, low: int, high: int) -> int:
    """`value` as a whole number from `low` to `high`, or `PluginError`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise PluginError(f"seat {seat!r}: {name} is {value!r}: expected a whole number from {low} to {high}")
    return value


def seconds(seat: str, name: str, value: object, *, high: float) -> float:
    """`value` as a number of seconds over 0 and up to `high`, or `PluginError`."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= high:
        return float(value)
    raise PluginError(f"seat {seat!r}: {name} is {value!r}: expected seconds, over 0 and at most {high:g}")


def flag(seat: str, name: str, value: object) -> bool:
    """`value` as true or false, or `PluginError`."""
    if not isinstance(value, bool):
        raise PluginError(f"seat {seat!r}: {name} is {value!r}: expected true or false")
    return value


def text(seat: str, name: str, value: object) -> str:
    """`value` as text that UTF-8 can hold and that is not blank, or `PluginError`."""
    if not isinstance(value, str) or not value.strip():
        raise PluginError(f"seat {seat!r}: {name} is {value!r}: expected text that is not blank")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise PluginError(f"seat {seat!r}: {name}: character {error.start} is not encodable as UTF-8") from None
    return value


def file_path(seat: str, name: str, value: object) -> str:
    """`value` as a relative path in the workspace, in normal form, or `PluginError`."""
    try:
        return clean_path(text(seat, name, value))
    except ValueError as error:
        raise PluginError(f"seat {seat!r}: {name}: {error}: expected a file below the workspace") from None


def names(seat: str, name: str, value: object, *, known: Iterable[str]) -> tuple[str, ...]:
    """`value` as a list of different known names with at least one, in the order of `known`, or `PluginError`."""
    choices = tuple(known)
    if not isinstance(value, (list, tuple)) or not value:
        raise PluginError(f"seat {seat!r}: {name} is {value!r}: expected a list of one or more of {choices}")
    for item in value:
        if item not in choices:
            raise PluginError(f"seat {seat!r}: {name}: {unknown_name('name', str(item), choices)}")
        if value.count(item) > 1:
            raise PluginError(f"seat {seat!r}: {name} has {item!r} twice")
    return tuple(item for item in choices if item in value)
