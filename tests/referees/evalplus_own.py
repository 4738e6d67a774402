"""Small tasks and candidates for the tests of the `evalplus` referee, on this host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.tasks.evalplus import load_evalplus
from harness.tasks.task import Task
from harness.tree import Exhibit, Tree
from referees.evalplus import EvalPlusReferee
from tests.referees.local_room import LocalRooms

__all__ = ["QUICKSTART", "exhibit", "own", "own_home", "quick", "ran_reference", "reading"]

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "tasks.jsonl"


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Suites are kept below the test's own folder."""
    monkeypatch.setenv("PROCTOR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def quick(*ids: str) -> list[Task]:
    """Tasks of the quickstart."""
    return load_evalplus(QUICKSTART, ids=ids)


def own(folder: Path, **changes: Any) -> Task:
    """A task of the test's own."""
    record = {
        "task_id": "Own/0",
        "prompt": 'def f(x):\n    """..."""\n',
        "entry_point": "f",
        "canonical_solution": "    return x + 1\n",
        "contract": "",
        "base_input": [[1], [2], [3]],
        "plus_input": [[10], [20]],
        "atol": 0,
        **changes,
    }
    path = folder / "own.jsonl"
    path.write_text(json.dumps(record))
    return load_evalplus(path)[0]


def exhibit(code: str | bytes, **others: str) -> Exhibit:
    """What a seat left."""
    return Exhibit(tree=Tree.of({"solution.py": code, **others}))


async def ran_reference(task: Task, options: Mapping[str, Any] | None = None) -> None:
    """Have the expected values of `task` known, so that the rooms that are opened later are the candidates'."""
    await EvalPlusReferee(options).judge(exhibit(""), task.open, task.sealed, LocalRooms())


async def reading(task: Task, code: str | bytes, options: Mapping[str, Any] | None = None) -> tuple[str, str, str]:
    """Reading of the verdict and of both tiers."""
    verdict = await EvalPlusReferee(options).judge(exhibit(code), task.open, task.sealed, LocalRooms())
    public, hidden = verdict.tiers
    return verdict.reading, public.reading, hidden.reading
