"""
Make task folders of repairs from EvalPlus tasks: for each, a right start and one with a single planted defect.

    python examples/revision/make_repairs.py tasks.jsonl repairs
    python examples/revision/make_repairs.py humaneval repairs-humaneval --n 30 --seed 1

A defect is one change of the reference's syntax tree: the first, in a seeded order, that a public test sees and that
does not raise on all of them. Mutated references run on this host, each in a process of its own with limits: use it on
data that you trust.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.seeds import draw_order
from harness.tasks.evalplus import SUITE_FILE, load_evalplus
from harness.tasks.evalplus_inputs import convert_inputs
from harness.tasks.task import Task

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COUNTED: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.FloorDiv: ast.Mult}
JOINED: dict[type[ast.boolop], type[ast.boolop]] = {ast.And: ast.Or, ast.Or: ast.And}

RUN = """
import json, sys
source, name, calls = json.load(sys.stdin)
space = {}
exec(compile(source, "start.py", "exec"), space)
said = []
for call in calls:
    try:
        said.append(repr(space[name](*eval(call))))
    except Exception as error:
        said.append("raises " + type(error).__name__)
print(json.dumps(said))
"""

CARD = """\
schema_version = "1.4"

[task]
name = "{benchmark}/{name}"
version = "1.0.0"
description = "Repair of one function"

[proctor]
benchmark = "{benchmark}"
name = "{name}"
form = "brownfield"
details = {{ file = "solution.py", entry_point = "{entry_point}" }}

[proctor.leaks]
# A repair shows nearly all of its reference on purpose.
shared = ["solution/solution.py"]

[proctor.card]
"""


def changed(node: ast.AST) -> bool:
    """Plant the one defect that `node` can have; False where it has none."""
    match node:
        case ast.Compare(ops=[one, *_]) if type(one) in COMPARED:
            node.ops[0] = COMPARED[type(one)]()
        case ast.BinOp(op=one) if type(one) in COUNTED:
            node.op = COUNTED[type(one)]()
        case ast.BoolOp(op=one):
            node.op = JOINED[type(one)]()
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            node.value = number + 1
        case _:
            return False
    return True


def defects(source: str) -> Iterator[str]:
    """The source with one defect each, in the order of the tree."""
    tree = ast.parse(source)
    for at in range(sum(1 for _ in ast.walk(tree))):
        copied = copy.deepcopy(tree)
        if changed(list(ast.walk(copied))[at]):
            yield ast.unparse(copied) + "\n"


def limit() -> None:
    """What a mutated reference may use: it may never end."""
    resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def said(source: str, name: str, calls: list[str]) -> list[str] | None:
    """What each call gives, as text; None where it ended in no good way."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", RUN], input=json.dumps([source, name, calls]), capture_output=True, text=True,
        preexec_fn=limit, check=False, timeout=20,
    )  # fmt: skip
    return None if done.returncode else json.loads(done.stdout.splitlines()[-1])


def defective(right: str, name: str, calls: list[str], seed: int) -> str | None:
    """The defect that is planted, or None where a public test sees none."""
    wanted = said(right, name, calls)
    assert wanted is not None, f"the reference of {name} does not run"
    found = dict.fromkeys(defects(right))
    for source in draw_order(found, seed):
        got = said(source, name, calls)
        if got is not None and got != wanted and not all(one.startswith("raises ") for one in got):
            return source
    return None


def folder(task: Task, out: Path, seed: int) -> bool:
    """Write the folder of one task; False where no defect can be planted."""
    suite = json.loads(task.sealed.tests.text(SUITE_FILE))
    entry_point = task.open.details["entry_point"]
    reference = task.sealed.solution.text("solution.py")
    right = ast.unparse(ast.parse(reference)) + "\n"
    calls = [repr(call) for call in convert_inputs(suite["task_id"], suite["base_input"])]
    wrong = defective(right, entry_point, calls, seed)
    if wrong is None:
        return False
    name = task.open.name.replace("/", "-")
    place = out / name
    (place / "environment").mkdir(parents=True)
    for path, text in {
        "task.toml": CARD.format(benchmark=task.open.benchmark, name=name, entry_point=entry_point),
        "instruction.md": f"Complete this Python module.\n\n```python\n{task.open.instruction.strip()}\n```\n",
        "environment/right.py": right,
        "environment/wrong.py": wrong,
        f"tests/{SUITE_FILE}": task.sealed.tests.text(SUITE_FILE),
        "solution/solution.py": reference,
    }.items():
        (place / path).parent.mkdir(exist_ok=True)
        (place / path).write_text(text, encoding="utf-8")
    return True


def main() -> None:
    """Write folders until there are enough, and say which tasks have none."""
    parser = argparse.ArgumentParser(description="Make repairs from EvalPlus tasks.")
    parser.add_argument("source", help="humaneval, mbpp, or a file in EvalPlus's schema")
    parser.add_argument("out", type=Path, help="a folder that is not there yet")
    parser.add_argument("--n", type=int, default=None, help="how many, drawn by the seed; by default all")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    given.out.mkdir(parents=True)
    source = given.source if given.source in {"humaneval", "mbpp"} else Path(given.source)
    tasks = {task.open.name: task for task in load_evalplus(source, benchmark="repairs")}
    made = 0
    for name in draw_order(tasks, given.seed):
        if made == given.n:
            break
        if folder(tasks[name], given.out, given.seed):
            made += 1
        else:
            sys.stderr.write(f"{name}: no defect that a public test sees\n")
    sys.stdout.write(f"{made} repairs in {given.out}\n")


if __name__ == "__main__":
    main()
