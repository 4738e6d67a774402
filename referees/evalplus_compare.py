"""
Whether a returned value is accepted: EvalPlus 0.3.1's rules, one written table of kinds, and its known bugs mended.

Rules, one a task (`rule_for`):

==========  ============================================================================================================
equal       Python's `==` on plain values, floats within a tolerance (below)
set         both sides as sets: some MBPP+ tasks whose order or container is free
not_none    a bool must equal "the reference gave something", anything else must be there exactly when the reference is
alternative `equal`, or equal to a second reading of the same statement (Mbpp/295, Mbpp/558, Mbpp/581)
root        `HumanEval/32`: the polynomial's value at the answer is within the task's tolerance
==========  ============================================================================================================

Kinds, in `equal`:

=====================================  =================================================================================
True for 1, 1 for 1.0, -0.0 for 0.0    accepted, as Python's `==` has it
list for tuple, str for list           rejected
set for frozenset                      accepted
Counter, defaultdict, OrderedDict      read as dict
numpy scalar                           read as the number it holds
any other class (a subclass of int     rejected: not plain data, and its own `__eq__` is never asked
or list, an object, a generator)
NaN                                    accepted only where the reference gives NaN in the same place
=====================================  =================================================================================

Tolerance. Where the reference gives a float, a float within `1e-6 + 1e-7 * |expected|` is accepted. Where the task
declares a tolerance, that one stands for 1e-6 and holds for whole numbers as well, if the kind is the same. Other than
in EvalPlus, the default is decided for each float by itself: it never spreads to later tests (there, whole numbers off
by one passed after the first float), and it holds for floats inside dicts and mixed lists too (there, it did not).

Other than in EvalPlus, `HumanEval/32` counts its tests (there, it could never pass); the oracles read the judge's own
copy of the inputs (there, a candidate could empty them); and `are_equivalent`, which accepts whatever is returned
there, is `equal` here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

__all__ = ["DEFAULT_ATOL", "RTOL", "Rule", "accepts", "rule_for"]

Rule: TypeAlias = Literal["equal", "set", "not_none", "alternative", "root"]

DEFAULT_ATOL = 1e-6
RTOL = 1e-7

_SET_NAMES = frozenset(
    {
        "similar_elements",
        "find_char_long",
        "common_in_nested_lists",
        "extract_singly",
        "larg_nnum",
        "intersection_array",
        "find_dissimilar",
        "Diff",
    }
)
_NOT_NONE_NAMES = frozenset({"check_str", "text_match_three", "text_starta_endb"})


def _perpendicular_surface(base_edge: float, height: float) -> int:
    """Mbpp/581 with `height` measured from the base to the apex."""
    slant = math.sqrt((base_edge / 2) ** 2 + height**2)
    return round(base_edge**2 + 2 * base_edge * slant)


def _padded_digit_distance(left: int, right: int) -> int:
    """Mbpp/558 with the shorter number padded by zeros, digit by digit."""
    width = max(len(str(left)), len(str(right)))
    pairs = zip(str(left).zfill(width), str(right).zfill(width), strict=True)
    return sum(abs(int(a) - int(b)) for a, b in pairs)


_ALTERNATIVES: Mapping[str, Callable[..., Any]] = {
    "sum_div": lambda *_: 0,
    "surface_Area": _perpendicular_surface,
    "digit_distance_nums": _padded_digit_distance,
}


def rule_for(task_id: str, entry_point: str) -> Rule:
    """
    The rule of a task. Names have a meaning only within the two data sets: a task of your own that happens to be called
    `Diff` is compared by `equal`.
    """
    if task_id == "HumanEval/32":
        return "root"
    if task_id.startswith("Mbpp/"):
        if entry_point in _SET_NAMES:
            return "set"
        if entry_point in _NOT_NONE_NAMES:
            return "not_none"
        if entry_point in _ALTERNATIVES:
            return "alternative"
    return "equal"


def accepts(rule: Rule, entry_point: str, args: Sequence[Any], expected: Any, got: Any, *, atol: float) -> bool:
    """
    Whether `got`, read by `parse`, is accepted. `args` are the judge's own copy; for `not_none`, `expected` is a bool.

    Never raises for any value that `parse` can make.
    """
    try:
        match rule:
            case "equal":
                return _equal(expected, got, atol)
            case "set":
                return bool(set(expected) == set(got))
            case "not_none":
                return bool(got == expected) if isinstance(got, bool) else expected == (got is not None)
            case "alternative":
                return _equal(expected, got, atol) or bool(got == _ALTERNATIVES[entry_point](*args))
            case "root":
                return _is_number(got) and abs(_polynomial(args[0], got)) <= atol
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False


def _polynomial(coefficients: Sequence[float], x: float) -> float:
    return sum(coefficient * math.pow(x, power) for power, coefficient in enumerate(coefficients))


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _equal(expected: Any, got: Any, atol: float) -> bool:
    if isinstance(expected, list | tuple):
        return (
            type(got) is type(expected)
            and len(got) == len(expected)
            and all(_equal(left, right, atol) for left, right in zip(expected, got, strict=True))
        )
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and len(got) == len(expected)
            and all(key in got and _equal(value, got[key], atol) for key, value in expected.items())
        )
    return bool(expected == got) or _near(expected, got, atol)


def _near(expected: Any, got: Any, atol: float) -> bool:
    """The tolerance, between two leaves that are not equal."""
    if type(got) is not type(expected) or not (type(expected) is float or (atol and _is_number(expected))):
        return False
    if math.isnan(expected):
        return math.isnan(got)
    if math.isinf(expected) or math.isinf(got):
        return False
    return bool(abs(got - expected) <= (atol or DEFAULT_ATOL) + RTOL * abs(expected))
