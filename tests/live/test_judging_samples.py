"""
`proctor judge` as a person has it: a process of its own, real rooms, each backend. Programs of every kind land in their
class, and a judge that is interrupted and killed loses no verdict and repeats none.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

RIGHT = "def f(xs):\n    return [n * n for n in sorted(xs)]\n"
TASK = {
    "task_id": "Own/0",
    "prompt": "def f(xs):\n",
    "entry_point": "f",
    "canonical_solution": "    return [n * n for n in sorted(xs)]\n",
    "contract": "",
    "base_input": [[[3, 1]], [[2]]],
    "plus_input": [[[]], [[-1, 4]], [[10, 9, 8]]],
    "atol": 0,
}
PROGRAMS = [
    ("right", RIGHT, "PASS"),
    ("right, and says much", "print('x' * 10**6)\n" + RIGHT, "PASS"),
    ("wrong", "def f(xs):\n    return xs\n", "FAIL"),
    ("right on the public tests alone", RIGHT + "g = f\ndef f(xs):\n    return g(xs) if 4 not in xs else []\n", "FAIL"),
    ("broken", "def f(xs:\n", "NO_BUILD"),
    ("nothing", "", "INTERFACE_MISS"),
    ("no text", "\ud800", "NO_BUILD"),
    ("a loop", "def f(xs):\n    while True: pass\n", "TIMEOUT"),
    ("all memory", "def f(xs):\n    return bytes(1 << 40)\n", "MEMORY"),
    (
        "equal to everything",
        "class A(list):\n    def __eq__(self, other): return True\ndef f(xs): return A()\n",
        "FAIL",
    ),
    ("the end of the process", RIGHT + "import os\nos._exit(0)\n", "CRASH"),
    ("the zygote killed", RIGHT + "import os\nos.kill(os.getppid(), 9)\n", "NO_BUILD"),
    ("forged frames", "import os\nos.write(3, b'B' + bytes(4))\nos.write(3, b'E' + bytes(4))\nos._exit(0)\n", "CRASH"),
    ("a child of its own", RIGHT + "import os\nos.fork()\n", "NO_BUILD"),
    ("the terminal", "def f(xs):\n    raise ValueError('\\x1b[2J\\nPASS')\n", "FAIL"),
]


@pytest.fixture(params=["docker", "bubblewrap"])
def backend(request: pytest.FixtureRequest) -> str:
    """Each backend."""
    return str(request.param)


def command(folder: Path, backend: str, *sources: str) -> list[str]:
    """The command that judges these programs, whose files lie in `folder`."""
    (folder / "own.jsonl").write_text(json.dumps(TASK))
    lines = [json.dumps({"task_id": "Own/0", "solution": source}) + "\n" for source in sources]
    (folder / "samples.jsonl").write_text("".join(lines))
    program = "from cells.cli import main; main()"
    words = ["judge", folder / "samples.jsonl", "--benchmark", "own", "--data", folder / "own.jsonl"]
    options = ["--backend", backend, "--workers", "2", "--min-time-s", "0.3", "--json"]
    return list(map(str, (sys.executable, "-c", program, *words, *options)))


def rows(folder: Path) -> list[dict[str, Any]]:
    """The results on the disk, the whole ones."""
    path = folder / "samples_proctor.jsonl"
    data = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def test_each_program_lands_in_its_class(backend: str, tmp_path: Path) -> None:
    """Right ones pass among hostile ones, and no hostile one does; the two tiers are two figures."""
    done = subprocess.run(
        command(tmp_path, backend, *(source for _, source, _ in PROGRAMS)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = {row["where"]: row["reading"] for row in rows(tmp_path)}
    seen = {name: found[f"line {number}"] for number, (name, _, _) in enumerate(PROGRAMS, 1)}
    assert seen == {name: reading for name, _, reading in PROGRAMS}
    summary = json.loads(done.stdout)
    assert {name: counts["plus"] for name, counts in summary["classes"].items()} == {
        **dict.fromkeys(("UNSCORABLE",), 0),
        **Counter(reading for _, _, reading in PROGRAMS),
    }
    assert summary["classes"]["PASS"]["base"] == summary["classes"]["PASS"]["plus"] + 1
    assert "\x1b" not in done.stderr
    assert summary["fence"]["facts_that_agree"] > 15


@contextmanager
def started(words: list[str]) -> Iterator[subprocess.Popen[str]]:
    """The command, running; dead at the end whatever happened."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(folder: Path, least: int, process: subprocess.Popen[str]) -> None:
    """Until so many results are on the disk."""
    until = time.monotonic() + 150
    while len(rows(folder)) < least:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_judge_that_is_interrupted_and_killed_goes_on(backend: str, tmp_path: Path) -> None:
    """Ctrl-C, then a kill that nobody can see coming: every verdict is kept, and none is made twice."""
    slow = "def f(xs):\n    sum(range(2 * 10**6))\n    return [n * n for n in sorted(xs)]\n"
    words = command(tmp_path, backend, *(f"# {number}\n{slow}" for number in range(30)))
    with started(words) as process:
        wait_for(tmp_path, 3, process)
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "interrupted: " in said
        assert "give the same command again" in said
    first = rows(tmp_path)
    with started(words) as process:
        wait_for(tmp_path, len(first) + 3, process)
        os.kill(process.pid, signal.SIGKILL)
    second = rows(tmp_path)
    assert second[: len(first)] == first
    assert len(second) < 30
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["samples"]["reused"] == len(second)
    assert summary["classes"]["PASS"]["plus"] == 30
    last = rows(tmp_path)
    assert last[: len(second)] == second
    assert sorted(row["sample"] for row in last) == list(range(30))
