"""A line of the evalplus referee: one kept room for many candidates, what becomes of a bad one, and kept verdicts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness.errors import RefereeError, WorkspaceError
from harness.tasks.evalplus import load_evalplus
from harness.tasks.task import Task
from harness.tree import Exhibit, Tree
from harness.values import Evidence, Verdict
from referees.evalplus import EvalPlusReferee
from referees.evalplus_cache import VerdictCache
from tests.referees.local_room import LocalRoom, LocalRooms

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

RIGHT = "def f(x):\n    return x + 1\n"
WRONG = "def f(x):\n    return x\n"


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Suites and verdicts are kept below the test's own folder."""
    monkeypatch.setenv("PROCTOR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """Add one."""
    record = {
        "task_id": "Own/0",
        "prompt": "def f(x):\n",
        "entry_point": "f",
        "canonical_solution": "    return x + 1\n",
        "contract": "",
        "base_input": [[1], [2]],
        "plus_input": [[10]],
        "atol": 0,
    }
    (tmp_path / "own.jsonl").write_text(json.dumps(record))
    return load_evalplus(tmp_path / "own.jsonl")[0]


def exhibit(code: str) -> Exhibit:
    """What a seat left."""
    return Exhibit(tree=Tree.of({"solution.py": code}))


async def judged(referee: EvalPlusReferee, task: Task, code: str, rooms: Any, **keeping: Any) -> Verdict:
    """The verdict on a line of its own."""
    async with referee.line(rooms, **keeping) as line:
        return await line.judge(exhibit(code), task.open, task.sealed)


@pytest.mark.live
async def test_candidates_share_a_room_and_references_have_another(task: Task) -> None:
    """However they end, candidates of a line are judged in one room; the reference ran once, in one of its own."""
    referee, rooms = EvalPlusReferee({"min_time_s": 0.2}), LocalRooms()
    crash, loop = "import os\nos._exit(0)\n", "while True: pass\n"
    async with referee.line(rooms) as line:
        codes = [RIGHT, WRONG, crash, RIGHT, loop, "def", RIGHT]
        said = [(await line.judge(exhibit(code), task.open, task.sealed)).reading for code in codes]
    assert said == ["PASS", "FAIL", "CRASH", "PASS", "TIMEOUT", "NO_BUILD", "PASS"]
    assert len(rooms.opened) == 2
    assert (await judged(referee, task, RIGHT, rooms)).reading == "PASS"
    assert len(rooms.opened) == 3


@pytest.mark.live
async def test_lines_side_by_side_run_a_reference_once(task: Task) -> None:
    """Two lines that need the same expected values at once wait for one run; then its weight is known."""
    referee, rooms = EvalPlusReferee(), LocalRooms()
    assert referee.weight(task.sealed) == 0
    async with anyio.create_task_group() as tasks:
        for code in (RIGHT, WRONG):
            tasks.start_soon(judged, referee, task, code, rooms)
    assert len(rooms.opened) == 3
    assert referee.weight(task.sealed) > 0
    assert EvalPlusReferee().weight(task.sealed) == referee.weight(task.sealed)


class Failing(LocalRooms):
    """The first `failures` rooms can't be opened."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[LocalRoom]:
        """A room, or none."""
        if self.failures:
            self.failures -= 1
            raise WorkspaceError("no room")
        async with super().__call__() as room:
            yield room


@pytest.mark.live
async def test_a_line_goes_on_after_a_failure_of_ours(task: Task) -> None:
    """A room that fails once is tried again; twice, and it is told; the next candidate is judged all the same."""
    referee = EvalPlusReferee()
    assert (await judged(referee, task, RIGHT, Failing(1))).reading == "PASS"
    async with referee.line(Failing(2)) as line:
        with pytest.raises(WorkspaceError, match="no room"):
            await line.judge(exhibit(RIGHT), task.open, task.sealed)
        assert (await line.judge(exhibit(RIGHT), task.open, task.sealed)).reading == "PASS"


class Unclosing(LocalRooms):
    """Rooms that say at their end that they could not be closed."""

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[LocalRoom]:
        """A room."""
        async with super().__call__() as room:
            yield room
        raise WorkspaceError("it goes on")


@pytest.mark.live
async def test_a_room_that_can_t_be_closed_is_told(task: Task) -> None:
    """Verdicts that were had are had; at its end the line says that a room of its is still there."""
    said = []
    with pytest.raises(WorkspaceError, match="it goes on"):
        async with EvalPlusReferee().line(Unclosing()) as line:
            said.append(await line.judge(exhibit(RIGHT), task.open, task.sealed))
    assert [verdict.reading for verdict in said] == ["PASS"]


async def test_what_its_user_raises_is_not_wrapped() -> None:
    """An error inside the block comes out as it is."""
    with pytest.raises(KeyError, match="mine"):
        async with EvalPlusReferee().line(LocalRooms()):
            raise KeyError("mine")


@pytest.mark.live
async def test_a_kept_verdict(task: Task, own_home: Path) -> None:
    """It is that of the execution that made it and needs no room; another image or source is another verdict."""
    referee, keeping = EvalPlusReferee(), {"cache": VerdictCache(), "image": "sha256:a"}
    first = await judged(referee, task, RIGHT, LocalRooms(), **keeping)
    assert await judged(referee, task, RIGHT, Failing(99), **keeping) == first
    other_image = await judged(referee, task, RIGHT, LocalRooms(), **{**keeping, "image": "sha256:b"})
    assert other_image.same_as(first)
    assert other_image.evidence.execution != first.evidence.execution
    assert (await judged(referee, task, WRONG, LocalRooms(), **keeping)).reading == "FAIL"
    again = await referee.judge(exhibit(RIGHT), task.open, task.sealed, LocalRooms())
    assert again.evidence.execution != first.evidence.execution
    for path in (own_home / "verdicts").glob("*/*"):
        path.write_bytes(path.read_bytes()[:-1] + b" ")
    assert (await judged(referee, task, RIGHT, LocalRooms(), **keeping)).evidence.execution not in {
        first.evidence.execution,
        again.evidence.execution,
    }


def test_a_cache_needs_an_image() -> None:
    """Without its digest a verdict would be kept for any image."""
    with pytest.raises(ValueError, match="expected `image`"):
        EvalPlusReferee().line(LocalRooms(), cache=VerdictCache())


@pytest.mark.live
async def test_who_gave_up_waiting_costs_no_room(task: Task) -> None:
    """A request that was cancelled before its turn is passed over."""
    referee, rooms, said = EvalPlusReferee({"min_time_s": 20.0}), LocalRooms(), []
    await judged(referee, task, RIGHT, LocalRooms())

    async def ask(code: str, patience_s: float) -> None:
        with anyio.move_on_after(patience_s):
            said.append((await line.judge(exhibit(code), task.open, task.sealed)).reading)

    async with referee.line(rooms) as line, anyio.create_task_group() as tasks:
        slow = "import time\ntime.sleep(1.5)\n" + RIGHT
        for code, patience_s in ((slow, 50), (RIGHT, 0.5), (WRONG, 50)):
            tasks.start_soon(ask, code, patience_s)
            await anyio.sleep(0.1)
    assert said == ["PASS", "FAIL"]
    assert len(rooms.opened) == 1


VERDICT = Verdict(reading="PASS", standing="accepted", evidence=Evidence(code="c", suite="s", execution="e"))


def test_a_cache_answers_what_it_was_asked(tmp_path: Path) -> None:
    """Only for all three digests, only what is whole and about them, and never what could not be decided."""
    damaged: list[Path] = []
    cache = EvalPlusReferee().cache_at(tmp_path, damaged=damaged.append)
    cache.put(VERDICT, image="i")
    assert cache.get(suite="s", image="i", source="c") == VERDICT
    assert cache.found == 1
    for other in ({"suite": "x"}, {"image": "x"}, {"source": "x"}):
        assert cache.get(**{"suite": "s", "image": "i", "source": "c", **other}) is None
    [kept] = tmp_path.glob("*/*")
    moved = VerdictCache(tmp_path / "other")
    moved.put(replace(VERDICT, evidence=replace(VERDICT.evidence, code="d")), image="i")
    [other_kept] = (tmp_path / "other").glob("*/*")
    kept.write_bytes(other_kept.read_bytes())
    assert cache.get(suite="s", image="i", source="c") is None
    for nonsense in (b"nonsense", b""):
        kept.write_bytes(nonsense)
        assert cache.get(suite="s", image="i", source="c") is None
    assert (damaged, cache.found) == ([kept] * 3, 1)
    cache.put(VERDICT, image="i")
    assert cache.get(suite="s", image="i", source="c") == VERDICT
    cache.put(replace(VERDICT, reading="UNSCORABLE", standing="unscorable"), image="j")
    assert cache.get(suite="s", image="j", source="c") is None


def test_a_cache_that_can_t_be_written_keeps_nothing(tmp_path: Path) -> None:
    """That costs time later, and nothing else."""
    (tmp_path / "file").write_text("")
    cache = VerdictCache(tmp_path / "file" / "below")
    cache.put(VERDICT, image="i")
    assert cache.get(suite="s", image="i", source="c") is None


@pytest.mark.live
async def test_a_line_that_is_left_has_no_room(task: Task) -> None:
    """A room is closed with the line; who still waits there is told that it was closed."""
    rooms, told = LocalRooms(), []

    async def wait(line: Any) -> None:
        try:
            await line.judge(exhibit("import time\ntime.sleep(9)\n"), task.open, task.sealed)
        except RefereeError as error:
            told.append(str(error))

    referee = EvalPlusReferee({"min_time_s": 20.0})
    await judged(referee, task, RIGHT, LocalRooms())
    async with anyio.create_task_group() as tasks, referee.line(rooms) as line:
        for _ in range(2):
            tasks.start_soon(wait, line)
        while not rooms.opened:  # noqa: ASYNC110 - it opens by itself
            await anyio.sleep(0.01)
        await anyio.sleep(0.5)
    assert told == ["the line was closed while it judged"] * 2
    assert all(process.returncode is not None for room in rooms.opened for process in room.processes)
