"""An arm to start from: a folder with its card, or a package around one with its entry point and tests that pass."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Literal

from harness import plugins
from harness.arm_folder import CARD, folder_arm
from harness.canonical import digest_bytes
from harness.errors import UsageError, unknown_name
from harness.placebo_draft import draft_placebo
from harness.plugins import table

__all__ = ["NewArm", "new_arm"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PACKAGED = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


@dataclass(frozen=True, kw_only=True)
class NewArm:
    """What is asked for: the name, the kind, the treatment that it is a placebo for, a package around it or not."""

    name: str
    kind: Literal["text", "packet"] = "text"
    placebo_for: str | None = None
    package: bool = False


def new_arm(asked: NewArm, parent: Path) -> list[Path]:
    """
    Write the arm's folder below `parent`, or the package `proctor-arm-NAME`, and return its files.

    Raises `UsageError` for a name that is no arm's or is taken, a folder that is there already, and a treatment that
    is not to be found.
    """
    _refuse_name(asked)
    folder = parent / (f"proctor-arm-{asked.name}" if asked.package else asked.name)
    if folder.exists():
        raise UsageError(f"{folder} exists: choose another name, or remove it first")
    arm = _arm(asked, parent)
    held = _package(asked.name, arm) if asked.package else arm
    return [_written(folder / path, text) for path, text in held.items()]


def _refuse_name(asked: NewArm) -> None:
    if not (_PACKAGED if asked.package else _NAME).fullmatch(asked.name):
        wanted = (
            "small letters, digits and single hyphens, a letter first, as `test-first`"
            if asked.package
            else "1 to 64 of A-Z a-z 0-9 '.' '_' '-', starting with a letter or digit"
        )
        raise UsageError(f"{asked.name!r} is no name for an arm: expected {wanted}")
    taken = table("arms").get(asked.name)
    if taken is not None:
        raise UsageError(f"{asked.name!r} is taken by {taken.target} of {taken.distribution}: choose another name")
    if asked.kind == "packet" and asked.placebo_for is not None:
        raise UsageError("a packet's placebo is a packet that mirrors it: `--placebo-for` is for a text")


def _arm(asked: NewArm, parent: Path) -> dict[str, str]:
    """The files of the arm's folder by path."""
    card = [f'name = "{asked.name}"', f'kind = "{asked.kind}"']
    if asked.kind == "packet":
        words = {"name": asked.name, "cls": _class_name(asked.name)}
        card.append(f'renderer = "packet:{words["cls"]}"')
        made = {"packet.py": _filled("packet.py", words), "words.json": _filled("words.json", {})}
    else:
        card.append('text = "text.md"')
        made = {"text.md": _filled("text.md", {})}
    if asked.placebo_for is not None:
        card.append(f'placebo_for = "{asked.placebo_for}"')
        made["text.md"] = draft_placebo(_treatment(asked.placebo_for, parent))
    return {CARD: "\n".join(card) + "\n", **made}


def _treatment(name: str, parent: Path) -> str:
    """The text that a placebo is to have the shape of: a folder beside it, or a registered arm."""
    beside = parent / name
    if (beside / CARD).is_file():
        arm = folder_arm(beside)
    elif name in table("arms"):
        arm = plugins.load("arms", name)()
    else:
        known = [*table("arms"), *(path.parent.name for path in sorted(parent.glob(f"*/{CARD}")))]
        raise UsageError(f"--placebo-for: {unknown_name('treatment', name, known)}")
    text = getattr(arm, "text", None)
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"--placebo-for: {name!r} has no text that a placebo could have the shape of")
    return text


def _package(name: str, arm: dict[str, str]) -> dict[str, str]:
    """The package's files by path."""
    module = f"proctor_arm_{name.replace('-', '_')}"
    content = arm.get("text.md", arm.get("words.json", ""))
    words = {
        "name": name,
        "module": module,
        "function": name.replace("-", "_"),
        "digest": digest_bytes(content.encode()),
    }
    places = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        f"{module}/__init__.py": "init.py",
        f"tests/test_{module}.py": "test.py",
    }
    filled = {path: _filled(template, words) for path, template in places.items()}
    return {**filled, **{f"{module}/{name}/{path}": text for path, text in arm.items()}}


def _class_name(name: str) -> str:
    stem = "".join(part.capitalize() for part in re.split(r"[._-]+", name))
    return f"Packet{stem}"


def _filled(template: str, words: dict[str, str]) -> str:
    text = files("cells").joinpath("arm_template", f"{template}.tmpl").read_text("utf-8")
    return Template(text).substitute(words)


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8"))
    return path
