"""What the code offers, read from the code: commands, variables, kinds of entries, public names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.architecture import Module, modules


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command below a group with its whole name; groups too."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{path} {name}")


def options(command: Any) -> set[str]:
    """The options of a command, as they are written."""
    return {name for item in command.params if item.param_type_name == "option" for name in item.opts}


def section(text: str, heading: str) -> str:
    """What stands under the heading that starts with `heading`, up to the next one of its level or a higher one."""
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if line.lstrip("#").strip().startswith(heading)), None)
    if start is None:
        return ""
    level = len(lines[start]) - len(lines[start].lstrip("#"))
    for end in range(start + 1, len(lines)):
        hashes = len(lines[end]) - len(lines[end].lstrip("#"))
        if 0 < hashes <= level:
            return "\n".join(lines[start:end])
    return "\n".join(lines[start:])


def command_faults(app: Any, page: str) -> list[str]:
    """Commands without a section on the page, and options that their section leaves out."""
    faults = []
    for path, command in commands(app, "proctor"):
        if hasattr(command, "commands") and path != "proctor":
            continue
        text = section(page, f"`{path} ") or section(page, f"`{path}`")
        if not text:
            faults.append(f"{path} has no section")
        faults.extend(f"{path}: {name} is not in its section" for name in sorted(options(command)) if name not in text)
    return faults


def appended_kinds(root: Path) -> set[str]:
    """The kinds of entries that the code writes: the first argument of each `journal.add` and `record.append`."""
    found = set()
    for module in modules(root).values():
        for node in ast.walk(module.tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            owner = ast.unparse(node.func.value)
            writes = (node.func.attr == "add" and owner.endswith("journal")) or (
                node.func.attr == "append" and (owner.endswith("record") or module.name == "harness.record")
            )
            if writes and isinstance(node.args[0], ast.Constant):
                found.add(node.args[0].value)
    return found


def variables(root: Path) -> set[str]:
    """The environment variables that `harness/environment.py` names."""
    (module,) = (item for item in modules(root).values() if item.name == "harness.environment")
    found = set()
    for node in ast.walk(module.tree):
        asked = (
            (isinstance(node, ast.Call) and node.args and ast.unparse(node.func).startswith("os.environ."))
            or (isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ")
        ) and (node.args[0] if isinstance(node, ast.Call) else node.slice)
        if isinstance(asked, ast.Constant):
            found.add(asked.value)
        elif isinstance(asked, ast.JoinedStr):
            found.add(ast.unparse(asked))
    return found


def exported(module: Module) -> set[str] | None:
    """What `__all__` names, or None without one."""
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return None


def _names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple):
        for item in target.elts:
            yield from _names(item)


def defined(module: Module) -> set[str]:
    """Every name that the module itself binds at its top, imports included."""
    found: set[str] = set()
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Assign):
            found |= {name for target in node.targets for name in _names(target)}
        elif isinstance(node, ast.AnnAssign):
            found |= set(_names(node.target))
    return found


def public(module: Module) -> set[str]:
    """The functions and classes of the module whose name has no underscore before it."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in module.tree.body if isinstance(node, kinds) and not node.name.startswith("_")}


def export_faults(root: Path, *, without: frozenset[str], registered: set[tuple[str, str]]) -> list[str]:
    """
    Names in an `__all__` that are not there, and public functions and classes that are in none.

    `without` are modules that have none by design; `registered` are functions that are reached as commands.
    """
    faults = []
    for name, module in modules(root).items():
        names, offers = exported(module), public(module)
        if names is None:
            if offers and name not in without:
                faults.append(f"{name} has no __all__: {', '.join(sorted(offers))}")
            continue
        faults.extend(f"{name}: __all__ names {item}, which is not there" for item in sorted(names - defined(module)))
        missing = {item for item in offers - names if (name, item) not in registered}
        faults.extend(f"{name}: {item} is public and not in __all__" for item in sorted(missing))
    return faults
