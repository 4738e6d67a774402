"""Mutants that nobody wrote: the same each time, bounded, each another program, with what was changed."""

from __future__ import annotations

import ast
import sys

import pytest

from harness.errors import TaskError
from harness.tasks.generated_mutants import generated_mutants
from harness.tree import Tree

SOLUTION = Tree.of(
    {
        "solution.py": "def f(x):\n    if x > 1 and not x == 3:\n        return x + 1\n    return 0\n",
        "given.py": "def g():\n    return 1 + 1\n",
        "data.json": "{}",
    }
)
ENVIRONMENT = Tree.of(
    {"given.py": SOLUTION.text("given.py"), "solution.py": "def f(x):\n    raise NotImplementedError\n"}
)


def test_each_is_another_program_that_says_what_was_changed() -> None:
    """Only what the seat was not given is changed; every one compiles, and no two are the same."""
    made = generated_mutants(SOLUTION, ENVIRONMENT, most=1000)
    assert len(made) > 15
    shapes = {ast.dump(ast.parse(mutant.tree.text("solution.py"))) for mutant in made.values()}
    assert len(shapes) == len(made)
    assert ast.dump(ast.parse(SOLUTION.text("solution.py"))) not in shapes
    for name, mutant in made.items():
        assert name.startswith(f"{mutant.path}:{mutant.line} {mutant.operator}")
        assert mutant.path == "solution.py"
        assert (mutant.tree["given.py"], mutant.tree["data.json"]) == (SOLUTION["given.py"], SOLUTION["data.json"])
        assert any(line.startswith("-") for line in mutant.diff.splitlines()[2:])
    assert "+        return x - 1" in made["solution.py:3 ReplaceBinaryOperator_Add_Sub"].diff


def test_they_are_bounded_and_the_same_each_time() -> None:
    """A smaller number is spread over the whole file."""
    few = generated_mutants(SOLUTION, ENVIRONMENT, most=5)
    assert len(few) == 5
    assert list(few) == list(generated_mutants(SOLUTION, ENVIRONMENT, most=5))
    assert {mutant.line for mutant in few.values()} >= {2, 3}
    assert set(few) < set(generated_mutants(SOLUTION, ENVIRONMENT, most=1000))


def test_what_is_no_python_is_refused() -> None:
    """With the file's name."""
    with pytest.raises(TaskError, match=r"solution/solution\.py is no Python"):
        generated_mutants(Tree.of({"solution.py": "def ("}), Tree())
    assert generated_mutants(Tree.of({"main.rs": "fn main() {}"}), Tree()) == {}


def test_without_the_package_the_next_step_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra's name."""
    monkeypatch.setitem(sys.modules, "cosmic_ray.ast", None)
    with pytest.raises(TaskError, match=r"pip install 'proctor\[mutants\]'"):
        generated_mutants(SOLUTION, ENVIRONMENT)
