"""
The conformance suite in real rooms: a third party's package, built and installed for real, is taken, and refused with
the reason once it trusts an exit code; Proctor's own referees hold to it too. The bad ones are many, and are shown
without walls in `tests/referees/test_conformance.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cells.referee_scaffold import new_referee
from harness import plugins
from harness.conformance.suite import RULES, check_referee
from harness.tasks.evalplus import load_evalplus
from harness.tasks.task import OpenHalf, SealedHalf, Task
from harness.tree import Tree
from harness.walls import Caps, Walls
from tests.referees.printed_answers import TASK, PrintedAnswersReferee

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(600)]


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here: the fast tests run the suite on both."""
    return "asyncio"


def rooms(backend: str) -> Any:
    """Opens sealed rooms of a backend."""
    walls = Walls(image="proctor-seat", caps=Caps(memory_bytes=3 << 30))
    return partial(plugins.load("workspaces", backend)().open, walls, run="test-conformance")


def proctor(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process that finds what is installed in `site`."""
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", "from cells.cli import main; main()", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)


def test_a_third_partys_package_is_taken_and_a_bad_one_refused(tmp_path: Path) -> None:
    """Built, installed into a folder of its own, found by its entry point, and held to every rule; then it goes wrong."""
    package = new_referee("answers-of-mine", tmp_path)[0].parent
    site = tmp_path / "site"
    options = ["-q", "--no-build-isolation", "--no-deps", "--no-index", "--no-cache-dir", "--target", str(site)]
    built = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, str(package)], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    listed = json.loads(proctor(site, "referee", "list", "--json").stdout)
    (mine,) = (row for row in listed if row["name"] == "answers-of-mine")
    assert (mine["distribution"], mine["version"]) == ("proctor-referee-answers-of-mine", "0.1.0")
    words = ["referee", "check", "answers-of-mine", "--task", str(package / "task"), "--backend", "bubblewrap"]
    taken = proctor(site, *words, "--option", "wall_s=1.0", "--json")
    assert taken.returncode == 0, taken.stdout + taken.stderr
    assert [row["rule"] for row in json.loads(taken.stdout)[0]["rows"]] == list(RULES)

    module = site / "proctor_referee_answers_of_mine.py"
    honest = 'return "PASS" if ran.stdout.decode("utf-8", "replace") == expected and not ran.stdout_cut else "FAIL"'
    assert honest in module.read_text("utf-8")
    module.write_text(
        module.read_text("utf-8").replace(honest, 'return "PASS" if ran.status == 0 else "FAIL"'), "utf-8"
    )
    refused = proctor(site, *words, "--rule", "not believed", "--rule", "garbage")
    assert refused.returncode == 3
    assert "not believed: a candidate that exits with 0 was PASS (accepted)" in refused.stdout
    assert "garbage: with garbage from every room the reference was PASS (accepted)" in refused.stdout


async def test_what_is_hostile_is_bounded_on_docker_too() -> None:
    """The same programs in a container: each ends in time, and none is believed. What breaks a room knows no backend."""
    rules = ("reference", "walled", "bounded", "not believed")
    found = await check_referee(
        PrintedAnswersReferee, TASK, rooms("docker"), name="printed-answers", options={"wall_s": 1.0}, rules=rules
    )
    assert found.conforms, found.refusal
    assert [row.rule for row in found.rows] == list(rules)


SMALL = Task(
    open=OpenHalf(benchmark="demo", name="double", instruction="Write solution.double."),
    sealed=SealedHalf(
        tests=Tree.of({"test_it.py": "from solution import double\n\n\ndef test_it():\n    assert double(21) == 42\n"}),
        solution=Tree.of({"solution.py": "def double(x):\n    return 2 * x\n"}),
        card={"ids": ["test_it.py::test_it"], "interface": [{"module": "solution", "names": ["double"]}]},
    ),
)


async def test_the_pytest_referee_conforms() -> None:
    """A whole suite in two rooms, of which each dies once; its battery and what is hostile to it have their own tests."""
    rules = [rule for rule in RULES if rule not in {"battery", "bounded"}]
    make = plugins.load("referees", "pytest")
    found = await check_referee(make, SMALL, rooms("bubblewrap"), name="pytest", rules=rules)
    assert found.conforms, found.refusal
    (sealed,) = (row for row in found.rows if row.rule == "sealed material")
    assert sealed.seen.startswith("none in the 1 of 2 rooms")


async def test_the_evalplus_referee_conforms() -> None:
    """Likewise; its expected values never enter a room."""
    (task,) = load_evalplus(ROOT / "examples" / "quickstart" / "tasks.jsonl", cap=1)
    task = replace(task, open=replace(task.open, environment=Tree()))
    rules = [rule for rule in RULES if rule != "bounded"]
    make = plugins.load("referees", "evalplus")
    found = await check_referee(make, task, rooms("bubblewrap"), name="evalplus", rules=rules)
    assert found.conforms, found.refusal


async def test_the_null_referee_is_refused_with_the_reasons() -> None:
    """It judges nothing, and is not believed to."""
    found = await check_referee(plugins.load("referees", "null"), SMALL, rooms("bubblewrap"), name="null")
    broken = {row.rule for row in found.broken}
    assert broken >= {"suite digest tells changes", "bounded", "not believed", "garbage", "time and limits"}
