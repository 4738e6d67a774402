"""A third party's referee to start from: a package with its entry point, a card, a task, and tests that pass."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from string import Template

from harness.errors import UsageError
from harness.plugins import table

__all__ = ["new_referee"]

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_MOST_CHARS = 40


def new_referee(name: str, parent: Path) -> list[Path]:
    """
    Write the package `proctor-referee-NAME` below `parent` and return its files.

    Raises `UsageError` for a name that is no referee's or is taken, and for a folder that is there already.
    """
    if not _NAME.fullmatch(name) or len(name) > _MOST_CHARS:
        raise UsageError(
            f"{name!r} is no name for a referee: expected small letters, digits and single hyphens, a letter first, at "
            f"most {_MOST_CHARS} characters, as `printed-answers`"
        )
    taken = table("referees").get(name)
    if taken is not None:
        raise UsageError(f"{name!r} is taken by {taken.target} of {taken.distribution}: choose another name")
    folder = parent / f"proctor-referee-{name}"
    if folder.exists():
        raise UsageError(f"{folder} exists: choose another name, or remove it first")
    _made(folder)
    return [_written(folder / path, text) for path, text in _package(name).items()]


def _package(name: str) -> dict[str, str]:
    """The package's files by path."""
    module = f"proctor_referee_{name.replace('-', '_')}"
    stem = "".join(part.capitalize() for part in name.split("-"))
    words = {"name": name, "module": module, "stem": stem, "cls": f"{stem}Referee"}
    places = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        f"{module}.py": "referee.py",
        f"tests/test_{module}.py": "test.py",
        "task/task.toml": "task.toml",
        "task/instruction.md": "instruction.md",
        "task/tests/cases.toml": "cases.toml",
        "task/solution/solution.py": "solution.py",
        "task/mutants/sign_lost.toml": "mutant.toml",
    }
    return {path: _filled(template, words) for path, template in places.items()}


def _filled(template: str, words: dict[str, str]) -> str:
    text = files("cells").joinpath("referee_template", f"{template}.tmpl").read_text("utf-8")
    return Template(text).substitute(words)


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def _made(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"{folder} can't be made: {error.strerror}. Name another --folder") from error
