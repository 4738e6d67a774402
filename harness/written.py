"""
TOML and JSON that somebody wrote: text of it that can't be used is one error, whatever the parser makes of it.

Python's parsers stop at brackets nested deep with `RecursionError`, and at a number of thousands of digits with a
message about Python. Neither is a fault of Proctor, so neither may end a command with a traceback.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from typing import Any

__all__ = ["json_of", "toml_of"]

DEEPEST = 100
"""Tables and lists inside each other; what people write is nested in fewer than ten."""

_DEEP = f"it is nested too deeply: expected at most {DEEPEST} tables and lists inside each other"
_DIGITS = "a whole number has too many digits"


def toml_of(text: str, *, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The tables of a TOML text. Raises `tomllib.TOMLDecodeError` for whatever can't be used."""
    if text.startswith("\ufeff"):
        raise tomllib.TOMLDecodeError("it begins with a byte order mark: save it as UTF-8 without one")
    try:
        found = tomllib.loads(text, parse_float=parse_float)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError(_DEEP) from None
    except ValueError:
        raise tomllib.TOMLDecodeError(_DIGITS) from None
    if _is_deep(found):
        raise tomllib.TOMLDecodeError(_DEEP)
    return found


def json_of(text: str | bytes) -> Any:
    """The value of a JSON text, each key of an object once. Raises `ValueError` for whatever can't be used."""
    try:
        found = json.loads(text, object_pairs_hook=_once)
    except (json.JSONDecodeError, UnicodeDecodeError, _TwiceError):
        raise
    except RecursionError:
        raise ValueError(_DEEP) from None
    except ValueError:
        raise ValueError(_DIGITS) from None
    if _is_deep(found):
        raise ValueError(_DEEP)
    return found


class _TwiceError(ValueError):
    """A key that an object has twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _TwiceError(f"the key {key!r} is there more than once")
        found[key] = value
    return found


def _is_deep(value: Any) -> bool:
    """Whether something is nested deeper than `DEEPEST`, found level by level and so without recursion."""
    level = [value]
    for _depth in range(DEEPEST + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True
