"""
JSON that says one thing to every reader: UTF-8, each key once, finite numbers of a sane length, bounded depth.

What one parser takes for a repeated key's first value another takes for its last: such a body is refused, not repaired.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from harness.gateway.asking import Refusal

__all__ = ["DEPTH", "DIGITS", "KEYS", "strict_json"]

DEPTH = 64
"""How deep objects and lists may be nested."""

KEYS = 4096
"""The most keys of one object."""

DIGITS = 40
"""The longest number, in characters."""

_STRUCTURE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)
"""Texts and brackets. A text without its end is taken to the end of the body, so that none is looked at twice."""


def strict_json(body: bytes) -> dict[str, Any]:
    """The object that `body` says. Raises `Refusal` for anything that could be read in two ways, or costs too much."""
    _check_depth(body)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal(400, "the body is not UTF-8") from None
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_int=_whole, parse_float=_finite, parse_constant=_constant
        )
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"the body is not JSON: {type(error).__name__}: {error}") from None
    if not isinstance(value, dict):
        raise Refusal(400, f"the body is a {type(value).__name__}: expected a JSON object")
    return value


def _check_depth(body: bytes) -> None:
    """Counted before anything is built: a parser may recurse for each level."""
    depth = 0
    for match in _STRUCTURE.finditer(body):
        mark = match[0]
        if mark in b"[{":
            depth += 1
            if depth > DEPTH:
                raise Refusal(400, f"the body is nested deeper than {DEPTH} levels")
        elif mark in b"]}":
            depth -= 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > KEYS:
        raise Refusal(400, f"an object has {len(pairs)} keys: expected {KEYS} at most")
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise Refusal(400, f"the key {key!r:.100} stands twice in one object")
        _check_text(key)
        if isinstance(value, str):
            _check_text(value)
        elif isinstance(value, list):
            _check_texts(value)
        made[key] = value
    return made


def _check_texts(items: list[Any]) -> None:
    """The texts of a list, and of lists in it; objects in it were checked when they were made."""
    for item in items:
        if isinstance(item, str):
            _check_text(item)
        elif isinstance(item, list):
            _check_texts(item)


def _check_text(text: str) -> None:
    """An escape may say half a character, which no UTF-8 can hold and no model server takes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal(400, "a text holds half of a surrogate pair, which is no character") from None


def _whole(digits: str) -> int:
    if len(digits) > DIGITS:
        raise Refusal(400, f"a number has {len(digits)} digits: expected {DIGITS} at most")
    return int(digits)


def _finite(digits: str) -> float:
    if len(digits) > DIGITS:
        raise Refusal(400, f"a number has {len(digits)} characters: expected {DIGITS} at most")
    value = float(digits)
    if not math.isfinite(value):
        raise Refusal(400, f"the number {digits} is beyond what a float holds")
    return value


def _constant(name: str) -> Any:
    raise Refusal(400, f"{name} is no JSON number")
