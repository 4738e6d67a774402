"""A third party's probe to start from: a package with its entry point, an attempt, its control, and tests that pass."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from string import Template

from harness.errors import UsageError, unknown_name
from harness.plugins import table

__all__ = ["LANGUAGES", "new_probe"]

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_MOST_CHARS = 40

_PYTHON_REPORT = '''def report(one_try: dict[str, str]) -> ExecResult:
    """A program that reports one try."""
    return ran(json.dumps({"tries": [{"what": "door", **one_try}]}).encode())


def refused(signature: str) -> ExecResult:
    """The try met this errno."""
    return report({"signature": signature})


def brought(data: bytes) -> ExecResult:
    """The try brought these bytes back."""
    return report({"got": data.hex()})'''

_SHELL_REPORT = '''WORDS = {"EACCES": b"Permission denied", "ENOENT": b"No such file or directory"}


def report(code: int, said: bytes) -> ExecResult:
    """A script that reports one try."""
    return ran(f"bring\\tdoor\\t{code}\\t{said.hex()}\\nreported\\n".encode())


def refused(signature: str) -> ExecResult:
    """The try met this errno, in the words that programs have for it."""
    return report(1, b"cat: /decoy: " + WORDS[signature])


def brought(data: bytes) -> ExecResult:
    """The try printed these bytes."""
    return report(0, data)'''

LANGUAGES = {"python": _PYTHON_REPORT, "shell": _SHELL_REPORT}
"""The languages that a probe can be started in, and how the tests of each write a report."""


def new_probe(name: str, language: str, parent: Path) -> list[Path]:
    """
    Write the package `proctor-probe-NAME` below `parent` and return its files.

    Raises `UsageError` for a name that is no probe's or is taken, for an unknown language, and for a folder that is
    there already.
    """
    if not _NAME.fullmatch(name) or len(name) > _MOST_CHARS:
        raise UsageError(
            f"{name!r} is no name for a probe: expected small letters, digits and single hyphens, a letter first, at "
            f"most {_MOST_CHARS} characters, as `spare-socket`"
        )
    taken = table("probes").get(name)
    if taken is not None:
        raise UsageError(f"{name!r} is taken by {taken.target} of {taken.distribution}: choose another name")
    if language not in LANGUAGES:
        raise UsageError(unknown_name("language", language, LANGUAGES))
    folder = parent / f"proctor-probe-{name}"
    if folder.exists():
        raise UsageError(f"{folder} exists: choose another name, or remove it first")
    return [_written(folder / path, text) for path, text in _package(name, language).items()]


def _package(name: str, language: str) -> dict[str, str]:
    """The package's files by path."""
    module = f"proctor_probe_{name.replace('-', '_')}"
    words = {
        "name": name,
        "module": module,
        "cls": "".join(part.capitalize() for part in name.split("-")) + "Probe",
        "report": LANGUAGES[language],
    }
    test = _filled("test.py", words)
    if language == "python":
        test = test.replace("from pathlib import Path\n", "import json\nfrom pathlib import Path\n", 1)
    return {
        "pyproject.toml": _filled("pyproject.toml", words),
        "README.md": _filled("README.md", words),
        f"{module}.py": _filled(f"{language}.py", words),
        f"tests/test_{module}.py": test,
    }


def _filled(template: str, words: dict[str, str]) -> str:
    text = files("fences").joinpath("templates", f"{template}.tmpl").read_text("utf-8")
    return Template(text).substitute(words)


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path
