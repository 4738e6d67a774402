"""What is run a second time, and what is not: a limit of the processor's time says the same on any machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.tasks.evalplus import load_evalplus
from harness.tree import Exhibit, Tree
from harness.values import Verdict
from referees.evalplus import EvalPlusReferee
from tests.referees.local_room import LocalRooms

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture
def anyio_backend() -> str:
    """Both loops are tried in test_evalplus_line."""
    return "asyncio"


LIMIT = 0.4


async def verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, **options: float) -> Verdict:
    """On a task of one public and one hidden call, with `LIMIT` seconds a call."""
    monkeypatch.setenv("PROCTOR_HOME", str(tmp_path / "home"))
    record = {"task_id": "Own/0", "prompt": "def f(x):\n", "entry_point": "f", "canonical_solution": "    return x\n",
              "contract": "", "base_input": [[1]], "plus_input": [[2]], "atol": 0}  # fmt: skip
    (tmp_path / "own.jsonl").write_text(json.dumps(record))
    (task,) = load_evalplus(tmp_path / "own.jsonl")
    referee = EvalPlusReferee({"min_time_s": LIMIT, **options})
    return await referee.judge(Exhibit(tree=Tree.of({"solution.py": code})), task.open, task.sealed, LocalRooms())


@pytest.mark.parametrize(
    ("code", "limit"),
    [("def f(x):\n    while True:\n        pass\n", LIMIT), ("while True:\n    pass\n", 2 * LIMIT)],
    ids=["call", "build"],
)
async def test_a_loop_runs_out_of_its_limit_once(tmp_path, monkeypatch, code, limit):
    """A second run would take as long again and could say nothing else."""
    found = await verdict(tmp_path, monkeypatch, code)
    assert found.reading == "TIMEOUT"
    assert found.cpu_s is not None
    assert limit <= found.cpu_s < 2 * limit


async def test_what_waits_too_long_is_run_again(tmp_path, monkeypatch):
    """Waiting is measured by the clock, which a busy machine moves."""
    found = await verdict(tmp_path, monkeypatch, "import time\ndef f(x):\n    time.sleep(60)\n")
    assert (found.reading, found.seconds is not None and found.seconds > 2 * (LIMIT + 1)) == ("TIMEOUT", True)


async def test_a_large_text_for_whose_bytes_there_is_no_memory_is_memory(tmp_path, monkeypatch):
    """The value is there; what could not be made is what is sent of it."""
    code = "def f(x):\n    return 'x' * (300 << 20)\n"
    found = await verdict(tmp_path, monkeypatch, code, memory_bytes=512 << 20)
    assert (found.reading, found.tests[0].reading) == ("MEMORY", "MEMORY")


async def test_what_is_nested_too_deep_for_its_bytes_is_no_plain_data(tmp_path, monkeypatch):
    """Its depth, and no memory, is why it can't be sent."""
    code = "def f(x):\n    for _ in range(5000):\n        x = [x]\n    return x\n"
    found = await verdict(tmp_path, monkeypatch, code)
    assert found.reading == "FAIL"
    assert "no plain data" in found.detail
