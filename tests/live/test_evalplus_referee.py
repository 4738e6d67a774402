"""
The evalplus referee in real rooms: the controls, what a candidate could find, and EvalPlus's own tasks. Hostile
programs by the dozen are in `test_hostile_candidates.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness import environment
from harness.plugins import load
from harness.tasks.evalplus import load_evalplus
from harness.tasks.task import Task
from harness.tree import Exhibit, Tree
from harness.walls import Caps, Walls
from referees.evalplus import EvalPlusReferee

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "tasks.jsonl"
pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(600)]


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here: the fast tests run the same referee on both."""
    return "asyncio"


@pytest.fixture(params=["docker", "bubblewrap"])
def rooms(request: pytest.FixtureRequest) -> Callable[[], Any]:
    """Opens sealed rooms of either backend."""
    backend = load("workspaces", request.param)()
    walls = Walls(image="proctor-seat", caps=Caps(memory_bytes=3 << 30))
    return partial(backend.open, walls, run="test-evalplus")


def exhibit(code: str) -> Exhibit:
    """What a seat left."""
    return Exhibit(tree=Tree.of({"solution.py": code}))


def own(folder: Path, **changes: Any) -> Task:
    """A task of the test's own, whose entry point is `f(x)`."""
    record = {"task_id": "Own/0", "prompt": "def f(x):\n", "entry_point": "f", "contract": "", "atol": 0, **changes}
    (folder / "own.jsonl").write_text(json.dumps(record))
    return load_evalplus(folder / "own.jsonl")[0]


async def test_references_pass_and_the_battery_is_rejected(rooms: Callable[[], Any]) -> None:
    """Every quickstart reference is PASS on both tiers; every degenerate candidate is rejected."""
    referee, tasks = EvalPlusReferee(), load_evalplus(QUICKSTART)
    verdicts = await referee.judge_many([(Exhibit(tree=referee.reference(t.sealed)), t.sealed) for t in tasks], rooms)
    assert {("PASS", "PASS", "PASS")} == {(v.reading, *(tier.reading for tier in v.tiers)) for v in verdicts}
    work = [(Exhibit(tree=tree), t.sealed) for t in tasks for tree in referee.battery(t.open, t.sealed).values()]
    assert {"rejected"} == {verdict.standing for verdict in await referee.judge_many(work, rooms)}


# A right candidate that tries to leave something behind in every way, its own text and values in memory included.
LEAVES = """
import mmap, os
MARK = "left-by-" + "the-first"
kept = [MARK * 1000, "left-by-the-first" * 1000]
def attempt(deed, *args):
    try:
        deed(*args)
    except Exception:
        pass
for folder in ("/tmp", "/workspace", "/dev/shm", "/dev/mqueue", "/var/tmp"):
    name = f"{folder}/{MARK}"
    attempt(lambda: os.close(os.open(name, os.O_CREAT | os.O_WRONLY)))
    attempt(lambda: os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR)))
    attempt(os.mkdir, name)
    attempt(os.mkfifo, name)
    attempt(os.symlink, MARK, name)
    attempt(os.link, "/etc/passwd", name)
    attempt(os.rename, folder, name)
    attempt(os.chmod, folder, 0o700)
    attempt(os.utime, folder, (7919, 7919))
    attempt(os.setxattr, folder, "user.mark", MARK.encode())
attempt(lambda: kept.append(mmap.mmap(-1, 1 << 20, flags=mmap.MAP_SHARED).write(MARK.encode())))
def f(x):
    kept.append(x)
    return "answer-to-" + x
"""
# All that the process has in memory which it could write, freed parts included. `/proc/self/mem` is shut to it.
REMEMBERED = """
import ctypes, re
def remembered(pattern):
    for line in open("/proc/self/maps"):
        low, high = (int(part, 16) for part in line.split()[0].split("-"))
        if line.split()[1].startswith("rw") and high - low < 1 << 28:
            yield from re.findall(pattern, ctypes.string_at(low, high - low))
"""
# Right as well, but only if it finds anything of an earlier candidate: a name, a time, an attribute, bytes in memory.
FINDS = (
    REMEMBERED
    + """
import os
def traces():
    for folder in ("/tmp", "/workspace", "/dev/shm", "/dev/mqueue", "/var/tmp"):
        try:
            yield from (name for name in os.listdir(folder) if "left-by" in name)
            if os.stat(folder).st_mtime == 7919 or "user.mark" in os.listxattr(folder):
                yield folder
        except OSError:
            pass
    yield from remembered(rb"left-by-the-[f]irst|hidden-input-[0-9]")
found = list(traces())
def f(x):
    return "answer-to-" + x if found else None
"""
)


async def test_nothing_of_a_candidate_reaches_a_later_one(rooms: Callable[[], Any], tmp_path: Path) -> None:
    """
    On one line, in one room, a later candidate finds no name, text, input or value of an earlier one. What it looks
    with does find what is there: its own text.
    """
    task = own(tmp_path, canonical_solution="    return 'answer-to-' + x\n", base_input=[["public-input"]] * 2,
               plus_input=[["hidden-input-1"], ["hidden-input-2"]])  # fmt: skip
    codes = [LEAVES, FINDS, LEAVES, FINDS, FINDS + "mine = 'left-by-the-first'\n"]
    async with EvalPlusReferee({"min_time_s": 20.0}).line(rooms) as line:
        verdicts = [await line.judge(exhibit(code), task.open, task.sealed) for code in codes]
    assert [verdict.reading for verdict in verdicts] == ["PASS", "FAIL", "PASS", "FAIL", "PASS"]


async def test_no_expected_value_is_in_the_room(rooms: Callable[[], Any], tmp_path: Path) -> None:
    """A value that only the reference computes is in no memory of a candidate's; what is there would be found."""
    canonical = "    return 'only-the-' + 'reference-' + str(x * 7919)\n"
    task = own(tmp_path, canonical_solution=canonical, base_input=[[3]], plus_input=[[4]])
    looks = REMEMBERED + (
        "def f(x):\n"
        "    found = set(remembered(rb'only-the-[r]eference-[0-9]+'))\n"
        "    return (found & {b'only-the-%s-%d' % (b'reference', x * 7919)} or {b'nothing'}).pop().decode()\n"
    )
    knows = looks + "mine = [f'only-the-{name}-{x * 7919}'.encode() for name in ['reference'] for x in (3, 4)]\n"
    async with EvalPlusReferee({"min_time_s": 20.0}).line(rooms) as line:
        verdicts = [await line.judge(exhibit(code), task.open, task.sealed) for code in (looks, knows)]
    assert [verdict.reading for verdict in verdicts] == ["FAIL", "PASS"]


@pytest.mark.only_with("evalplus-files")
@pytest.mark.parametrize("benchmark", ["humaneval", "mbpp"])
async def test_evalplus_s_own_tasks(benchmark: str, rooms: Callable[[], Any]) -> None:
    """Of the real data sets a drawn part: references are PASS, stubs are not. Needs the files of both benchmarks."""
    assert environment.evalplus_override(benchmark) is not None, f"set {benchmark.upper()}_OVERRIDE_PATH"
    referee, tasks = EvalPlusReferee(), load_evalplus(benchmark, draw={"seed": 1, "n": 12})
    verdicts = await referee.judge_many([(Exhibit(tree=referee.reference(t.sealed)), t.sealed) for t in tasks], rooms)
    assert {t.open.name: "PASS" for t in tasks} == {
        t.open.name: v.reading for t, v in zip(tasks, verdicts, strict=True)
    }
    stubs = [(Exhibit(tree=referee.battery(t.open, t.sealed)["stub"]), t.sealed) for t in tasks]
    assert "PASS" not in {verdict.reading for verdict in await referee.judge_many(stubs, rooms)}


@pytest.mark.only_with("evalplus-files")
@pytest.mark.only_with("evalplus-package")
async def test_inputs_are_read_as_evalplus_reads_them() -> None:
    """Every input of MBPP+ is converted to the same values, of the same kinds, as by the evalplus package."""
    from evalplus.data.mbpp import mbpp_deserialize_inputs

    from harness.tasks.evalplus_inputs import convert_inputs

    tasks = load_evalplus("mbpp")
    for task in tasks:
        record = json.loads(task.sealed.tests["evalplus.json"])
        for key in ("base_input", "plus_input"):
            theirs = [list(args) for args in mbpp_deserialize_inputs(task.open.name, record[key])]
            assert repr(theirs) == repr(convert_inputs(task.open.name, record[key])), task.open.name
    assert len(tasks) == 378
