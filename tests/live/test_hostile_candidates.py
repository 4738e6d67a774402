"""
The hostile battery of each referee, in real rooms on each backend: no candidate passes, each lands in its one class, and
after each the same judge goes on to accept an honest one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness import plugins
from harness.ports import WorkspaceBackend
from harness.tasks.evalplus import load_evalplus
from harness.tasks.task import Task
from harness.values import Verdict
from harness.walls import Caps, Walls
from referees.evalplus import EvalPlusReferee
from referees.pytest_suite import PytestReferee
from tests.live.hostile import Candidate, faults, pytest_candidates
from tests.live.hostile.evalplus_candidates import CANDIDATES, CONTROLS, TASKS
from tests.live.hostile.pytest_candidates import TASK

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(700)]

BOUND_S = 600.0
"""A battery takes a minute or less on an idle machine of two cores; its candidates' limits do not rest on the clock."""

_STRIDE = {"docker": 3, "bubblewrap": 1}


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here: the fast tests run the same referees on both."""
    return "asyncio"


@pytest.fixture(params=["docker", "bubblewrap"])
def backend(request: pytest.FixtureRequest) -> WorkspaceBackend:
    """Either backend."""
    made: WorkspaceBackend = plugins.load("workspaces", request.param)()
    return made


@pytest.fixture
def rooms(backend: WorkspaceBackend) -> Callable[[], Any]:
    """Opens sealed rooms of it."""
    return partial(backend.open, Walls(image="proctor-seat", caps=Caps(memory_bytes=3 << 30)), run="test-hostile")


@pytest.fixture
def evalplus_tasks(tmp_path: Path) -> dict[str, Task]:
    """The tasks of the EvalPlus candidates, by id."""
    path = tmp_path / "hostile.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in TASKS.values()))
    return dict(zip(TASKS, load_evalplus(path), strict=True))


def of_evalplus(tasks: Mapping[str, Task], candidates: Mapping[str, tuple[str, str, str]]) -> dict[str, Candidate]:
    """The candidates as the harness takes them."""
    return {
        name: Candidate(task=tasks[task], files={"solution.py": code}, reading=reading)
        for name, (task, code, reading) in candidates.items()
    }


async def test_evalplus(rooms: Callable[[], Any], evalplus_tasks: dict[str, Task]) -> None:
    """No program of the battery passes `evalplus`, or costs its warm line the room; odd and honest ones do pass."""
    honest = of_evalplus(evalplus_tasks, CONTROLS)
    canary = honest["the right answer"]
    opened = 0

    def counted() -> Any:
        nonlocal opened
        opened += 1
        return rooms()

    async with EvalPlusReferee({"memory_bytes": 256 << 20, "min_time_s": 0.5}).line(counted) as line:

        async def judge(one: Candidate) -> Verdict:
            return await line.judge(one.exhibit, one.task.open, one.task.sealed)

        assert await faults(judge, honest, canary, within_s=BOUND_S) == []
        before = opened
        assert await faults(judge, of_evalplus(evalplus_tasks, CANDIDATES), canary, within_s=BOUND_S) == []
        assert opened == before
    assert "PASS" not in {reading for _, _, reading in CANDIDATES.values()}


async def test_pytest(backend: WorkspaceBackend, rooms: Callable[[], Any]) -> None:
    """
    No folder of the battery passes `pytest`, whatever lies in it; the right one does, before and after. Each is tried on
    bubblewrap; on Docker, where rooms take longer to open, every third.
    """
    referee = PytestReferee({"cpu_s": 2, "wall_s": 2.0, "memory_bytes": 256 << 20, "calls": 1000})

    async def judge(one: Candidate) -> Verdict:
        return await referee.judge(one.exhibit, one.task.open, one.task.sealed, rooms)

    candidates = {
        name: Candidate(task=TASK, files=files, reading=reading)
        for name, (files, reading) in list(pytest_candidates.CANDIDATES.items())[:: _STRIDE[backend.name]]
    }
    canary = Candidate(task=TASK, files={"solution.py": pytest_candidates.RIGHT}, reading="PASS")
    assert await faults(judge, candidates, canary, within_s=BOUND_S, every=16, at_once=4) == []
    assert "PASS" not in {candidate.reading for candidate in candidates.values()}
