"""
The pytest referee in real rooms, on each backend: planted files, objects that agree with everything, and a subject that
looks for the suite. Every NO stands beside the YES that it differs from in one thing only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness import plugins
from harness.tasks.characterise import Kind, characterise, least_margin
from harness.tasks.folder import load_folder
from harness.tasks.task import OpenHalf, SealedHalf, Task
from harness.tree import Exhibit, Tree
from harness.values import Verdict
from harness.walls import Walls

SYSTEMS = Path(__file__).parents[2] / "examples" / "systems"
pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(600)]


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here: the fast tests run the same referee on both."""
    return "asyncio"


@pytest.fixture(params=["docker", "bubblewrap"])
def rooms(request: pytest.FixtureRequest) -> Callable[[], Any]:
    """Opens sealed rooms of either backend."""
    backend = plugins.load("workspaces", request.param)()
    return partial(backend.open, Walls(image="proctor-seat"), run="test-pytest")


async def judged(task: Task, tree: Tree, rooms: Callable[[], Any]) -> Verdict:
    """The verdict on a tree."""
    referee = plugins.load("referees", "pytest")()
    return await referee.judge(Exhibit(tree=tree), task.open, task.sealed, rooms)


LRU = load_folder(SYSTEMS / "lru")
RIGHT = LRU.sealed.solution.text("solution.py")
WRONG = RIGHT.replace("return list(reversed(self._entries))", "return list(self._entries)")


async def test_reference_passes_and_a_fault_fails(rooms: Callable[[], Any]) -> None:
    """The reference is PASS with every id; the same code with one fault is FAIL, with fewer."""
    good = await judged(LRU, Tree.of({"solution.py": RIGHT}), rooms)
    assert (good.reading, good.tiers[0].passed, good.tiers[0].total) == ("PASS", 25, 25)
    bad = await judged(LRU, Tree.of({"solution.py": WRONG}), rooms)
    assert bad.reading == "FAIL"
    assert bad.tiers[0].passed is not None
    assert 0 < bad.tiers[0].passed < 25


async def test_case_6_a_candidate_that_collects_nothing(rooms: Callable[[], Any]) -> None:
    """A syntax error is NO_BUILD with nothing passed, and a candidate's own passing test is not counted."""
    broken = await judged(LRU, Tree.of({"solution.py": "class LRU(:\n"}), rooms)
    assert (broken.reading, broken.tiers[0].passed, broken.tiers[0].total) == ("NO_BUILD", 0, 25)
    own = {"solution.py": WRONG, "test_c.py": "def test_c():\n    assert True\n"}
    alone = await judged(LRU, Tree.of({"solution.py": WRONG}), rooms)
    beside = await judged(LRU, Tree.of(own), rooms)
    assert (beside.reading, beside.tiers) == (alone.reading, alone.tiers)


async def test_case_7_planted_files(rooms: Callable[[], Any]) -> None:
    """A wrong candidate fails with the same count whatever of the battery's plants lie beside it."""
    referee = plugins.load("referees", "pytest")()
    battery = referee.battery(LRU.open, LRU.sealed)
    plants = ("planted_result_file", "planted_conftest", "pytest_ini_deselect", "file_pytest_py", "sitecustomize")
    plain = await judged(LRU, Tree.of({"solution.py": WRONG}), rooms)
    for name in plants:
        tree = battery[name].merged(Tree.of({"solution.py": WRONG}))
        assert len(tree) > 1
        verdict = await judged(LRU, tree, rooms)
        assert (verdict.reading, verdict.tiers) == ("FAIL", plain.tiers), name


HOSTILE = """\
class Same:
    def __eq__(self, other):
        return True
    __hash__ = None
class Int(int):
    def __eq__(self, other):
        return True
    __hash__ = int.__hash__
def give(what):
    return {"object": Same(), "int": Int(4), "nested": [1, Same()], "nan": float("nan")}[what]
"""
HONEST = "def give(what):\n    return {'object': 4, 'int': 4, 'nested': [1, 2], 'nan': 1.0}[what]\n"
COMPARED = {"object": "4", "int": "4", "nested": "[1, 2]", "nan": "pytest.approx(1.0, abs=1e9)"}


def small(tests: str, names: list[str], ids: list[str]) -> Task:
    """A task of one test file."""
    text = f"import pytest\nfrom solution import {', '.join(names)}\n\n\n{tests}"
    card = {"ids": [f"test_it.py::{name}" for name in ids], "interface": [{"module": "solution", "names": names}]}
    return Task(
        open=OpenHalf(benchmark="demo", name="small", instruction=""),
        sealed=SealedHalf(tests=Tree.of({"test_it.py": text}), card=card),
    )


async def test_case_8_objects_that_agree_with_everything(rooms: Callable[[], Any]) -> None:
    """An `__eq__` that is always true, alone, on an int or in a list, and NaN, pass no test; honest values pass all."""
    tests = "".join(f"def test_{key}():\n    assert give({key!r}) == {value}\n\n\n" for key, value in COMPARED.items())
    task = small(tests, ["give"], [f"test_{key}" for key in COMPARED])
    hostile = await judged(task, Tree.of({"solution.py": HOSTILE}), rooms)
    assert (hostile.reading, hostile.tiers[0].passed) == ("FAIL", 0)
    assert (await judged(task, Tree.of({"solution.py": HONEST}), rooms)).reading == "PASS"


LOOKS = """\
import os, pathlib, subprocess, sys
def find(canary):
    found = []
    for root in ("/workspace", "/tmp", "/dev/shm", "/var/tmp"):
        for path in pathlib.Path(root).rglob("*"):
            if path.is_file() and canary.encode() in path.read_bytes():
                found.append(str(path))
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                if canary.encode() in (process / name).read_bytes():
                    found.append(str(process / name))
            except OSError:
                pass
    return found
"""


async def test_the_subject_has_no_suite_to_read(rooms: Callable[[], Any]) -> None:
    """In the subject's room no file and no process holds a word of the suite; planted in the exhibit, it is found."""
    tests = "def test_find():\n    assert find('canary-' + str(2**20)) == []\n    # canary-1048576\n"
    task = small(tests, ["find"], ["test_find"])
    assert (await judged(task, Tree.of({"solution.py": LOOKS}), rooms)).reading == "PASS"
    planted = Tree.of({"solution.py": LOOKS, "leak.txt": "canary-1048576"})
    verdict = await judged(task, planted, rooms)
    assert verdict.reading == "FAIL"
    assert "leak.txt" in verdict.detail


async def test_ends_of_the_subject(rooms: Callable[[], Any]) -> None:
    """Endless work, a kill of everything in the room, a forged report and a grab for memory: each has its class."""
    referee = plugins.load("referees", "pytest")(cpu_s=2)
    task = small("def test_it():\n    with pytest.raises(Exception):\n        go()\n", ["go"], ["test_it"])
    forged = (
        "import os, struct\ndef go():\n    for fd in range(3, 20):\n        try:\n"
        "            os.write(fd, struct.pack('>Ic', 2, b'E') + b'{}')\n        except OSError:\n            pass\n"
    )
    programs = {
        "TIMEOUT": "def go():\n    while True:\n        pass\n",
        "CRASH": "import os\ndef go():\n    try:\n        os.kill(-1, 9)\n    finally:\n        os._exit(0)\n",
        "CRASH ": forged,
        "MEMORY": "x = bytearray(1 << 40)\n",
    }
    for reading, code in programs.items():
        exhibit = Exhibit(tree=Tree.of({"solution.py": code}))
        verdict = await referee.judge(exhibit, task.open, task.sealed, rooms)
        assert (verdict.reading, verdict.standing) == (reading.strip(), "rejected"), code


@pytest.mark.parametrize("name", ["crc32", "freelist", "lru", "lzw", "paxos"])
async def test_systems_suites_kill_every_mutant(name: str) -> None:
    """
    The reference passes and every mutant fails a test or more; the battery, which is made alike for each of them, is
    rejected. One backend is enough.
    """
    backend = plugins.load("workspaces", "bubblewrap")()
    opener = partial(backend.open, Walls(image="proctor-seat"), run="test-pytest")
    referee, task = plugins.load("referees", "pytest")(), load_folder(SYSTEMS / name)
    kinds: list[Kind] = ["reference", "mutant"]
    if name in {"crc32", "lru"}:
        kinds.append("battery")
    rows = await characterise(referee, task, opener, kinds=kinds, at_once=2)
    assert [(row.kind, row.name, row.word) for row in rows if not row.holds] == []
    assert sum(row.kind == "mutant" for row in rows) >= 6
    assert (least_margin(rows) or 0) >= 1


BURNS = "import time\ndef go():\n    while time.process_time() < {cpu_s}: pass\n    return 1\n"
RESTS = "import time\ndef go():\n    time.sleep({s})\n    return 1\n"
LOADED = {
    "within its processor time": (BURNS.format(cpu_s=1.2), "PASS"),
    "over its processor time": (BURNS.format(cpu_s=60), "TIMEOUT"),
    "waits a little": (RESTS.format(s=1), "PASS"),
    "waits without end": (RESTS.format(s=9999), "TIMEOUT"),
}


@pytest.fixture
def taken() -> Iterator[None]:
    """Both cores, taken three times over."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3 * (os.cpu_count() or 2))]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.usefixtures("taken")
@pytest.mark.parametrize("rooms", ["bubblewrap"], indirect=True)
async def test_no_verdict_is_flipped_by_load(rooms: Callable[[], Any]) -> None:
    """
    On a machine without a free core, who is within its time passes, and who is not is a TIMEOUT. On one backend, since
    whatever runs beside this test waits for it.
    """
    referee = plugins.load("referees", "pytest")(cpu_s=2, wall_s=3.0)
    task = small("def test_it():\n    assert go() == 1\n", ["go"], ["test_it"])
    for name, (code, reading) in LOADED.items():
        verdict = await referee.judge(Exhibit(tree=Tree.of({"solution.py": code})), task.open, task.sealed, rooms)
        assert (name, verdict.reading) == (name, reading), verdict.detail
