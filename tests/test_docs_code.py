"""Code that the documentation shows runs, and experiment files and commands that it shows are valid."""

from __future__ import annotations

import doctest
import importlib.metadata
import json
import shlex
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import anyio
import pytest
import typer

from cells.cli import app
from cells.declared.declaration import Declaration
from cells.run import run
from harness.amendment import Amendment
from harness.experiment import Experiment, load_experiment
from harness.plugins import KINDS
from harness.rate_cards import read_rate_card
from harness.tasks.card import CardTable, ProctorTable
from harness.tasks.folder import HARBOR_KEYS
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run
from tests.pages import ROOT, blocks, pages

RECORD = "docs/reference/record.md"

BASE = """
name = "base"
question = "Is the fragment valid?"
arms = ["B", "P"]
[[tasks]]
source = "evalplus:tasks.jsonl"
[[models]]
name = "small"
provider = "scripted"
model = "script"
rates = { input = 1.0, output = 1.0 }
[seat]
seed_namespace = "base"
[referee]
name = "null"
[analysis]
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on fakes."""
    folder = tmp_path_factory.mktemp("finished")

    async def make() -> Path:
        with pytest.MonkeyPatch.context() as patch, fakes(patch, fake_backend(folder)):
            frozen = await frozen_run(folder)
            await run(frozen.folder, watcher=Quiet())
        return frozen.folder

    return anyio.run(make)


def code_of(page: str) -> list[str]:
    """The Python on a page that is no session of an interpreter."""
    return [block.text for block in blocks(pages()[page], "python") if ">>> " not in block.text]


def with_code() -> list[str]:
    """Every page that shows Python."""
    return [page for page in pages() if code_of(page)]


@pytest.mark.parametrize("page", with_code())
def test_python_on_a_page_runs(page, finished, monkeypatch, tmp_path):
    """The blocks of a page, one after another in one namespace; tests that they define pass."""
    monkeypatch.setattr(sys, "argv", ["page", str(finished)])
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {"__name__": "page"}
    for text in code_of(page):
        exec(compile(text, page, "exec"), space)  # noqa: S102 - our own page
    for name, item in list(space.items()):
        if name.startswith("test_") and getattr(item, "__annotations__", {}).get("return", "something") is None:
            item()


def test_pages_with_code_are_found():
    """Those that must have some."""
    assert {RECORD, "docs/how-to/write-a-plugin.md", "docs/how-to/register-an-arm.md"} <= set(with_code())


@pytest.mark.parametrize("page", [page for page, text in pages().items() if ">>> " in text])
def test_sessions_on_a_page_are_right(page):
    """What an interpreter is shown to say is what it says."""
    result = doctest.testfile(str(ROOT / page), module_relative=False)
    assert (result.failed, result.attempted > 0) == (0, True)


def by_hand(folder: Path) -> None:
    """Verify a run by the lines on the page of the record."""
    (text,) = code_of(RECORD)
    argv, sys.argv = sys.argv, ["page", str(folder)]
    try:
        exec(compile(text, RECORD, "exec"), {})  # noqa: S102 - our own page
    finally:
        sys.argv = argv


def test_the_lines_that_verify_are_ten():
    """A page promises ten lines: beside the imports and the name of the folder."""
    (text,) = code_of(RECORD)
    lines = [line for line in text.splitlines() if line and not line.startswith(("import", "from"))]
    assert len(lines) <= 10


def test_the_lines_that_verify_say_yes(finished, capsys):
    """To an undamaged run, with the very head that the run has."""
    by_hand(finished)
    assert capsys.readouterr().out == f"ok, head {(finished / 'head').read_text('ascii')}"


@pytest.mark.parametrize("damage", ["flip", "drop", "swap", "edit", "registration"])
def test_the_lines_that_verify_say_no(finished, tmp_path, damage):
    """To a flipped byte anywhere, a line left out, two that changed places, one written anew, another registration."""
    shutil.copytree(finished, tmp_path / "run")
    path = tmp_path / "run" / "record.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    if damage == "flip":
        for at in range(0, len(whole) - 1, 97):
            changed = bytearray(whole)
            changed[at] ^= 1
            path.write_bytes(bytes(changed))
            with pytest.raises((AssertionError, ValueError)):
                by_hand(tmp_path / "run")
        return
    if damage == "drop":
        lines.pop(2)
    if damage == "swap":
        lines[2], lines[3] = lines[3], lines[2]
    if damage == "edit":
        entry = json.loads(lines[-1])
        lines[-1] = json.dumps({**entry, "at": "2000-01-01T00:00:00.000Z"}).encode() + b"\n"
    if damage == "registration":
        registration = tmp_path / "run" / "registration.json"
        registration.write_bytes(registration.read_bytes() + b" ")
    path.write_bytes(b"".join(lines))
    with pytest.raises(AssertionError):
        by_hand(tmp_path / "run")


def tomls() -> list[Any]:
    """Every block of TOML with its page and line."""
    return [
        pytest.param(block.text, id=f"{page}:{block.line}")
        for page, text in pages().items()
        for block in blocks(text, "toml")
    ]


def merged(base: dict[str, Any], fragment: dict[str, Any]) -> dict[str, Any]:
    """`base` with the fragment's values in it; tables are merged, everything else replaced."""
    result = dict(base)
    for key, value in fragment.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def kind_of(data: dict[str, Any]) -> str:
    """What a block of TOML is a part of."""
    if set(data) <= set(Experiment.model_fields):
        return "experiment"
    if str(data.get("schema")).startswith("proctor-rates/"):
        return "rates"
    if set(data) <= set(Declaration.model_fields):
        return "declaration"
    if {"reason", "changes", "checks"} <= set(data):
        return "amendment"
    if "proctor" in data and set(data) <= HARBOR_KEYS | {"proctor"}:
        return "card"
    if set(data) <= {"project", "build-system"}:
        return "distribution"
    if set(data) <= {"why", "edit"}:
        return "mutant"
    return "unknown"


@pytest.mark.parametrize("text", tomls())
def test_toml_on_a_page_is_valid(text):
    """A part of an experiment file is one when put into a whole; entry points name groups that exist."""
    data = tomllib.loads(text)
    match kind_of(data):
        case "experiment":
            Experiment.model_validate(merged(tomllib.loads(BASE), data))
        case "declaration":
            Declaration.model_validate({"question": "Is it valid?", "readings": [{"name": "all"}]} | data)
        case "amendment":
            Amendment.model_validate(data)
        case "distribution":
            groups = data["project"].get("entry-points", {})
            assert set(groups) <= {f"proctor.{kind}" for kind in KINDS}
        case "card":
            model = CardTable if "card" in data["proctor"] else ProctorTable
            model.model_validate(data["proctor"])
        case "mutant":
            assert data["edit"]
        case "rates":
            read_rate_card(text.encode(), "page")
        case unknown:
            pytest.fail(f"neither an experiment file nor a card, mutant or distribution: {unknown}: {sorted(data)}")


def test_toml_that_is_wrong_is_told():
    """A misspelt key makes it no part of an experiment file, and a wrong value no valid one."""
    assert kind_of(tomllib.loads("replicate = 3")) == "unknown"
    with pytest.raises(ValueError, match="replicates"):
        Experiment.model_validate(merged(tomllib.loads(BASE), {"replicates": 0}))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").rglob("experiment.toml")), ids=lambda path: path.parent.name
)
def test_examples_are_valid(path):
    """Every example's experiment file can be used."""
    assert load_experiment(path).question


def command_faults(line: str) -> list[str]:
    """What is wrong with a line of shell that calls `proctor`: commands and options that do not exist."""
    words = shlex.split(line, comments=True)
    if not words or words[0] != "proctor":
        return []
    command: Any = typer.main.get_command(app)
    at = 1
    while hasattr(command, "commands") and at < len(words) and not words[at].startswith("-"):
        if words[at] not in command.commands:
            return [f"{line.strip()}: no command {words[at]!r}"]
        command, at = command.commands[words[at]], at + 1
    known = {name for item in command.params for name in item.opts} | {"-h", "--help"}
    return [f"{line.strip()}: no option {word!r}" for word in words[at:] if word.startswith("-") and word not in known]


@pytest.mark.parametrize("page", [page for page, text in pages().items() if blocks(text, "sh")])
def test_commands_on_a_page_exist(page):
    """Every `proctor` in a block of shell is a command with options that it has."""
    shell = [block.text.replace("\\\n", " ") for block in blocks(pages()[page], "sh")]  # a line may go on in the next
    lines = [line for text in shell for line in text.splitlines()]
    assert [fault for line in lines for fault in command_faults(line)] == []


def test_a_command_that_does_not_exist_is_told():
    """A wrong command, a wrong command of a group, a wrong option."""
    assert command_faults("proctor rum x") == ["proctor rum x: no command 'rum'"]
    assert command_faults("proctor fence prob  # take it") == ["proctor fence prob  # take it: no command 'prob'"]
    assert command_faults("proctor run x --jsn") == ["proctor run x --jsn: no option '--jsn'"]
    assert command_faults("proctor run x --json") == command_faults("ls --nothing") == []


def test_the_command_that_is_installed_is_this_one():
    """`proctor` runs the application that the pages are held against."""
    (point,) = [point for point in importlib.metadata.entry_points(group="console_scripts") if point.name == "proctor"]
    assert point.value == "cells.cli:main"
