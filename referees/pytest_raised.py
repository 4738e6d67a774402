"""
What stands in the withheld suite for an exception of the subject's. Its arguments are the subject's, and may be
anything: some built-in classes believe what they are told, as that a byte of theirs is a terabyte away, and end the
process that asks for their text. This file runs inside workspaces, so it uses the standard library only.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any

__all__ = ["made_from"]

PARTS = 1000
"""The most exceptions that a group is made of."""

_GROUPS: tuple[type[BaseException], ...] = tuple(
    found
    for name in ("BaseExceptionGroup",)
    if (found := getattr(builtins, name, None)) is not None  # since 3.11
)
_ENCODED: Mapping[type[UnicodeError], tuple[type, ...]] = {
    UnicodeDecodeError: (str, bytes, int, int, str),
    UnicodeEncodeError: (str, str, int, int, str),
    UnicodeTranslateError: (str, int, int, str),
}


def made_from(kind: type[Exception], args: tuple[Any, ...], *, own: bool) -> BaseException:
    """
    An exception of the class `kind`, made from `args` where they are such as that class may be given, and from none
    where not. One of the subject's `own` classes is not initialised: its text is told beside it.
    """
    if issubclass(kind, _GROUPS):
        return _group(kind, args)
    if issubclass(kind, tuple(_ENCODED)) and not _within(kind, args):
        return kind.__new__(kind)
    try:
        return kind.__new__(kind, *args) if own else kind(*args)
    except Exception:  # noqa: BLE001 - a built-in class that wants other arguments
        return kind.__new__(kind)


def _group(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """A group of as many exceptions; what they are stays with the subject."""
    message = args[0] if args and type(args[0]) is str else ""
    count = len(args[1]) if len(args) > 1 and type(args[1]) in (list, tuple) else 1
    return kind.__new__(kind, message, [Exception() for _ in range(max(1, min(count, PARTS)))])


def _within(kind: type[Exception], args: tuple[Any, ...]) -> bool:
    """Whether these are arguments of a Unicode error whose place is inside its text."""
    types = next(types for known, types in _ENCODED.items() if issubclass(kind, known))
    if tuple(map(type, args)) != types:
        return False
    text, start, end = args[-4:-1]
    return bool(0 <= start <= end <= len(text))
