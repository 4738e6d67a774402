"""
Task folders: a Harbor task (schema 1.4) with a `[proctor]` table, read into its two halves.

    task.toml          Harbor's tables as Harbor has them, and [proctor]
    instruction.md     what the seat is told
    environment/       what the seat finds in /workspace (the files that build an image are left out)
    extras/NAME.md     the extras that the card names
    tests/             sealed: the withheld suite (Harbor's own test.sh is left out)
    solution/          sealed: the reference, laid over environment/ (Harbor's own solve.sh is left out)
    mutants/NAME.toml  sealed: one planted fault each, as edits of the reference
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.errors import TaskError, unknown_name
from harness.tasks.card import CardTable, ProctorTable, explain
from harness.tasks.mutants import mutants
from harness.tasks.statement import statement
from harness.tasks.task import OpenHalf, SealedHalf, Task
from harness.tree import Tree
from harness.written import toml_of

__all__ = ["derive_statement", "load_folder", "load_folders"]

SCHEMA = "1.4"
HARBOR_KEYS = frozenset(
    {"schema_version", "task", "metadata", "verifier", "agent", "environment", "solution", "source"}
)
IMAGE_FILES = frozenset({"Dockerfile", "docker-compose.yaml", "docker-compose.yml", ".dockerignore"})


def load_folder(path: Path) -> Task:
    """
    The task in the folder `path`. Raises `TaskError` for a folder that is not one, with everything that is wrong named.
    """
    if not path.is_dir():
        raise TaskError(
            f"{path} is not a folder: expected a task folder with task.toml, instruction.md, tests/, solution/"
        )
    table = _table(path)
    wanted = ["instruction.md", "tests", "solution", *(f"extras/{name}.md" for name in table.extras)]
    _no_link(path / "extras")
    missing = [name for name in wanted if not (path / name).exists()]
    if missing:
        derive = isinstance(table, ProctorTable) and "extras/statement.md" in missing
        hint = f". Write the statement with `python -m harness.tasks.folder {path} > statement.md`" if derive else ""
        raise TaskError(f"{path}: missing {', '.join(missing)}{hint}")
    environment = _part(path / "environment", IMAGE_FILES)
    tests, fixed = _part(path / "tests", {"test.sh"}), _part(path / "solution", {"solve.sh"})
    _keep_sealed(path, environment, tests, fixed, table.leaks.shared)
    solution = environment.merged(fixed)
    opened = OpenHalf(
        benchmark=table.benchmark,
        name=table.name,
        instruction=_text(path / "instruction.md"),
        form=table.form,
        environment=environment,
        extras={"none": "", **{name: _text(path / "extras" / f"{name}.md") for name in table.extras}},
        details=table.details,
    )
    sealed = SealedHalf(
        tests=tests, solution=solution, mutants=_part(path / "mutants", frozenset()), card=table.sealed()
    )
    _check(path, table, Task(open=opened, sealed=sealed))
    return Task(open=opened, sealed=sealed)


def load_folders(path: Path) -> tuple[Task, ...]:
    """The task in `path`, or, where `path` has no task.toml, each task folder directly in it, by name."""
    if (path / "task.toml").exists():
        return (load_folder(path),)
    folders = sorted(entry.parent for entry in path.glob("*/task.toml"))
    if not folders:
        raise TaskError(f"{path} holds no task: expected a task.toml in it, or in folders directly below it")
    tasks = tuple(load_folder(folder) for folder in folders)
    keys = [task.key for task in tasks]
    doubled = sorted({key for key in keys if keys.count(key) > 1})
    if doubled:
        raise TaskError(f"{path}: {', '.join(doubled)} is the name of more than one task folder")
    return tasks


def derive_statement(path: Path) -> str:
    """What `extras/statement.md` of the task folder `path` must hold. Raises `TaskError` as `load_folder` does."""
    environment, fixed = _part(path / "environment", IMAGE_FILES), _part(path / "solution", {"solve.sh"})
    return _derived(_table(path), environment.merged(fixed))


def _derived(table: ProctorTable | CardTable, solution: Tree) -> str:
    if isinstance(table, CardTable):
        raise TaskError("a statement is derived for Python modules only: a task with [proctor.card] writes its own")
    return statement(solution, [(module.module, [*module.exceptions, *module.names]) for module in table.interface])


def _table(path: Path) -> ProctorTable | CardTable:
    try:
        data = toml_of(_text(path / "task.toml"))
    except ValueError as error:
        raise TaskError(f"{path / 'task.toml'} is not valid TOML: {error}") from None
    if data.get("schema_version") != SCHEMA:
        raise TaskError(f"{path / 'task.toml'}: schema_version is {data.get('schema_version')!r}: expected {SCHEMA!r}")
    for key in data:
        if key not in HARBOR_KEYS | {"proctor"}:
            raise TaskError(f"{path / 'task.toml'}: {unknown_name('table', key, HARBOR_KEYS | {'proctor'})}")
    if "proctor" not in data:
        raise TaskError(
            f"{path / 'task.toml'} has no [proctor] table: it must give benchmark and name, and ids and "
            "interface for the pytest referee, or [proctor.card] for another"
        )
    return _validated(path, data["proctor"])


def _validated(path: Path, data: Any) -> ProctorTable | CardTable:
    model = CardTable if isinstance(data, dict) and "card" in data else ProctorTable
    try:
        return model.model_validate(data)
    except ValidationError as error:
        faults = "\n  ".join(explain(error, model, "proctor"))
        raise TaskError(f"{path / 'task.toml'}:\n  {faults}") from None


def _text(path: Path) -> str:
    """A text of the folder's own: a link could bring in any file of this host, and a pipe has no end."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise TaskError(f"{path} is a link, a folder or a special file: expected a regular file")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise TaskError(f"{path.parent}: missing {path.name}") from None
    except UnicodeDecodeError as error:
        raise TaskError(f"{path} is not UTF-8 text: {error}") from None


def _no_link(folder: Path) -> None:
    if folder.is_symlink():
        raise TaskError(f"{folder} is a link: expected a folder of the task's own")


def _part(folder: Path, leave_out: frozenset[str] | set[str]) -> Tree:
    """The files below `folder`, without those at its top that `leave_out` names; empty where there is no folder."""
    _no_link(folder)
    if not folder.exists():
        return Tree()
    if not folder.is_dir():
        raise TaskError(f"{folder} is no folder: expected one")
    whole = Tree.from_folder(folder)
    return Tree({path: file for path, file in whole.files.items() if path not in leave_out})


def _keep_sealed(path: Path, environment: Tree, tests: Tree, solution: Tree, shared: Sequence[str]) -> None:
    """Refuse a folder that shows the seat a sealed file, under whatever name, but for those that are `shared`."""
    sealed = {
        tree[name]: f"{part}/{name}"
        for part, tree in (("tests", tests), ("solution", solution))
        for name in tree
        if f"{part}/{name}" not in shared
    }
    for name in environment:
        data = environment[name]
        if data.strip() and data in sealed:
            raise TaskError(
                f"{path}: environment/{name} is the sealed file {sealed[data]}: the seat must not get it. "
                "A solution holds only the files that differ from the environment."
            )


def _check(path: Path, table: ProctorTable | CardTable, task: Task) -> None:
    """What needs more than one part of the folder: words of the screen, suite files, statement, mutants."""
    unnamed = [word for word in table.forbidden if word not in task.open.instruction]
    if unnamed:
        raise TaskError(
            f"{path}: instruction.md does not name {', '.join(unnamed)}: it must name every rule of a screen"
        )
    if isinstance(table, ProctorTable):
        _check_suite(path, table, task)
    mutants(task.sealed)


def _check_suite(path: Path, table: ProctorTable, task: Task) -> None:
    files = {name.partition("::")[0] for name in table.ids}
    absent = sorted(name for name in files if name not in task.sealed.tests)
    if absent:
        there = ", ".join(task.sealed.tests) or "no file"
        raise TaskError(f"{path}: ids name {', '.join(absent)}: not in tests/, which has {there}")
    if "statement" in table.extras and _derived(table, task.sealed.solution) != task.open.extras["statement"]:
        raise TaskError(
            f"{path}: extras/statement.md is not, word for word, what its tool derives from solution/. Write it with "
            f"`python -m harness.tasks.folder {path} > {path}/extras/statement.md`"
        )


if __name__ == "__main__":
    import sys

    sys.stdout.write(derive_statement(Path(sys.argv[1])))
