"""
Reading what a candidate wrote or gave, all of it hostile: literal values, the arguments of a call, its syntax tree.

Nothing is run. What can't be read, for whatever reason, is told apart from every value: `UNREAD`.
"""

from __future__ import annotations

import ast
import math
import warnings
from typing import Any, Final

__all__ = ["UNREAD", "Unread", "arguments", "number", "tree", "value_of"]

_UNREADABLE = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)
_MOST_CODE = 1 << 17
"""Code of more characters than a task's solution ever has is not taken apart."""


class Unread:
    """What stands for a value that can't be read."""

    def __repr__(self) -> str:
        return "UNREAD"


UNREAD: Final = Unread()


def value_of(text: str | None) -> Any:
    """The value of a literal; `frozenset(...)`, `set()` and `float('nan')` are literals here too."""
    try:
        value = UNREAD if text is None else _value(_parsed(text, "eval").body)
    except _UNREADABLE:
        return UNREAD
    return UNREAD if value is ... else value


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as word)], keywords=[]):
            return float(word) if word in {"nan", "inf", "-inf"} else UNREAD
        case ast.Call(func=ast.Name(id="set" | "frozenset" as kind), args=args, keywords=[]) if len(args) < 2:
            inner = [] if not args else ast.literal_eval(args[0])
            return set(inner) if kind == "set" else frozenset(inner)
        case _:
            return ast.literal_eval(node)


def arguments(call: str) -> tuple[Any, ...] | None:
    """
    The positional arguments of a plain call, `f(1, [2])`; None for any other expression, one with keywords, and one
    with an argument that is no literal.
    """
    try:
        node = _parsed(call, "eval").body
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
            return None
        return tuple(ast.literal_eval(argument) for argument in node.args)
    except _UNREADABLE:
        return None


def tree(code: str) -> ast.Module | None:
    """The syntax tree of a candidate, None where it has none or is far too long."""
    if len(code) > _MOST_CODE:
        return None
    try:
        parsed: ast.Module = _parsed(code, "exec")
    except _UNREADABLE:
        return None
    return parsed


def _parsed(text: str, mode: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes that Python does not know, say: they are the candidate's
        return ast.parse(text, mode=mode)


def number(value: Any) -> float | None:
    """A finite number as a float; None for anything else, a truth value included."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None
