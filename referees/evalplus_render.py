"""
Violated public assertions as literal text: the call, and the value that was expected. Never elided; a fact that is too
long is dropped whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from harness.views import Fact
from referees.evalplus_compare import Rule

__all__ = ["FACT_CHARS", "RENDERER", "literal", "observed", "render"]

RENDERER = 3
"""The renderer's version, part of a suite's digest: a seat's next round depends on its every character."""

FACT_CHARS = 600
"""How long a fact may be, call and value together."""


def literal(value: Any) -> str:
    """`value` as a Python expression that gives it again; sets are sorted by their members' text."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value!r}')"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, tuple):
        return f"({literal(value[0])},)" if len(value) == 1 else f"({', '.join(map(literal, value))})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(key)}: {literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, frozenset):
        return f"frozenset({literal(set(value))})" if value else "frozenset()"
    if isinstance(value, set):
        return "{" + ", ".join(sorted(map(literal, value))) + "}" if value else "set()"
    return repr(value)


def render(
    rule: Rule, entry_point: str, args: Sequence[Any], expected: Any, *, atol: float, limit: int = FACT_CHARS
) -> Fact | None:
    """
    The fact that a candidate violated, or None when it is longer than `limit` characters or can't be written.

    What is free by the task's rule is said in the call: `set(f(x))`, `f(x) is not None`, `(abs(f(x) - 1.5) <= 0.0001)`.
    So `call == value` is always the assertion.
    """
    try:
        call = f"{entry_point}({', '.join(map(literal, args))})"
        value = literal(expected)
        if rule == "set":
            call, value = f"set({call})", literal(set(expected))
        elif rule == "not_none":
            call, value = f"({call} is not None)", literal(bool(expected))
        elif rule == "root":
            coefficient_list = literal(args[0])
            call = f"(abs(sum(c * {call} ** i for i, c in enumerate({coefficient_list}))) <= {atol!r})"
            value = "True"
        elif atol and type(expected) in (int, float):
            call, value = f"(abs({call} - {value}) <= {atol!r})", "True"
    except (ValueError, TypeError):  # an integer of too many digits, or a set of what has no hash
        return None
    return Fact(call=call, expected=value) if len(call) + len(value) <= limit else None


def observed(rule: Rule, value: Any, expected: Any, *, atol: float, limit: int = FACT_CHARS) -> str | None:
    """
    What the call of a violated fact gave, as `render` writes that call: the value itself, its set, or False where the
    call is a comparison. None when it is longer than `limit` characters or can't be written, and under the rule
    `not_none`, whose call doesn't say all of what was asked.
    """
    if rule == "not_none":
        return None
    try:
        if rule == "set":
            value = set(value)
        elif rule == "root" or (atol and type(expected) in (int, float)):
            value = False
        text = literal(value)
    except (ValueError, TypeError, RecursionError):
        return None
    return text if len(text) <= limit else None
