"""Whose doing it is when a zygote is lost while a candidate runs: its room may be gone, or go on without it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from harness.errors import WorkspaceError
from harness.tasks.evalplus import load_evalplus
from harness.tasks.task import Task
from harness.tree import Exhibit, Tree
from referees.evalplus import EvalPlusReferee
from tests.referees.local_room import LocalRoom, LocalRooms

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(60)]

SLOW = Exhibit(tree=Tree.of({"solution.py": "import time\ntime.sleep(30)\ndef f(x):\n    return x\n"}))
Deed = Callable[[LocalRoom], None]


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Give it back."""
    monkeypatch.setenv("PROCTOR_HOME", str(tmp_path / "home"))
    record = {"task_id": "Own/0", "prompt": "def f(x):\n", "entry_point": "f", "canonical_solution": "    return x\n",
              "contract": "", "base_input": [[1]], "plus_input": [[2]], "atol": 0}  # fmt: skip
    (tmp_path / "own.jsonl").write_text(json.dumps(record))
    return load_evalplus(tmp_path / "own.jsonl")[0]


def zygotes(room: LocalRoom) -> list[int]:
    """The processes that each process of the room began."""
    return [
        int(pid)
        for process in room.processes
        for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ]


def whole_room(room: LocalRoom) -> None:
    """All that is in the room ends at once, as when the engine ends it."""
    for pid in [process.pid for process in room.processes] + zygotes(room):
        os.kill(pid, signal.SIGKILL)


def zygote_alone(room: LocalRoom) -> None:
    """What a candidate would do to its zygote if it could."""
    for pid in zygotes(room):
        os.kill(pid, signal.SIGKILL)


async def killed(task: Task, *deeds: Deed) -> str:
    """The reading of a slow candidate to whose rooms this is done, one after the other, while it runs."""
    referee, rooms, said = EvalPlusReferee({"min_time_s": 20.0}), LocalRooms(), []
    right = Exhibit(tree=referee.reference(task.sealed))
    await referee.judge(right, task.open, task.sealed, LocalRooms())

    async def judge() -> None:
        said.append((await referee.judge(SLOW, task.open, task.sealed, rooms)).reading)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(judge)
        for number, deed in enumerate(deeds, start=1):
            while len(rooms.opened) < number:  # noqa: ASYNC110 - it opens by itself
                await anyio.sleep(0.01)
            await anyio.sleep(1.0)
            deed(rooms.opened[-1])
    return said[0]


async def test_a_room_that_is_lost_twice_is_nobody_s_crash(task: Task) -> None:
    """It says nothing of the candidate: no candidate can end a room."""
    with pytest.raises(ExceptionGroup) as raised:
        await killed(task, whole_room, whole_room)
    assert [type(error) for error in raised.value.exceptions] == [WorkspaceError]
    assert "the room was lost" in str(raised.value.exceptions[0])


async def test_a_zygote_that_is_lost_twice_is_the_candidate_s_crash(task: Task) -> None:
    """Its room goes on, and says how the zygote ended."""
    assert await killed(task, zygote_alone, zygote_alone) == "CRASH"
