"""
Mutants that nobody wrote: one operator of the package cosmic-ray at one place of the reference each.

Nothing is run, and no test of theirs is used: the package lists where its operators apply and gives the changed text.
Needs the extra `mutants`.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from harness.errors import TaskError
from harness.tree import File, Tree

__all__ = ["MOST", "Generated", "generated_mutants"]

MOST = 60
"""How many mutants are made of one task where nobody says otherwise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Generated:
    """One mutant: the reference with the text of `diff` changed at `path`, line `line`, by `operator`."""

    tree: Tree
    path: str
    line: int
    operator: str
    diff: str


def generated_mutants(solution: Tree, environment: Tree, *, most: int = MOST) -> dict[str, Generated]:
    """
    At most `most` mutants by name, `FILE:LINE OPERATOR`, spread evenly over all that there are; the same each time.

    Only Python files that the seat was not given as they are are changed. A mutant that does not compile, or is the
    reference or another mutant but for its layout, is none. Raises `TaskError` where the package is not here.
    """
    found: dict[str, tuple[str, int, str, str]] = {}
    for path in solution:
        if path.endswith(".py") and not (path in environment and environment[path] == solution[path]):
            for line, operator, text in _changes(path, solution.text(path)):
                name = f"{path}:{line} {operator}"
                count = sum(known.startswith(name) for known in found)
                found[name if not count else f"{name} #{count + 1}"] = (path, line, operator, text)
    names = sorted(found, key=lambda name: found[name][:3])
    step = max(1.0, len(names) / most)
    chosen = [names[int(at * step)] for at in range(min(most, len(names)))]
    return {name: _made(solution, *found[name]) for name in chosen}


def _made(solution: Tree, path: str, line: int, operator: str, text: str) -> Generated:
    old = solution.text(path)
    diff = difflib.unified_diff(old.splitlines(), text.splitlines(), path, path, n=1, lineterm="")
    file = File(data=text.encode(), executable=solution.files[path].executable)
    tree = Tree({**solution.files, path: file})
    return Generated(tree=tree, path=path, line=line, operator=operator, diff="\n".join(diff))


def _changes(path: str, source: str) -> Iterator[tuple[int, str, str]]:
    """Line, operator and changed text of each mutant of one file, each different from the source and all before it."""
    try:
        from cosmic_ray.ast import ast_nodes, get_ast
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator, operator_names
    except ImportError as error:
        raise TaskError("generated mutants need the package cosmic-ray: pip install 'proctor[mutants]'") from error
    try:
        seen = {ast.dump(ast.parse(source))}
    except SyntaxError as error:
        raise TaskError(f"solution/{path} is no Python that could be mutated: {error}") from None
    nodes = list(ast_nodes(get_ast(source)))
    for operator_name in sorted(operator_names()):
        maker = get_operator(operator_name)
        if maker.arguments():
            continue  # an operator that needs to be told names of the program
        operator = maker()
        lines = [start[0] for node in nodes for start, _ in operator.mutation_positions(node)]
        for occurrence, line in enumerate(lines):
            text = mutate_code(source, operator, occurrence)
            shape = _shape(text)
            if shape is not None and shape not in seen:
                seen.add(shape)
                yield line, operator_name.rpartition("/")[2], text


def _shape(text: str | None) -> str | None:
    """What a text is but for its layout; None where it is no program."""
    if text is None:
        return None
    try:
        return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError):
        return None
