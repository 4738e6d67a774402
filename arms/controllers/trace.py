"""
The outcome trace: each violated public assertion, what was expected and what came instead, the worst first.

How bad an outcome is says its kind alone, by registered weights; of one kind, what is further off comes first, and
after that the order of the public tests decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from arms.controllers.options import weights as checked_weights
from arms.controllers.port import Seen
from arms.controllers.reading import UNREAD, number, value_of
from harness.mirror import MOST_FACTS
from harness.views import Fact

__all__ = ["WEIGHTS", "Outcome", "OutcomeTrace", "outcome"]

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"exception": 8, "ended": 7, "type": 6, "length": 5, "far": 4, "members": 3, "near": 2, "other": 1}
)
"""
How bad an outcome of each kind is: an exception, of a call or of the solution as a whole; a call that was ended; a
value of another type; of another length; a number off by at least as much as the expected one is (or by 1); other
members; a number that is nearer; anything else. A weight of 0 leaves a kind out.
"""

TEMPLATES: Mapping[str, str] = MappingProxyType(
    {
        "unbuilt": "- the solution does not run: it raises {name} with the text {text}",
        "exception": "- {call} raised {name} with the text {text}; expected {expected}",
        "ended": "- {call} was ended, {why}; expected {expected}",
        "type": "- {call} gave {observed}, which is {got}; expected {expected}, which is {wanted}",
        "length": "- {call} gave {observed}, of length {got}; expected {expected}, of length {wanted}",
        "far": "- {call} gave {observed}; expected {expected}; it is off by {delta}",
        "members": "- {call} gave {observed}; expected {expected}; the first that differs has index {index}",
        "unordered": "- {call} gave {observed}; expected {expected}; {count} members differ",
        "near": "- {call} gave {observed}; expected {expected}; it is off by {delta}",
        "other": "- {call} gave {observed}; expected {expected}",
        "TIMEOUT": "out of time",
        "MEMORY": "out of memory",
        "CRASH": "by a crash",
        "nameless": "an exception",
        **{
            f"type {name}": f"of type {name}"
            for name in ("bool", "int", "float", "complex", "str", "bytes", "NoneType")
        },
        **{f"type {name}": f"of type {name}" for name in ("list", "tuple", "set", "frozenset", "dict")},
    }
)
_NAME = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
_SIZED = (str, bytes, list, tuple, set, frozenset, dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of one violated assertion: its kind, how far off it is within that, and its line."""

    kind: str
    far: float
    line: str


class OutcomeTrace:
    """
    The outcomes of all violated assertions whose weight is over 0, the heaviest first. It fires where there is one.

    `weights` is a table of some of the kinds in `WEIGHTS`. Raises `PluginError` for another kind or no finite number.
    """

    name = "outcome-trace"
    lacks: str | None = None
    claims: frozenset[str] = frozenset()

    def __init__(self, weights: object = None) -> None:
        self._weights = checked_weights(self.name, "weights", {} if weights is None else weights, known=WEIGHTS)
        self.templates = TEMPLATES
        self.settings: Mapping[str, Any] = {"weights": self._weights}

    def lines(self, given: Seen) -> Sequence[str] | None:
        """The lines of at most six outcomes; None without one."""
        told = [*_whole(given), *(one for fact in given.facts if (one := outcome(fact)) is not None)]
        found = [one for one in told if self._weights[one.kind] > 0]
        ranked = sorted(found, key=lambda one: (-self._weights[one.kind], -one.far))
        return [one.line for one in ranked[:MOST_FACTS]] or None


def outcome(fact: Fact) -> Outcome | None:
    """What a fact says of what came instead; None where it says nothing of it."""
    words = {"call": fact.call, "expected": fact.expected}
    if fact.raised is not None:
        return _told("exception", 0.0, **words, **_exception(fact.raised))
    if fact.ended is not None:
        return _told("ended", 0.0, **words, why=TEMPLATES.get(fact.ended, TEMPLATES["CRASH"]))
    if fact.observed is None:
        return None
    return _compared(words | {"observed": fact.observed}, value_of(fact.expected), value_of(fact.observed))


def _whole(given: Seen) -> list[Outcome]:
    """The exception of a solution that can't be run at all."""
    return [] if given.unbuilt is None else [_told("exception", 0.0, "unbuilt", **_exception(given.unbuilt))]


def _exception(raised: str) -> dict[str, str]:
    """Its class, where that is a name, and its text as a literal."""
    head, _colon, text = raised.partition(": ")
    return {"name": head if _NAME.fullmatch(head) else TEMPLATES["nameless"], "text": repr(text)}


def _told(kind: str, far: float, template: str | None = None, **words: Any) -> Outcome:
    return Outcome(kind=kind, far=far, line=TEMPLATES[template or kind].format(**words))


def _compared(words: dict[str, str], expected: Any, observed: Any) -> Outcome:
    """Two values that differ, by the first way in which they do."""
    if expected is UNREAD or observed is UNREAD:
        return _told("other", 0.0, **words)
    numbers = number(expected), number(observed)
    if numbers[0] is not None and numbers[1] is not None:
        return _numbers(words, numbers[0], numbers[1], observed - expected)
    if type(expected) is not type(observed):
        got, wanted = (TEMPLATES[f"type {type(value).__name__}"] for value in (observed, expected))
        return _told("type", 0.0, **words, got=got, wanted=wanted)
    if not isinstance(expected, _SIZED):
        return _told("other", 0.0, **words)
    sizes = len(expected), len(observed)
    if sizes[0] != sizes[1]:
        return _told("length", abs(sizes[1] - sizes[0]), **words, got=sizes[1], wanted=sizes[0])
    return _members(words, expected, observed)


def _numbers(words: dict[str, str], expected: float, observed: float, delta: Any) -> Outcome:
    off = abs(observed - expected)
    kind = "far" if off >= max(1.0, abs(expected)) else "near"
    return _told(kind, off / max(1.0, abs(expected)), **words, delta=repr(delta))


def _members(words: dict[str, str], expected: Any, observed: Any) -> Outcome:
    """Two containers of one type and length: where they first differ, or how many members do."""
    if isinstance(expected, (str, bytes, list, tuple)):
        differing = [index for index, pair in enumerate(zip(expected, observed, strict=True)) if pair[0] != pair[1]]
        index = differing[0] if differing else 0
        return _told("members", len(differing), **words, index=index)
    if isinstance(expected, dict):
        count = sum(key not in observed or observed[key] != item for key, item in expected.items())
    else:
        count = len(expected - observed)
    return _told("members", count, "unordered", **words, count=count)
