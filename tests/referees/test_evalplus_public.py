"""The public tier: each of its calls under its own limit, to its end or to the first violation, in a time of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from referees import evalplus_tiers
from referees.evalplus import EvalPlusReferee
from tests.referees.evalplus_own import exhibit, own, own_home
from tests.referees.local_room import LocalRooms

__all__ = ["own_home"]

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture
def anyio_backend() -> str:
    """Both loops are tried in test_evalplus_line."""
    return "asyncio"


SPIN = "import time\ndef f(x):\n    until = time.process_time() + ({}) * (x == 2)\n    while time.process_time() < until: pass\n"
"""Takes so many seconds over its second call."""


@pytest.mark.parametrize(
    ("code", "readings"),
    [
        # Each call has its own limit, whatever those before it came to.
        (SPIN.format(0.3) + "    return 0 if x < 3 else 4\n", ["FAIL", "FAIL", "PASS"]),
        ("def f(x):\n    while x == 2: pass\n    return 0 if x < 2 else 4\n", ["FAIL", "TIMEOUT", "PASS"]),
        ("import os\ndef f(x):\n    if x < 9: os._exit(1)\n", ["CRASH", "CRASH", "CRASH"]),
        # After one over its time those that are left have little together, and say so where that was not enough.
        ("def f(x):\n    while x == 1: pass\n    return x + 1\n", ["TIMEOUT", "PASS", "PASS"]),
        ("def f(x):\n    while x < 3: pass\n    return x + 1\n", ["TIMEOUT", "NOT_RUN", "NOT_RUN"]),
        (SPIN.format(0.3) + "    while x == 1: pass\n    return x + 1\n", ["TIMEOUT", "NOT_RUN", "NOT_RUN"]),
    ],
)
async def test_the_public_tier_runs_in_full(tmp_path: Path, code: str, readings: list[str]) -> None:
    """A call that is not run is never one that was wrong, and says why; the class is that of the first violation."""
    task = own(tmp_path, base_input=[[1], [2], [3]])
    verdict = await EvalPlusReferee({"min_time_s": 0.5}).judge(exhibit(code), task.open, task.sealed, LocalRooms())
    assert [test.reading for test in verdict.tests] == readings
    assert verdict.reading == readings[0]
    assert verdict.tiers[0].passed == readings.count("PASS")
    said = {test.detail for test in verdict.tests if test.reading == "NOT_RUN"}
    assert said <= {"after a call over its time, those left have 0.05 s of CPU time together"}
    assert verdict.cpu_s is not None
    assert verdict.cpu_s < 1.5


@pytest.mark.parametrize(
    ("code", "readings"),
    [
        ("def f(x):\n    while x == 3: pass\n    return min(x, 1) + 1\n", ["PASS", "FAIL", "NOT_RUN"]),
        ("def f(x):\n    while x < 3: pass\n    return x + 1\n", ["TIMEOUT", "NOT_RUN", "NOT_RUN"]),
        ("import os\ndef f(x):\n    os._exit(1)\n", ["CRASH", "NOT_RUN", "NOT_RUN"]),
        ("def f(x):\n    return x + 1\n", ["PASS", "PASS", "PASS"]),
    ],
)
async def test_a_public_tier_may_end_early(tmp_path: Path, code: str, readings: list[str]) -> None:
    """With the same class, when that is asked for; a seat's rounds are told all the same."""
    task, options = own(tmp_path), {"min_time_s": 0.3, "public_tier": "to-first-violation"}
    referee = EvalPlusReferee(options)
    verdict = await referee.judge(exhibit(code), task.open, task.sealed, LocalRooms())
    assert [test.reading for test in verdict.tests] == readings
    assert verdict.reading == next((reading for reading in readings if reading != "PASS"), "PASS")
    assert {test.detail for test in verdict.tests if test.reading == "NOT_RUN"} <= {
        "the tier ends at its first violation"
    }
    async with referee.public_check(task.open, task.sealed, LocalRooms()) as check:
        assert check is not None
        told = await check("def f(x):\n    return {1: 0, 2: 3, 3: 0}[x]\n")
    assert (told.passed, len(told.facts)) == (1, 2)


async def test_the_public_tier_has_a_time_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All its runs together: what is not reached within it is not run."""
    monkeypatch.setattr(evalplus_tiers, "_BUDGET_S", 0.5)
    task = own(tmp_path, base_input=[[1], [2], [3], [4]])
    code = "import os, time\ndef f(x):\n    while time.process_time() < 0.2 + 0.03 * x: pass\n    os._exit(1)\n"
    verdict = await EvalPlusReferee().judge(exhibit(code), task.open, task.sealed, LocalRooms())
    assert [test.reading for test in verdict.tests][:2] == ["CRASH", "CRASH"]
    last = verdict.tests[-1]
    assert (last.reading, last.detail) == ("NOT_RUN", "the tier's CPU time was used up")
