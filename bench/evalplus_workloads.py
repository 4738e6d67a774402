"""
The samples that the comparison with EvalPlus judges: references, mixes, mutants, loops. The same ones on every machine.
"""

from __future__ import annotations

import ast
import copy
import gzip
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.seeds import draw_order

__all__ = ["Benchmark", "Sample", "loops", "mixes", "mutant_samples", "mutants", "references"]

SEED = 20260
MUTANTS = {"humaneval": 704, "mbpp": 1185}
"""How many mutants of a whole data set are judged; of a part of it, in proportion."""
TASKS = {"humaneval": 164, "mbpp": 378}
MUTANTS_A_TASK = 8
"""Where a data set gives more, each task's first ones are taken before any task's next."""

_SWAPS: Mapping[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.FloorDiv,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_NAMES: Mapping[str, str] = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "sum": "max",
    "sorted": "list",
    "set": "list",
    "zip": "enumerate",
    "upper": "lower",
    "lower": "upper",
    "startswith": "endswith",
    "endswith": "startswith",
    "search": "match",
    "findall": "split",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A whole program for a task, and what kind it is."""

    task_id: str
    kind: str
    solution: str


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A data set in EvalPlus's schema, whole or in part: its records by task id, in the file's order."""

    name: str
    records: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, name: str, path: Path) -> Benchmark:
        """The data set in `path`, a .jsonl or .jsonl.gz file."""
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
        records = [json.loads(line) for line in text.split("\n") if line.strip()]
        return cls(name=name, records={record["task_id"]: record for record in records})

    def part(self, count: int, without: Sequence[str] = ()) -> Benchmark:
        """`count` tasks of it, the same ones on every machine, none of them in `without`."""
        drawn = set(draw_order((task for task in self.records if task not in without), SEED)[:count])
        return Benchmark(name=self.name, records={task: self.records[task] for task in self.records if task in drawn})

    def text(self) -> str:
        """The data set as a .jsonl file holds it."""
        return "".join(json.dumps(record) + "\n" for record in self.records.values())


def _canonical(record: Mapping[str, Any]) -> str:
    whole: str = record["prompt"] + record["canonical_solution"]
    return whole


def references(benchmark: Benchmark) -> list[Sample]:
    """Every task's own solution."""
    return [Sample(task_id=task, kind="right", solution=_canonical(rec)) for task, rec in benchmark.records.items()]


def mixes(benchmark: Benchmark) -> list[Sample]:
    """For each task its own solution, one mutant of it, and a program that does not compile."""
    found: list[Sample] = []
    for task, record in benchmark.records.items():
        right = _canonical(record)
        wrong = mutants(right, 1) or [right]
        found.append(Sample(task_id=task, kind="right", solution=right))
        found.append(Sample(task_id=task, kind="wrong", solution=wrong[0]))
        found.append(Sample(task_id=task, kind="broken", solution=f"{right}\nreturn (\n"))
    return found


def mutant_samples(benchmark: Benchmark) -> list[Sample]:
    """As many mutants as `MUTANTS` says: the first of every task's solution, then every second one, and so on."""
    made = {task: mutants(_canonical(record), MUTANTS_A_TASK) for task, record in benchmark.records.items()}
    rounds = [(at, task) for at in range(MUTANTS_A_TASK) for task in made if at < len(made[task])]
    most = math.ceil(MUTANTS[benchmark.name] * len(benchmark.records) / TASKS[benchmark.name])
    taken = sorted(rounds[:most], key=lambda one: list(made).index(one[1]))
    return [Sample(task_id=task, kind="mutant", solution=made[task][at]) for at, task in taken]


def loops(benchmark: Benchmark) -> list[Sample]:
    """For each task a program that never answers."""
    text = "def {entry}(*arguments):\n    while True:\n        pass\n"
    return [
        Sample(task_id=task, kind="loop", solution=text.replace("{entry}", record["entry_point"]))
        for task, record in benchmark.records.items()
    ]


@dataclass(frozen=True, slots=True)
class _Site:
    """A place in a module's tree that an operator can change: the operator and the node's number in `ast.walk`."""

    operator: str
    node: int
    change: Callable[[Any], None]


def mutants(source: str, most: int) -> list[str]:
    """
    At most `most` programs that differ from `source` in one place each, of as many operators as there are.

    Some of them are right all the same: which ones, the referees say.
    """
    tree = ast.parse(source)
    sites = {f"{site.operator}@{site.node}": site for site in _sites(tree)}
    order = [sites[name] for name in draw_order(sites, SEED)]
    first_of_each = [site for at, site in enumerate(order) if site.operator not in {one.operator for one in order[:at]}]
    made: list[str] = []
    for site in [*first_of_each, *(site for site in order if site not in first_of_each)]:
        changed = copy.deepcopy(tree)
        site.change(list(ast.walk(changed))[site.node])
        text = ast.unparse(ast.fix_missing_locations(changed)) + "\n"
        if text not in made:
            made.append(text)
        if len(made) == most:
            break
    return made


def _sites(tree: ast.Module) -> Iterator[_Site]:
    """Every place inside a function that can be changed."""
    inside = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for statement in function.body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))  # a docstring
        for node in ast.walk(statement)
    }
    for number, node in enumerate(ast.walk(tree)):
        if node in inside:
            yield from _changes(number, node)


def _changes(number: int, node: ast.AST) -> Iterator[_Site]:
    match node:
        case ast.Compare(ops=[one]) if type(one) in _SWAPS:
            yield _Site("compare", number, _swap_compare)
        case ast.BinOp(op=one) | ast.BoolOp(op=one) if type(one) in _SWAPS:
            yield _Site("logic" if isinstance(node, ast.BoolOp) else "arithmetic", number, _swap_operator)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield _Site("sign", number, _drop_sign)
        case ast.Constant():
            yield from _other_constants(number, node)
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _NAMES:
            yield _Site("name", number, _other_name)
        case ast.If() | ast.IfExp():
            yield _Site("condition", number, _negate)
        case ast.Return(value=ast.expr()):
            yield _Site("result", number, _wrap)
        case _:
            pass


def _other_constants(number: int, node: ast.Constant) -> Iterator[_Site]:
    match node.value:
        case bool():
            yield _Site("truth", number, _other_truth)
        case int():
            yield _Site("number", number, _next_number)
        case str():
            yield _Site("text", number, _longer_text)
        case _:
            pass


def _swap_compare(node: ast.Compare) -> None:
    node.ops = [_SWAPS[type(node.ops[0])]()]  # type: ignore[list-item]  # the table maps comparisons to comparisons


def _swap_operator(node: ast.BinOp | ast.BoolOp) -> None:
    node.op = _SWAPS[type(node.op)]()  # type: ignore[assignment]  # the table maps each kind to its own


def _other_truth(node: ast.Constant) -> None:
    node.value = not node.value


def _next_number(node: ast.Constant) -> None:
    assert isinstance(node.value, int)
    node.value = node.value + 1


def _longer_text(node: ast.Constant) -> None:
    assert isinstance(node.value, str)
    node.value = node.value + " "


def _drop_sign(node: ast.UnaryOp) -> None:
    node.op = ast.UAdd()


def _other_name(node: ast.Name | ast.Attribute) -> None:
    if isinstance(node, ast.Name):
        node.id = _NAMES[node.id]
    else:
        node.attr = _NAMES[node.attr]


def _wrap(node: ast.Return) -> None:
    assert node.value is not None
    node.value = ast.List(elts=[node.value], ctx=ast.Load())


def _negate(node: ast.If | ast.IfExp) -> None:
    node.test = ast.UnaryOp(op=ast.Not(), operand=node.test)
