"""
Solutions of other tasks and what became of them: what a decoy runs its controller on.

Each is of a made-up task, and as long as it is asked to be, so that a line of any length can be had of it. None of it
has to do with the task at hand, which is the point: a decoy looks like a finding and is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from arms.controllers.port import Seen
from harness.views import Fact

__all__ = ["FOREIGN", "SIZES", "foreign"]

SIZES = (0, 1, 2, 3, 4, 6, 9, 12, 16, 22, 30, 42, 58, 76, 100, 130, 165)
"""How many members the made-up arguments have."""

_NUMBERS = (17, 4, -9, 23, 4, 0, 58, 31, -6, 42)
_CODE: Mapping[str, str] = {
    "stow": "def stow(crates):\n    top = crates[0]\n    return top // len(crates) if crates else range(top)\n",
    "mow": "def mow(strips):\n    for at in range(len(strips) - 1):\n        yield strips[at] - strips[at + 1]\n",
    "knit": "def knit(wools):\n    kinds = set(wools)\n    return sum(sorted(kinds)) % 7\n",
    "sail": "def sail(buoys):\n    n = 0\n    while n < max(buoys):\n        n += 1\n    return 'port' * n\n",
}
FOREIGN: Mapping[str, str] = {f"foreign {name}": code for name, code in _CODE.items()}
"""The code of each made-up solution by name, as an arm pins it."""


def _taken(size: int) -> list[int]:
    return [_NUMBERS[at % len(_NUMBERS)] for at in range(size)]


_FACTS: Mapping[str, Callable[[list[int]], Iterator[Fact]]] = {
    "stow": lambda given: iter(
        [
            Fact(call=f"stow({given})", expected=str(len(given)), raised="IndexError: list index out of range"),
            Fact(call=f"stow({given})", expected=str(len(given)), observed=str(len(given) - 71)),
            Fact(call=f"stow({given})", expected=str(len(given)), observed="None"),
        ]
    ),
    "mow": lambda given: iter(
        [
            Fact(call=f"mow({given})", expected=str(sorted(given)), observed=str([*given, 5])),
            Fact(call=f"mow({given})", expected=str(sorted(given)), observed="'rows'"),
            Fact(call=f"mow({given})", expected="[]", observed=str(given or [3])),
        ]
    ),
    "knit": lambda given: iter(
        [
            Fact(call=f"knit({given})", expected="12", observed="12.25"),
            Fact(call=f"knit({[*given, 0.5, 0.5]})", expected="6", observed="-3"),
            Fact(call=f"knit({given})", expected="True", observed="'plain'"),
        ]
    ),
    "sail": lambda given: iter(
        [
            Fact(call=f"sail({given})", expected="'lee'", observed="'lea'"),
            Fact(call=f"sail({given})", expected="'lee'", ended="TIMEOUT"),
            Fact(call=f"sail({given})", expected="'luff'", observed="''"),
            Fact(call=f"sail({[-4, *given]})", expected="'lee'", raised="ValueError: max() arg is an empty sequence"),
        ]
    ),
}


_UNBUILT = (
    "KeyError: 'hull'",
    "EOFError: lee",
    "IndentationError: unindent does not match any outer indentation level (solution.py, line 41)",
    "ModuleNotFoundError: No module named 'crates'",
    "SyntaxError: '[' was never closed (solution.py, line 37)",
    "TypeError: unsupported operand type(s) for @: 'int' and 'float'",
    "RecursionError: maximum recursion depth exceeded while calling a Python object, as " + "wools, " * 8 + "strips",
    "RecursionError: maximum recursion depth exceeded while calling a Python object, as " + "wools, " * 20 + "strips",
)
"""What keeps other solutions from being run at all."""


def foreign() -> Iterator[Seen]:
    """Every made-up solution in every size, with one violated assertion at a time; then those that can't be run."""
    for name, facts in _FACTS.items():
        for size in SIZES:
            for fact in facts(_taken(size)):
                yield Seen(code=_CODE[name], facts=(fact,), passed=1, total=3)
    for raised in _UNBUILT:
        yield Seen(code="", facts=(), passed=0, total=3, unbuilt=raised)
