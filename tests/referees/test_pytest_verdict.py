"""What a verdict of the pytest referee tells: each test, the limits, the subject's time, and what a screen kept out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from harness.errors import RefereeError
from harness.tree import Exhibit, Tree
from harness.values import TestReading
from referees import pytest_bridge
from referees.pytest_suite import PytestReferee
from tests.referees.folder_room import FolderRoom, folder_rooms
from tests.referees.test_pytest_suite import GOOD, IDS, judged, one, task

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here; `test_both_loops` runs a judgement on each."""
    return "asyncio"


def readings(tests: tuple[TestReading, ...]) -> list[str]:
    """The readings alone."""
    return [test.reading for test in tests]


async def test_every_declared_test_once_in_order() -> None:
    """A PASS reads PASS for each id; one fault reads FAIL where it shows, with the violated line, and PASS elsewhere."""
    good = await judged(GOOD)
    assert [test.id for test in good.tests] == IDS
    assert set(readings(good.tests)) == {"PASS"}
    bad = await judged(GOOD.replace("return self.items[index]", "return 7"))
    assert [test.id for test in bad.tests] == IDS
    assert readings(bad.tests) == ["PASS", "FAIL", "PASS", "PASS", "PASS"]
    assert "assert box[0] == 3" in bad.tests[1].detail
    assert bad.tiers[0].passed == 4


async def test_what_came_after_the_end_was_not_run() -> None:
    """The test in which the subject ended has the class of that end; those after it NOT_RUN, and so all of a NO_BUILD."""
    ends = GOOD.replace("return len(self.items)", "__import__('os')._exit(3)")
    verdict = await judged(ends)
    assert verdict.reading == "CRASH"
    assert readings(verdict.tests) == ["PASS", "CRASH", "NOT_RUN", "NOT_RUN", "NOT_RUN"]
    assert set(readings((await judged("x = (\n")).tests)) == {"NOT_RUN"}


async def test_limits_and_time() -> None:
    """The limits that the subject was under, those of a card before the referee's own, and what it used of them."""
    burns = "import time\ndef go():\n    while time.process_time() < 0.5: pass\n    return 1\n"
    made = one("    assert go() == 1\n", ["go"], limits={"cpu_s": 7})
    verdict = await judged(burns, made, memory_bytes=256 << 20)
    assert verdict.reading == "PASS"
    assert verdict.cpu_s is not None
    assert 0.4 < verdict.cpu_s < 3
    assert (verdict.limits["cpu_s"], verdict.limits["memory_bytes"]) == (7.0, float(256 << 20))
    assert (await judged("def go(): return 1\n", made)).cpu_s < 0.4


@pytest.mark.parametrize(("returned", "would_be"), [("1", "PASS"), ("2", "FAIL")])
async def test_what_a_screen_kept_out_is_judged_as_well(returned: str, would_be: str) -> None:
    """SCREENED is the reading; what it would have been is told beside it, and no test of it counts."""
    made = one("    assert go() == 1\n", ["go"], forbidden=["zlib"])
    verdict = await judged(f"import zlib\ndef go():\n    return {returned}\n", made)
    assert (verdict.reading, verdict.standing, verdict.would_be) == ("SCREENED", "rejected", would_be)
    assert (verdict.tiers[0].passed, readings(verdict.tests)) == (0, ["NOT_RUN"])
    assert (await judged("def go():\n    return 1\n", made)).would_be is None


ANSWERED = {
    "work": "    for _ in range(go()):\n        pass\n",
    "wait": "    import time\n    time.sleep(go())\n",
}


@pytest.mark.parametrize("body", ANSWERED.values(), ids=ANSWERED)
async def test_an_answer_that_keeps_the_suite_busy(body: str) -> None:
    """A suite that an answer makes work or wait without end is the subject's TIMEOUT; a small answer is a PASS."""
    made = one(body, ["go"])
    assert (await judged("def go():\n    return 10**9\n", made, judge_s=2.0)).reading == "TIMEOUT"
    assert (await judged("def go():\n    return 1\n", made, judge_s=10.0)).reading == "PASS"


async def test_a_machine_without_time_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """When neither side is over its own time and the clock has run out all the same: UNSCORABLE, which counts for none."""
    made = one("    assert go() == 1\n", ["go"])
    monkeypatch.setattr(pytest_bridge, "PATIENCE", 0.0)
    verdict = await judged("def go():\n    return 1\n", made)
    assert (verdict.reading, verdict.standing, readings(verdict.tests)) == ("UNSCORABLE", "unscorable", ["NOT_RUN"])


class Roomy(FolderRoom):
    """A room that says how much memory it has."""

    memory_bytes = 0

    async def facts(self) -> Mapping[str, Any]:
        """Its memory alone."""
        return {"memory_bytes": self.memory_bytes}


@pytest.mark.parametrize("memory_bytes", [64 << 20, 4 << 30])
async def test_a_room_too_small_for_the_limits(memory_bytes: int) -> None:
    """A room of less memory than the limits promise is refused before anything runs; a larger one judges."""

    @asynccontextmanager
    async def rooms() -> AsyncIterator[FolderRoom]:
        async with folder_rooms() as room:
            made = Roomy(room.folder)
            made.memory_bytes = memory_bytes
            yield made

    made = task()
    work = PytestReferee().judge(Exhibit(tree=Tree.of({"solution.py": GOOD})), made.open, made.sealed, rooms)
    if memory_bytes > 1 << 30:
        assert (await work).reading == "PASS"
        return
    with pytest.raises(RefereeError, match=f"has {memory_bytes} bytes of memory: expected"):
        await work


async def test_a_pass_needs_the_subjects_leave() -> None:
    """A right answer is no PASS where the process does something else than wait for the next request."""
    made = one("    assert go() == 1\n", ["go"])
    code = """\
import os, struct
def go():
    import sys
    frame = sys._getframe()
    while 'writer' not in frame.f_locals or 'shelf' not in frame.f_locals: frame = frame.f_back
    os.write(frame.f_locals['writer'], struct.pack('>Ic', 15, b'R') + frame.f_locals['number'] + b'{"v": true}')
    return True
"""
    verdict = await judged(code, one("    assert go() is True\n", ["go"]))
    assert (verdict.reading, verdict.standing) == ("CRASH", "rejected")
    assert (await judged("def go():\n    return 1\n", made)).reading == "PASS"
