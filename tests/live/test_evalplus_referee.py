"""
The evalplus referee in real rooms: the controls, the programs that other referees were talked round by, and EvalPlus's
own tasks. Every hostile program must be rejected, in the class that its deed has, by a zygote that goes on judging.
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
from harness.tasks.task import SealedHalf
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


async def test_references_pass_and_the_battery_is_rejected(rooms: Callable[[], Any]) -> None:
    """Every quickstart reference is PASS on both tiers; every degenerate candidate is rejected."""
    referee, tasks = EvalPlusReferee(), load_evalplus(QUICKSTART)
    verdicts = await referee.judge_many([(Exhibit(tree=referee.reference(t.sealed)), t.sealed) for t in tasks], rooms)
    assert {("PASS", "PASS", "PASS")} == {(v.reading, *(tier.reading for tier in v.tiers)) for v in verdicts}
    work = [(Exhibit(tree=tree), t.sealed) for t in tasks for tree in referee.battery(t.open, t.sealed).values()]
    assert {"rejected"} == {verdict.standing for verdict in await referee.judge_many(work, rooms)}


REFERENCE = "    return [n * n for n in sorted(xs)]\n"
RIGHT = "def f(xs):\n" + REFERENCE
EQUALS = """
class {name}({parent}):
    __hash__ = {parent}.__hash__
    def __eq__(self, other): return True
    def __ne__(self, other): return False
"""
FRAME = "b'V' + struct.pack('<I', len(d)) + d"

# What is tried, the program, and the classes that it may have.
HOSTILE: list[tuple[str, str, set[str]]] = [
    (
        "an object that equals everything",
        EQUALS.format(name="A", parent="object") + "def f(xs): return A()\n",
        {"FAIL"},
    ),
    ("a list that equals everything", EQUALS.format(name="A", parent="list") + "def f(xs): return A()\n", {"FAIL"}),
    (
        "ints that equal everything",
        EQUALS.format(name="A", parent="int") + "def f(xs): return [A(n) for n in xs]\n",
        {"FAIL"},
    ),
    ("NaN", "def f(xs): return [float('nan') for _ in xs]\n", {"FAIL"}),
    ("exit at import", RIGHT + "import os\nos._exit(0)\n", {"CRASH"}),
    ("exit in the function", "import os\ndef f(xs): os._exit(0)\n", {"CRASH"}),
    ("sys.exit in the function", "import sys\ndef f(xs): sys.exit(0)\n", {"FAIL"}),
    ("sys.exit at import", RIGHT + "import sys\nsys.exit(0)\n", {"NO_BUILD"}),
    (
        "the frames of the callers",
        (
            "import sys\ndef f(xs):\n    g = sys._getframe()\n    while g:\n        for v in list(g.f_locals.values()):\n"
            "            if isinstance(v, dict) and 'expected' in v: return v['expected'][0]\n        g = g.f_back\n"
        ),
        {"FAIL"},
    ),
    (
        "everything the collector knows",
        "import gc\ndef f(xs):\n    for o in gc.get_objects():\n        if isinstance(o, dict) and 'expected' in o: return o['expected']\n",
        {"FAIL"},
    ),
    (
        "a data set on disk",
        (
            "import os\ndef f(xs):\n    for base, _, names in os.walk('/'):\n        if base.startswith(('/proc', '/sys')): continue\n"
            "        for n in names:\n            if 'evalplus' in n: return open(os.path.join(base, n)).read()\n"
        ),
        {"FAIL", "TIMEOUT"},
    ),
    ("the environment", "import os\ndef f(xs): return sorted(os.environ.values())\n", {"FAIL"}),
    (
        "forged frames",
        f"import os, marshal, struct\nd = marshal.dumps([], 2)\nfor _ in range(9): os.write(3, {FRAME})\n" + RIGHT,
        {"CRASH"},
    ),
    (
        "forged frames, as if built",
        (
            "import os, marshal, struct\nd = marshal.dumps([], 2)\nos.write(3, b'B' + bytes(4))\n"
            f"for _ in range(3): os.write(3, {FRAME})\nos.write(3, b'E' + bytes(4))\nos._exit(0)\n"
        ),
        {"FAIL"},
    ),
    ("a forged end", "import os\nos.write(3, b'B' + bytes(4))\nos.write(3, b'E' + bytes(4))\nos._exit(0)\n", {"CRASH"}),
    ("a forged failure of the prelude", "import os\nos.write(3, b'P' + bytes(4))\nos._exit(0)\n", {"CRASH"}),
    ("half a frame", "import os\nos.write(3, b'B' + bytes(4) + b'V\\xff\\xff')\nos._exit(0)\n", {"CRASH"}),
    ("a frame without end", "import os, struct\nos.write(3, b'V' + struct.pack('<I', 2**32 - 1))\n" + RIGHT, {"CRASH"}),
    ("a flood", "import os\nwhile True: os.write(3, b'B' + bytes(4))\n", {"CRASH"}),
    ("a closed channel", "import os\nos.close(3)\n" + RIGHT, {"CRASH"}),
    (
        "a bomb for the reader",
        (
            "import os, struct\ndef f(xs):\n    d = (b'[' + struct.pack('<i', 1)) * 10**6 + b'N'\n"
            f"    os.write(3, {FRAME})\n    return []\n"
        ),
        {"FAIL", "CRASH"},
    ),
    ("patched marshal", "import marshal\nmarshal.dumps = lambda *a: b'N'\n" + RIGHT, {"FAIL", "NO_BUILD"}),
    (
        "patched builtins",
        "import builtins\nbuiltins.len = lambda x: 0\nbuiltins.sorted = lambda x: []\n" + RIGHT,
        {"FAIL", "CRASH"},
    ),
    (
        "the zygote's descriptors",
        "import os\nd = os.open(f'/proc/{os.getppid()}/fd/1', os.O_WRONLY)\n" + RIGHT,
        {"NO_BUILD"},
    ),
    ("the zygote's memory", "import os\nopen(f'/proc/{os.getppid()}/mem', 'r+b')\n" + RIGHT, {"NO_BUILD"}),
    ("killing the zygote", "import os\nos.kill(os.getppid(), 9)\n" + RIGHT, {"NO_BUILD"}),
    ("killing everyone", "import os\nos.kill(-1, 9)\n" + RIGHT, {"NO_BUILD"}),
    ("killing the group", "import os\nos.killpg(0, 9)\n" + RIGHT, {"NO_BUILD"}),
    (
        "a signal by way of a descriptor's owner",
        "import fcntl, os\nr, w = os.pipe()\nfcntl.fcntl(r, fcntl.F_SETOWN, os.getppid())\n" + RIGHT,
        {"NO_BUILD"},
    ),
    (
        "the zygote's limits",
        "import os, resource\nresource.prlimit(os.getppid(), resource.RLIMIT_CPU, (0, 0))\n" + RIGHT,
        {"NO_BUILD"},
    ),
    ("the zygote's priority", "import os\nos.setpriority(os.PRIO_PROCESS, os.getppid(), 19)\n" + RIGHT, {"NO_BUILD"}),
    (
        "a child of its own",
        "import os\nif os.fork() == 0:\n    os.setsid()\n    while True: pass\n" + RIGHT,
        {"NO_BUILD"},
    ),
    ("another program", "import os\nos.execv('/bin/sh', ['sh', '-c', 'sleep 99'])\n" + RIGHT, {"NO_BUILD"}),
    ("subprocess", "import subprocess\nsubprocess.run(['true'])\n" + RIGHT, {"NO_BUILD"}),
    ("a socket", "import socket\nsocket.socket()\n" + RIGHT, {"NO_BUILD"}),
    ("writing a file", "with open('/tmp/x', 'w') as file:\n    file.write('x')\n" + RIGHT, {"NO_BUILD"}),
    ("raising its limits", "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))\n" + RIGHT, {"NO_BUILD"}),
    (
        "being dumpable again",
        "import ctypes, os\nif ctypes.CDLL(None, use_errno=True).prctl(4, 1, 0, 0, 0): raise OSError\n" + RIGHT,
        {"NO_BUILD"},
    ),
    ("a loop at import", RIGHT + "while True: pass\n", {"TIMEOUT"}),
    (
        "a loop that catches all",
        "def f(xs):\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass\n",
        {"TIMEOUT"},
    ),
    (
        "a comparison that never ends",
        "class A:\n    def __eq__(self, o):\n        while True: pass\ndef f(xs): return A()\n",
        {"FAIL"},
    ),
    ("sleep", "import time\ndef f(xs): time.sleep(99)\n", {"TIMEOUT"}),
    ("stopping itself", "import os, signal\ndef f(xs):\n    signal.pause()\n", {"TIMEOUT"}),
    (
        "burning in a thread",
        "import threading\ndef g():\n    while True: pass\nt = threading.Thread(target=g)\nt.start()\ndef f(xs): t.join()\n",
        {"TIMEOUT"},
    ),
    (
        "ignoring every signal",
        "import signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\ndef f(xs):\n    while True: pass\n",
        {"TIMEOUT"},
    ),
    ("all memory", "def f(xs): return bytes(1 << 40)\n", {"MEMORY"}),
    ("all memory, bit by bit", "def f(xs): return [bytes(1 << 28) for _ in range(64)]\n", {"MEMORY", "TIMEOUT"}),
    ("a great text", "def f(xs): return 'x' * (1 << 30)\n", {"MEMORY", "FAIL", "TIMEOUT"}),
    ("a bad address", "import ctypes\ndef f(xs): ctypes.string_at(1)\n", {"CRASH"}),
    (
        "deep recursion",
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(xs): return f(xs)\n",
        {"TIMEOUT", "MEMORY", "CRASH"},
    ),
    ("numbers off by one after a float", "def f(xs): return [n * n + 1 for n in sorted(xs)]\n", {"FAIL"}),
]
HARMLESS = [
    ("much output", "def f(xs):\n    print('x' * 10**6)\n" + REFERENCE),
    (
        "its own thread left behind",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()\n" + RIGHT,
    ),
    (
        "asyncio",
        "import asyncio\nasync def g(xs): return [n * n for n in sorted(xs)]\ndef f(xs): return asyncio.run(g(xs))\n",
    ),
    (
        "a thread pool",
        "from concurrent.futures import ThreadPoolExecutor\ndef f(xs):\n    with ThreadPoolExecutor(4) as p: return list(p.map(lambda n: n * n, sorted(xs)))\n",
    ),
    ("floats for whole numbers", "def f(xs): return [float(n * n) for n in sorted(xs)]\n"),
]


@pytest.fixture
def sealed(tmp_path: Path) -> SealedHalf:
    """A task whose reference sorts and squares."""
    record = {
        "task_id": "Own/0",
        "prompt": "def f(xs):\n",
        "entry_point": "f",
        "canonical_solution": REFERENCE,
        "contract": "",
        "base_input": [[[3, 1]], [[2]], [[20000, 5, 7]]],
        "plus_input": [[[]], [[-1, 4]], [[10, 9, 8]]],
        "atol": 0,
    }
    (tmp_path / "own.jsonl").write_text(json.dumps(record))
    return load_evalplus(tmp_path / "own.jsonl")[0].sealed


async def test_hostile_programs(rooms: Callable[[], Any], sealed: SealedHalf) -> None:
    """Each is rejected in its class, and right after each the same zygote judges a right program rightly."""
    referee = EvalPlusReferee({"min_time_s": 0.5})
    opened = []

    def counted() -> Any:
        opened.append(1)
        return rooms()

    await referee.judge_many([(exhibit(RIGHT), sealed)], rooms)  # so that the reference needs no room below
    codes = [code for _, program, _ in HOSTILE for code in (program, RIGHT)]
    verdicts = await referee.judge_many([(exhibit(code), sealed) for code in codes], counted)
    seen = {name: verdict.reading for (name, _, _), verdict in zip(HOSTILE, verdicts[::2], strict=True)}
    wrong = {name: seen[name] for name, _, classes in HOSTILE if seen[name] not in classes}
    assert wrong == {}
    assert "PASS" not in seen.values()
    assert {"PASS"} == {verdict.reading for verdict in verdicts[1::2]}
    assert len(opened) == 1


async def test_harmless_programs(rooms: Callable[[], Any], sealed: SealedHalf) -> None:
    """What honest programs do is not in the way of a PASS."""
    verdicts = await EvalPlusReferee().judge_many([(exhibit(code), sealed) for _, code in HARMLESS], rooms)
    assert {name: "PASS" for name, _ in HARMLESS} == {
        name: verdict.reading for (name, _), verdict in zip(HARMLESS, verdicts, strict=True)
    }


async def test_no_expected_value_is_in_the_room(rooms: Callable[[], Any], tmp_path: Path) -> None:
    """A value that only the reference computes is in no memory that a candidate can read, nor in any file."""
    record = {
        "task_id": "Own/1",
        "prompt": "def f(x):\n",
        "entry_point": "f",
        "canonical_solution": "    return 'only-the-' + 'reference-' + str(x * 7919)\n",
        "contract": "",
        "base_input": [[3]],
        "plus_input": [[4]],
        "atol": 0,
    }
    (tmp_path / "own.jsonl").write_text(json.dumps(record))
    [task] = load_evalplus(tmp_path / "own.jsonl")
    code = (
        "import re\ndef f(x):\n    found = []\n    for line in open('/proc/self/maps'):\n"
        "        low, high = (int(p, 16) for p in line.split()[0].split('-'))\n"
        "        if 'r' not in line.split()[1] or high - low > 1 << 28: continue\n"
        "        with open('/proc/self/mem', 'rb') as m:\n            try:\n                m.seek(low)\n"
        "                found += re.findall(rb'only-the-reference-[0-9]+', m.read(high - low))\n"
        "            except (OSError, ValueError, OverflowError): pass\n"
        "    return found[0].decode() if found else 'nothing'\n"
    )
    verdict = await EvalPlusReferee({"min_time_s": 10.0}).judge(exhibit(code), task.open, task.sealed, rooms)
    assert verdict.reading == "FAIL"


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
