"""
Rooms that are killed from outside while an honest program runs in them: the referee could not work, and nothing
is said of the program. No candidate of theirs can end its room: what each tries is in `test_hostile_candidates.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from harness import plugins
from harness.errors import Blamed
from harness.ports import Referee
from harness.tasks.evalplus import load_evalplus
from harness.tasks.task import Task
from harness.tree import Exhibit
from harness.walls import Caps, Walls
from referees.command import CommandReferee
from referees.evalplus import EvalPlusReferee
from referees.pytest_suite import PytestReferee
from tests.live.hostile import Candidate, command_candidates, pytest_candidates
from tests.live.images import seat_image

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(120)]

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "tasks.jsonl"
SLEEP = "import time\ntime.sleep(60)\n"
LIVES_S = 2.0
"""Seconds until a room is killed: enough for its program to run, and fewer than that sleeps for."""


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here: the fast tests run the same referees on both."""
    return "asyncio"


def kill_container(name: str) -> None:
    """As a person at the engine does."""
    subprocess.run(["docker", "kill", name], check=False, capture_output=True)


def kill_sandboxes(name: str) -> None:
    """Every process of the host that has the room's name in its command: bubblewrap's own, which take all with them."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if name.encode() in (place / "cmdline").read_bytes():
                os.kill(int(place.name), signal.SIGKILL)


KILLS: Mapping[str, Callable[[str], None]] = {"docker": kill_container, "bubblewrap": kill_sandboxes}


class Doomed:
    """Opens rooms that are killed after a while, from outside; `killed` names them."""

    def __init__(self, backend: str) -> None:
        walls = Walls(image=seat_image(), caps=Caps(memory_bytes=3 << 30))
        self.open = partial(plugins.load("workspaces", backend)().open, walls, run="test-lost")
        self.kill, self.killed = KILLS[backend], set[str]()

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Any]:
        """A room, and its end."""
        async with self.open() as room, anyio.create_task_group() as tasks:
            tasks.start_soon(self._end, room.name)
            try:
                yield room
            finally:
                tasks.cancel_scope.cancel()

    async def _end(self, name: str) -> None:
        await anyio.sleep(LIVES_S)
        self.killed.add(name)
        await anyio.to_thread.run_sync(self.kill, name)


def slept(task: Task, file: str = "solution.py") -> Candidate:
    """The task's own solution, asleep before it does anything."""
    return Candidate(task=task, files={file: SLEEP + task.sealed.solution.text(file)}, reading="PASS")


ASLEEP: Mapping[str, tuple[Referee, Candidate]] = {
    "evalplus": (EvalPlusReferee({"min_time_s": 60.0}), slept(load_evalplus(QUICKSTART)[0])),
    "command": (CommandReferee({"wall_s": 60.0}), slept(command_candidates.HONEST.task, "it.py")),
    "pytest": (PytestReferee({"wall_s": 60.0}), slept(pytest_candidates.TASK)),
}


@pytest.mark.parametrize("backend", list(KILLS))
@pytest.mark.parametrize("name", list(ASLEEP))
async def test_a_room_killed_from_outside_is_no_verdict(name: str, backend: str) -> None:
    """In the middle of a program, as often as it is tried: the referee raises what makes a try VOID."""
    referee, candidate = ASLEEP[name]
    task, rooms = candidate.task, Doomed(backend)
    opened: Callable[[], AbstractAsyncContextManager[Any]] = rooms.open
    right = await referee.judge(Exhibit(tree=referee.reference(task.sealed)), task.open, task.sealed, opened)
    assert right.reading == "PASS"
    with pytest.raises(Blamed, match="room"):
        await referee.judge(candidate.exhibit, task.open, task.sealed, rooms)
    assert rooms.killed
