"""
The command referee in real rooms: a program of the example and its faults, hostile programs, and runners of other
languages. Every NO stands beside the YES that it differs from in one thing only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness import plugins
from harness.tasks.characterise import characterise, least_margin
from harness.tasks.folder import load_folder
from harness.tasks.task import OpenHalf, SealedHalf, Task
from harness.tree import Exhibit, Tree
from harness.walls import Walls
from referees.command import CommandReferee
from tests.live.hostile import Candidate
from tests.live.hostile.command_candidates import CANDIDATES, HONESTS, OPTIONS

EXAMPLE = Path(__file__).parents[2] / "examples" / "commands" / "tally"
pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(300)]


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here: the fast tests run the same referee on both."""
    return "asyncio"


def rooms_of(backend: str, image: str) -> Callable[[], Any]:
    """Opens sealed rooms of a backend."""
    return partial(plugins.load("workspaces", backend)().open, Walls(image=image), run="test-command")


TURN_ON_THEIR_ROOM = {
    "looks for the suite",
    "calls the judge itself",
    "ends everything",
    "ends whatever there is, one after the other",
    "ends what waits for its server",
    "ends or stops its server",
    "starves its server",
    "forks without end",
    "never ends, whatever the signal",
    "prints without end",
    "takes all memory",
    "fills the disk",
    "takes itself away",
    "memory that no process holds, with a crowd",
    "traces, reads and writes whatever process there is",
}


@pytest.mark.parametrize("backend", ["docker", "bubblewrap"])
async def test_hostile_programs(backend: str) -> None:
    """
    None passes, each lands in its class, and after them all the same referee accepts honest ones. In containers are those
    alone that turn on their room; what a program merely says is the same on every backend.
    """
    rooms = rooms_of(backend, "proctor-seat")
    assert len(CANDIDATES) >= 40
    assert set(CANDIDATES) >= TURN_ON_THEIR_ROOM
    assert "PASS" not in {one.reading for one in CANDIDATES.values()}
    referee = CommandReferee(OPTIONS)
    odd: list[str] = []
    limiter = anyio.CapacityLimiter(2)

    async def judge(name: str, one: Candidate) -> None:
        async with limiter:
            verdict = await referee.judge(one.exhibit, one.task.open, one.task.sealed, rooms)
        if verdict.reading != one.reading:
            odd.append(f"{name}: {verdict.reading}, expected {one.reading} ({verdict.detail[:200]})")

    async with anyio.create_task_group() as tasks:
        for name, one in CANDIDATES.items():
            if backend == "bubblewrap" or name in TURN_ON_THEIR_ROOM:
                tasks.start_soon(judge, name, one)
    for name, one in HONESTS.items():
        if backend == "bubblewrap" or name == "captured":
            await judge(f"an honest one, {name}", one)
    assert odd == []


PERL = """\
my %expected = ("ab" => "ba", "" => "");
print "1..2\\n";
my $number = 0;
for my $input (sort keys %expected) {
    $number += 1;
    open(my $file, ">", "input") or die;
    print $file $input;
    close $file;
    my $found = `subject <input`;
    print "not " x ($found ne $expected{$input}), "ok $number - reverses '$input'\\n";
}
"""
UNITTEST = """\
import os, subprocess, sys, unittest
from xml.sax.saxutils import quoteattr

class It(unittest.TestCase):
    def found(self, text):
        return subprocess.run([os.environ["PROCTOR_SUBJECT"]], input=text, capture_output=True, text=True).stdout
    def test_two(self):
        self.assertEqual("ba", self.found("ab"))
    def test_none(self):
        self.assertEqual("", self.found(""))

result = unittest.TestResult()
unittest.defaultTestLoader.loadTestsFromTestCase(It).run(result)
failed = {case._testMethodName: trace.splitlines()[-1] for case, trace in result.failures + result.errors}
with open(os.environ["PROCTOR_REPORT"], "w") as report:
    report.write(f'<testsuite tests="2" failures="{len(failed)}">')
    for name in ("test_two", "test_none"):
        inside = f"<failure message={quoteattr(failed[name])}/>" if name in failed else ""
        report.write(f'<testcase classname="It" name="{name}">{inside}</testcase>')
    report.write("</testsuite>")
sys.exit(bool(failed))
"""
SUITES = {
    "perl": ("it.pl", PERL, {"runner": "tap", "command": ["perl", "it.pl"], "ids": ["reverses 'ab'", "reverses ''"]}),
    "unittest": (
        "it.py",
        UNITTEST,
        {"runner": "junit", "command": ["python3", "it.py"], "ids": ["It.test_two", "It.test_none"]},
    ),
}


@pytest.mark.parametrize("name", SUITES)
async def test_suites_in_other_languages(name: str) -> None:
    """TAP by perl, JUnit's XML by a script: a right program passes, one that repeats its input fails a test."""
    path, text, card = SUITES[name]
    program = "#!/bin/sh\nexec perl -0777 -ne 'print scalar reverse'\n"
    card = {**card, "program": ["sh", "it"], "needs": ["it"], "main": "it.sh"}
    sealed = SealedHalf(tests=Tree.of({path: text}), solution=Tree.of({"it": program}), card=card)
    task = Task(open=OpenHalf(benchmark="demo", name="it", instruction=""), sealed=sealed)
    for code, reading, passed in ((program, "PASS", 2), ("exec cat\n", "FAIL", 1)):
        exhibit = Exhibit(tree=Tree.of({"it": code}))
        rooms = rooms_of("bubblewrap", "proctor-seat")
        verdict = await CommandReferee().judge(exhibit, task.open, task.sealed, rooms)
        assert (verdict.reading, verdict.tiers[0].passed) == (reading, passed), verdict.detail


async def test_the_example_kills_every_mutant() -> None:
    """The reference passes, the battery is rejected, every mutant fails a test or more. One backend is enough."""
    rooms = rooms_of("bubblewrap", "proctor-seat")
    rows = await characterise(plugins.load("referees", "command")(), load_folder(EXAMPLE), rooms, at_once=2)
    assert [(row.kind, row.name, row.word) for row in rows if not row.holds] == []
    assert sum(row.kind == "mutant" for row in rows) == 13
    assert (least_margin(rows) or 0) >= 1
