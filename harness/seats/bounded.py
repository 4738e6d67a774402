"""Hostile output and arguments, cut to a size that can be shown and written down, always as valid text."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping

from harness.seats.extraction import valid_text

__all__ = ["bounded_arguments", "clipped", "shown_bytes"]

_TEXT = 2000
_ITEMS = 20
_SAFE = 2**53


def clipped(text: str, most: int = _TEXT) -> str:
    """`text` as valid Unicode, cut after `most` characters with a note of how long it is."""
    if len(text) <= most:
        return valid_text(text)
    return f"{valid_text(text[:most])}[cut: {len(text)} characters]"


def shown_bytes(data: bytes, most: int) -> tuple[str, bool]:
    """
    A program's output or a file as text of at most `most` bytes, and whether it was cut. What is no UTF-8, and NUL,
    become U+FFFD.
    """
    whole = data[:most].decode("utf-8", "replace").replace("\0", "\ufffd").encode()
    return whole[:most].decode("utf-8", "ignore"), len(data) > most or len(whole) > most


def bounded_arguments(arguments: object) -> object:
    """
    A tool's arguments as a transcript keeps them: texts cut, numbers that JSON can say exactly, and of anything nested
    or odd a short description. Takes whatever a model server let through, and never raises.
    """
    if not isinstance(arguments, Mapping):
        return None if arguments is None else _described(arguments)
    kept = list(arguments.items())[:_ITEMS]
    made = {clipped(key if isinstance(key, str) else _described(key), 100): _kept(value) for key, value in kept}
    return made if len(arguments) <= _ITEMS else {**made, "": f"[cut: {len(arguments)} arguments]"}


def _kept(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clipped(value)
    if isinstance(value, int) and abs(value) < _SAFE:
        return value
    return _described(value)


def _described(value: object) -> str:
    if isinstance(value, int):
        return f"int of {value.bit_length()} bits"
    return clipped(f"{type(value).__name__} {reprlib.repr(value)}", 200)
