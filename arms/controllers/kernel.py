"""
The constraint kernel: the fewest constraints that every expected value meets and that tell each wrong one apart.

A constraint is a property of a value and the arguments that it was given for. One is usable where every expected value
that it can be asked of has it, and something that came instead has not. Of the usable ones the kernel is the smallest
set that tells apart as much as all of them do; of several such sets it is the first in the declared order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from types import MappingProxyType
from typing import Any, TypeAlias

from arms.controllers.port import Seen
from arms.controllers.reading import UNREAD, arguments, number, value_of
from harness.mirror import MOST_FACTS
from harness.views import Fact

__all__ = ["CONSTRAINTS", "ConstraintKernel"]

Property: TypeAlias = "Callable[[Any, tuple[Any, ...]], bool | None]"
"""Whether a value has it, given the arguments; None where it can't be asked of them."""

_SEQUENCES = (str, list, tuple)
_SIZED = (str, bytes, list, tuple, set, frozenset, dict)


def _first(args: tuple[Any, ...], kinds: tuple[type, ...]) -> Any:
    return args[0] if args and isinstance(args[0], kinds) else None


def _of_type(*kinds: type) -> Property:
    return lambda value, _args: type(value) in kinds


def _bound(low: float) -> Property:
    def held(value: Any, _args: tuple[Any, ...]) -> bool | None:
        found = number(value)
        return None if found is None else found >= low

    return held


def _whole(value: Any, _args: tuple[Any, ...]) -> bool | None:
    found = number(value)
    return None if found is None else found == int(found)


def _filled(value: Any, _args: tuple[Any, ...]) -> bool | None:
    return bool(value) if isinstance(value, _SIZED) else None


def _as_long(value: Any, args: tuple[Any, ...]) -> bool | None:
    given = _first(args, _SIZED)
    return None if given is None or not isinstance(value, _SIZED) else len(value) == len(given)


def _no_longer(value: Any, args: tuple[Any, ...]) -> bool | None:
    given = _first(args, _SIZED)
    return None if given is None or not isinstance(value, _SIZED) else len(value) <= len(given)


def _members_of(value: Any, args: tuple[Any, ...]) -> bool | None:
    given = _first(args, _SEQUENCES)
    return None if given is None or not isinstance(value, _SEQUENCES) else all(item in list(given) for item in value)


def _member_of(value: Any, args: tuple[Any, ...]) -> bool | None:
    given = _first(args, (list, tuple))
    return None if not given or isinstance(value, (list, tuple)) else value in given


def _rising(value: Any, _args: tuple[Any, ...]) -> bool | None:
    return _ordered(value, lambda left, right: left <= right)


def _falling(value: Any, _args: tuple[Any, ...]) -> bool | None:
    return _ordered(value, lambda left, right: left >= right)


def _ordered(value: Any, pair: Callable[[Any, Any], bool]) -> bool | None:
    if not isinstance(value, (list, tuple)):
        return None
    try:
        return all(bool(pair(left, right)) for left, right in pairwise(value))
    except TypeError:
        return None


def _unlike(value: Any, _args: tuple[Any, ...]) -> bool | None:
    if not isinstance(value, (list, tuple)):
        return None
    return all(item not in value[:index] for index, item in enumerate(value))


def _up_to(value: Any, args: tuple[Any, ...]) -> bool | None:
    return _against(value, args, lambda found, given: found <= max(given))


def _from(value: Any, args: tuple[Any, ...]) -> bool | None:
    return _against(value, args, lambda found, given: found >= min(given))


def _against(value: Any, args: tuple[Any, ...], held: Callable[[float, list[float]], bool]) -> bool | None:
    given = args[0] if args and isinstance(args[0], (list, tuple)) else args[:1]
    numbers = [found for item in given if (found := number(item)) is not None]
    found = number(value)
    return None if found is None or not numbers or len(numbers) != len(given) else held(found, numbers)


CONSTRAINTS: Mapping[str, tuple[str, Property]] = MappingProxyType(
    {
        "truth value": ("the result must be True or False", _of_type(bool)),
        "whole number": ("the result must be a whole number of type int", _of_type(int)),
        "number": ("the result must be a number", _of_type(int, float)),
        "text": ("the result must be of type str", _of_type(str)),
        "list": ("the result must be of type list", _of_type(list)),
        "tuple": ("the result must be of type tuple", _of_type(tuple)),
        "set": ("the result must be of type set", _of_type(set, frozenset)),
        "dict": ("the result must be of type dict", _of_type(dict)),
        "something": ("the result must not be None", lambda value, _args: value is not None),
        "as long": ("the result must be as long as the first argument", _as_long),
        "no longer": ("the result must not be longer than the first argument", _no_longer),
        "filled": ("the result must not be empty", _filled),
        "members": ("the result must have no member that the first argument lacks", _members_of),
        "member": ("the result must be a member of the first argument", _member_of),
        "rising": ("the result must be in rising order", _rising),
        "falling": ("the result must be in falling order", _falling),
        "unlike": ("the result must have no member twice", _unlike),
        "not negative": ("the result must not be negative", _bound(0)),
        "positive": ("the result must be at least 1", _bound(1)),
        "integral": ("the result must have no fraction", _whole),
        "at most": ("the result must not be over the largest number of the first argument", _up_to),
        "at least": ("the result must not be under the smallest number of the first argument", _from),
    }
)
"""Every constraint in its declared order: how it is worded, and the property."""

TEMPLATES: Mapping[str, str] = MappingProxyType(
    {
        **{name: words for name, (words, _held) in CONSTRAINTS.items()},
        "raised": "the call must come back with a result",
        "line": "- {constraint}, as with {expected} for {call}; there it gave {observed}",
        "raised line": "- {constraint}, as with {expected} for {call}; there it gave none",
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Case:
    fact: Fact
    args: tuple[Any, ...]
    expected: Any
    observed: Any

    @property
    def lost(self) -> bool:
        """Whether there was no value at all."""
        return self.fact.raised is not None or self.fact.ended is not None


class ConstraintKernel:
    """The kernel's constraints, each with the first assertion that it tells apart. It fires where there is one."""

    name = "constraint-kernel"
    lacks: str | None = None
    claims = frozenset(words for words, _held in CONSTRAINTS.values())

    def __init__(self) -> None:
        self.templates = TEMPLATES
        self.settings: Mapping[str, Any] = {}

    def lines(self, given: Seen) -> Sequence[str] | None:
        """A line for each constraint of the kernel, at most six; None without one."""
        cases = [_case(fact) for fact in given.facts]
        excluded = {name: told for name in CONSTRAINTS if (told := _excluded(CONSTRAINTS[name][1], cases))}
        lost = frozenset(at for at, case in enumerate(cases) if case.lost)
        excluded |= {"raised": lost} if lost else {}
        return [_line(name, cases[min(excluded[name])]) for name in _kernel(excluded)[:MOST_FACTS]] or None


def _case(fact: Fact) -> _Case:
    args = arguments(fact.call)
    return _Case(fact=fact, args=args or (), expected=value_of(fact.expected), observed=value_of(fact.observed))


def _excluded(held: Property, cases: Sequence[_Case]) -> frozenset[int]:
    """The cases whose observed value lacks what every expected value has; empty where some expected value lacks it."""
    wanted = [_asked(held, case.expected, case) for case in cases]
    if False in wanted or True not in wanted:
        return frozenset()
    return frozenset(at for at, case in enumerate(cases) if wanted[at] and _asked(held, case.observed, case) is False)


def _asked(held: Property, value: Any, case: _Case) -> bool | None:
    return None if value is UNREAD else held(value, case.args)


def _kernel(excluded: Mapping[str, frozenset[int]]) -> list[str]:
    """The first smallest set that covers what all cover together; at most six cases, so at most six constraints."""
    everything = frozenset[int]().union(*excluded.values())
    for size in range(1, len(everything) + 1):
        for names in combinations(excluded, size):
            if frozenset[int]().union(*(excluded[name] for name in names)) == everything:
                return list(names)
    return []


def _line(name: str, case: _Case) -> str:
    fact = case.fact
    template = TEMPLATES["raised line" if case.lost else "line"]
    return template.format(constraint=TEMPLATES[name], call=fact.call, expected=fact.expected, observed=fact.observed)
