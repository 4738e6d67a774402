"""Reads a source tree by its syntax: who imports whom, how long things are, what reaches for the surroundings."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOMS: Mapping[str, frozenset[str]] = {
    "harness": frozenset({"harness"}),
    "arms": frozenset({"arms", "harness"}),
    "referees": frozenset({"referees", "harness"}),
    "fences": frozenset({"fences", "harness"}),
    "cells": frozenset({"cells", "harness", "fences"}),
}
"""Each room, and the rooms it may import: arms and referees reach `cells` by registered name only."""

EMPTY_NAMES = frozenset({"base", "common", "core", "helper", "helpers", "manager", "misc", "util", "utils"})
"""Names that say nothing of what is inside."""

MODULES_OF_CHANCE = frozenset({"random", "secrets", "time", "uuid"})
READS = frozenset({"environ", "environb", "getenv", "getenvb", "getrandom", "putenv", "unsetenv", "urandom"})
"""Attributes of `os` that reach for the process's environment or the system's randomness."""

NOW = frozenset({"now", "today", "utcnow"})


@dataclass(frozen=True)
class Module:
    """One source file of the tree."""

    name: str
    path: Path
    source: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The import package that it stands in."""
        return self.name.partition(".")[0]


@cache
def modules(root: Path) -> dict[str, Module]:
    """Every module of every room below `root`, by dotted name."""
    found = {}
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            source = path.read_text("utf-8")
            found[name] = Module(name, path, source, ast.parse(source))
    return found


def _only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _walk(node: ast.AST, *, types: bool) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if types or not _only_for_types(child):
            yield from _walk(child, types=types)


def imported(module: Module, known: Mapping[str, Module], *, types: bool) -> Iterator[tuple[str, int]]:
    """What a module imports, each as the longest known name, with its line; `types` takes in those for types alone."""
    for node in _walk(module.tree, types=types):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            stem = "." * node.level + (node.module or "")
            for alias in node.names:
                longer = f"{stem}.{alias.name}"
                yield (longer if longer in known else stem), node.lineno


def room_faults(root: Path) -> list[str]:
    """Imports that the table of rooms does not allow, and imports that are not written in full."""
    known, faults = modules(root), []
    for module in known.values():
        for target, line in imported(module, known, types=True):
            room = target.partition(".")[0]
            if target.startswith("."):
                faults.append(f"{module.name}:{line} imports {target!r} by a relative name")
            elif room in {"tests", "bench", "examples"} or (room in ROOMS and room not in ROOMS[module.room]):
                faults.append(f"{module.name}:{line} imports {target}")
    return faults


def cycles(root: Path) -> list[str]:
    """Chains of modules that import each other when they are used; imports for types alone take no part."""
    known = modules(root)
    graph = {
        name: sorted({target for target, _line in imported(module, known, types=False) if target in known} - {name})
        for name, module in known.items()
    }
    done: set[str] = set()
    found = []

    def visit(name: str, path: list[str]) -> None:
        if name in path:
            found.append(" -> ".join([*path[path.index(name) :], name]))
        elif name not in done:
            for target in graph[name]:
                visit(target, [*path, name])
            done.add(name)

    for name in graph:
        visit(name, [])
    return found


def name_faults(root: Path) -> list[str]:
    """Modules and packages whose name says nothing."""
    return [name for name in modules(root) if EMPTY_NAMES & set(name.strip("_").split("."))]


def long_files(root: Path, *, most: int, special: Mapping[str, int]) -> list[str]:
    """Files with more lines than `most`, or than their own figure in `special`."""
    found = []
    for module in modules(root).values():
        path = module.path.relative_to(root).as_posix()
        lines = len(module.source.splitlines())
        if lines > special.get(path, most):
            found.append(f"{path}: {lines} lines, expected {special.get(path, most)} at most")
    return found


def function_lengths(root: Path) -> dict[str, int]:
    """The lines of each function by `path:name`, of the longest where a file has several of a name."""
    found: dict[str, int] = {}
    for module in modules(root).values():
        path = module.path.relative_to(root).as_posix()
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                key = f"{path}:{node.name}"
                found[key] = max(found.get(key, 0), (node.end_lineno or node.lineno) - node.lineno + 1)
    return found


def ambient(root: Path) -> dict[str, set[str]]:
    """What each file reaches for of its surroundings: the environment, the clock, chance. Names of imports count."""
    found: dict[str, set[str]] = {}
    for module in modules(root).values():
        reached = set()
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                reached |= {alias.name for alias in node.names if alias.name in MODULES_OF_CHANCE}
            elif isinstance(node, ast.ImportFrom):
                names = {alias.name for alias in node.names}
                reached |= {node.module} & MODULES_OF_CHANCE if node.module else set()
                reached |= {f"os.{name}" for name in names & READS} if node.module == "os" else set()
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                owner = node.value.id
                if owner == "os" and node.attr in READS:
                    reached.add(f"os.{node.attr}")
                if owner in {"date", "datetime"} and node.attr in NOW:
                    reached.add(f"{owner}.{node.attr}")
        if reached:
            found[module.path.relative_to(root).as_posix()] = reached
    return found


def mentions(root: Path, word: str, places: tuple[str, ...]) -> list[str]:
    """Where the name `word` is used, or imported, below the folders `places`."""
    found = []
    for module in modules(root).values():
        path = module.path.relative_to(root).as_posix()
        if not path.startswith(places):
            continue
        for node in ast.walk(module.tree):
            named = (
                (isinstance(node, ast.Name) and node.id == word)
                or (isinstance(node, ast.Attribute) and node.attr == word)
                or (isinstance(node, ast.alias) and node.name == word)
                or (isinstance(node, ast.Constant) and node.value == word)
            )
            if named:
                found.append(f"{path}:{getattr(node, 'lineno', 0)}")
    return found
