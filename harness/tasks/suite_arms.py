"""Dead arms of a suite: declared tests, and assertions in them, that no mutant and no degenerate candidate trips."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.tasks.characterise import Characterised
from harness.tree import Tree

__all__ = ["DeadArms", "dead_arms"]

_QUIET = {"PASS", "NOT_RUN"}


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadArms:
    """
    `tests` are tripped by nothing at all, `by_no_mutant` by the degenerate battery alone. `assertions` were never the
    first to be violated in their test, as `FILE:LINE text`. Each is None where the referee does not tell.
    """

    tests: tuple[str, ...] | None
    by_no_mutant: tuple[str, ...] | None
    assertions: tuple[str, ...] | None


def dead_arms(rows: Sequence[Characterised], suite: Tree) -> DeadArms:
    """What the rows of a characterisation leave untouched. Assertions are looked for in the Python files of `suite`."""
    declared = [test.id for row in rows if row.kind == "reference" for test in row.tests]
    if not declared:
        return DeadArms(tests=None, by_no_mutant=None, assertions=None)
    tripped = _tripped(row for row in rows if row.kind != "reference")
    by_mutants = _tripped(row for row in rows if row.kind in {"mutant", "generated"})
    dead = tuple(test for test in declared if test not in tripped)
    return DeadArms(
        tests=dead,
        by_no_mutant=tuple(test for test in declared if test in tripped and test not in by_mutants),
        assertions=_dead_assertions(rows, suite),
    )


def _tripped(rows: Iterator[Characterised]) -> set[str]:
    return {test.id for row in rows for test in row.tests if test.reading not in _QUIET}


def _dead_assertions(rows: Sequence[Characterised], suite: Tree) -> tuple[str, ...] | None:
    """None where no reading tells a violated line of the suite."""
    details = [
        (test.id.partition("::")[0], test.detail)
        for row in rows
        if row.kind != "reference"
        for test in row.tests
        if test.reading not in _QUIET and test.detail
    ]
    dead, lived = [], False
    for path in suite:
        for line, text in sorted(_assertions(suite, path)):
            if any(file == path and text in detail for file, detail in details):
                lived = True
            else:
                dead.append(f"{path}:{line} {text}")
    return tuple(dead) if lived else None


def _assertions(suite: Tree, path: str) -> Iterator[tuple[int, str]]:
    """Line and first line of text of each `assert`, and of each `with ...raises(...)`, in a Python file."""
    try:
        module = ast.parse(suite[path]) if path.endswith(".py") else None
    except (SyntaxError, ValueError):
        module = None
    lines = suite.text(path).splitlines()
    for node in ast.walk(module) if module else ():
        raises = isinstance(node, ast.With) and any("raises(" in ast.unparse(item) for item in node.items)
        if isinstance(node, ast.Assert) or raises:
            assert isinstance(node, ast.stmt)
            yield node.lineno, lines[node.lineno - 1].strip()
