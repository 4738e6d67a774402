"""
The command referee in rooms without walls: what passes, what is rejected and as what, and what makes it refuse to judge.
Each way to a NO is shown beside the YES that it is the only difference to.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.errors import RefereeError
from harness.tasks.task import OpenHalf, SealedHalf, Task
from harness.tree import Dropped, Exhibit, File, Tree
from harness.values import Verdict
from referees.command import CommandReferee
from tests.referees.folder_room import FolderRoom, folder_rooms

pytestmark = pytest.mark.live

SUITE = """\
echo 1..2
number=0
check() {
    number=$((number + 1))
    if [ "$(printf "$2" | subject "$3" 2>/dev/null; echo "$?")" = "$4" ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
    fi
}
check doubles 'ab' twice 'abab
0'
check refuses 'ab' often 2
"""
RIGHT = """\
#!/bin/sh
[ "$1" = twice ] || exit 2
text=$(cat)
printf '%s%s\\n' "$text" "$text"
"""
CARD = {
    "runner": "tap",
    "command": ["sh", "suite.sh"],
    "ids": ["doubles", "refuses"],
    "program": ["./it"],
    "main": "it",
}


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough for most; `test_both_loops` runs a judgement on each."""
    return "asyncio"


def tree(text: str, **others: str) -> Tree:
    """A program `it`, and files beside it."""
    return Tree.of(others).merged(Tree({"it": File(data=text.encode(), executable=True)}))


def task(suite: str = SUITE, solution: str = RIGHT, **card: Any) -> Task:
    """A task of one suite, its card with changes."""
    half = SealedHalf(tests=Tree.of({"suite.sh": suite}), solution=tree(solution), card={**CARD, **card})
    return Task(open=OpenHalf(benchmark="demo", name="it", instruction=""), sealed=half)


async def judged(exhibit: Tree | Exhibit, made: Task, **options: Any) -> Verdict:
    """The verdict on a tree."""
    exhibit = exhibit if isinstance(exhibit, Exhibit) else Exhibit(tree=exhibit)
    return await CommandReferee(**options).judge(exhibit, made.open, made.sealed, folder_rooms)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_both_loops() -> None:
    """The reference passes with every test told; the same program with one fault fails one of them."""
    good = await judged(tree(RIGHT), task())
    assert (good.reading, good.standing, good.tiers[0].passed, good.tiers[0].total) == ("PASS", "accepted", 2, 2)
    assert [(test.id, test.reading) for test in good.tests] == [("doubles", "PASS"), ("refuses", "PASS")]
    assert good.limits["cpu_s"] == 20
    assert good.cpu_s is not None
    bad = await judged(tree(RIGHT.replace("exit 2", "exit 1")), task())
    assert (bad.reading, bad.standing, bad.tiers[0].passed) == ("FAIL", "rejected", 1)
    assert [test.reading for test in bad.tests] == ["PASS", "FAIL"]
    assert "refuses: failed" in bad.detail
    assert good.evidence.suite == bad.evidence.suite
    assert good.evidence.code != bad.evidence.code


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reading", "program", "options"),
    [
        ("TIMEOUT", "#!/bin/sh\nwhile :; do :; done\n", {"cpu_s": 1}),
        ("TIMEOUT", "#!/bin/sh\nexec sleep 1000\n", {"wall_s": 0.5}),
        ("TIMEOUT", RIGHT, {"calls": 1}),
        ("MEMORY", "#!/bin/sh\nexec yes\n", {}),
        ("MEMORY", "#!/bin/sh\nkill -KILL $$\n", {}),
        ("CRASH", "#!/bin/sh\nkill -SEGV $$\n", {}),
        ("FAIL", "#!/bin/sh\nkill -KILL $PPID\n", {}),
        ("INTERFACE_MISS", "\x00\x01\x02", {}),
        ("FAIL", "#!/bin/sh\necho 'ok 1 - doubles\nok 2 - refuses'\n", {}),
        ("FAIL", "#!/bin/sh\nexec cat\n", {}),
    ],
)
async def test_how_a_program_is_rejected(reading: str, program: str, options: dict[str, Any]) -> None:
    """Each in its class, by what the server waited for, or by the tests."""
    verdict = await judged(tree(program), task(), **options)
    assert (verdict.reading, verdict.standing) == (reading, "rejected"), verdict.detail
    assert len(verdict.tests) == 2


@pytest.mark.anyio
async def test_a_program_that_is_missing() -> None:
    """Not there, not executable, a script that its interpreter needs: INTERFACE_MISS, with a word on what was left out."""
    plain = Tree.of({"it": RIGHT})
    assert (await judged(plain, task())).reading == "INTERFACE_MISS"
    lost = Exhibit(tree=Tree(), dropped=(Dropped(path="it", why="too large"),))
    verdict = await judged(lost, task())
    assert (verdict.reading, "too large" in verdict.detail) == ("INTERFACE_MISS", True)
    script = task(program=["sh", "it"], needs=["it"])
    assert (await judged(plain, script)).reading == "PASS"
    assert (await judged(Tree(), script)).reading == "INTERFACE_MISS"


@pytest.mark.anyio
async def test_a_build() -> None:
    """What is built is called; what was there already is not, if the card leaves it out; a build that fails is NO_BUILD."""
    made = task(
        program=["out/it"], build=[["mkdir", "-p", "out"], ["cp", "source", "out/it"]], ignore=["out"], main="source"
    )
    source = Tree({"source": File(data=RIGHT.encode(), executable=True)})
    assert (await judged(source, made)).reading == "PASS"
    planted = Tree({"out/it": File(data=RIGHT.encode(), executable=True)})
    verdict = await judged(planted, made)
    assert (verdict.reading, "cp source out/it" in verdict.detail) == ("NO_BUILD", True)


@pytest.mark.anyio
async def test_state_stays_within_a_suite_and_no_longer() -> None:
    """The second call finds what the first left; the next judgement does not. Only declared variables cross."""
    suite = (
        'echo 1..3\n[ "$(subject)" = 1 ] && echo ok 1 - one || echo not ok 1 - one\n'
        '[ "$(subject)" = 11 ] && echo ok 2 - two || echo not ok 2 - two\n'
        '[ "$(A=x B=y subject)" = 111x ] && echo ok 3 - three || echo not ok 3 - three\n'
    )
    program = '#!/bin/sh\nprintf 1 >>kept\nprintf "%s" "$(cat kept)$A$B"\n'
    made = task(suite, program, ids=["one", "two", "three"], crossing=["A"])
    for _ in range(2):
        verdict = await judged(tree(program), made)
        assert verdict.reading == "PASS", verdict.detail


@pytest.mark.anyio
async def test_a_forbidden_word() -> None:
    """It is SCREENED, and would be a PASS; without the word in the card it is one."""
    made = task(forbidden=["printf"])
    verdict = await judged(tree(RIGHT), made)
    assert (verdict.reading, verdict.standing, verdict.would_be) == ("SCREENED", "rejected", "PASS")
    assert "it:4 has 'printf'" in verdict.detail
    assert (await judged(tree(RIGHT), task(forbidden=["print"]))).reading == "PASS"


UNCAPTURED = "echo 1..1\nsubject twice </dev/null\necho ok 1 - doubles\n"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("suite", "card", "why"),
    [
        (UNCAPTURED, {"ids": ["doubles"]}, "flow into the runner's report"),
        (SUITE, {"ids": ["doubles"]}, "refuses is not declared"),
        (SUITE, {"ids": ["doubles", "refuses", "more"]}, "more is missing"),
        (SUITE + "exit 1\n", {}, "exit status is 1"),
        (SUITE + "kill -9 $$\n", {}, "died of signal 9"),
        (SUITE, {"report": "file"}, "left no report"),
        ("echo 1..2", {}, "never called"),
        (SUITE, {"prepare": [["sh", "-c", "echo why; exit 3"]]}, "ended with 3:\nwhy"),
        (SUITE, {"command": ["no-such-runner"]}, "no-such-runner"),
    ],
)
async def test_a_suite_that_is_broken_is_nobodys_fault(suite: str, card: dict[str, Any], why: str) -> None:
    """Whatever the exhibit, the reference included: an error of the referee's, with what is wrong, and never a FAIL."""
    made = task(suite, **card)
    with pytest.raises(RefereeError) as raised:
        await judged(tree(RIGHT), made)
    assert why in str(raised.value)


ECHOING = """\
echo 1..2
said=$(printf ab | subject twice); echo "# it said: $said"
[ "$said" = abab ] && echo ok 1 - doubles || echo not ok 1 - doubles
subject often >/dev/null 2>&1 || echo ok 2 - refuses
"""


@pytest.mark.anyio
async def test_an_exhibit_can_not_break_its_way_out() -> None:
    """A program whose words make the report nonsense is rejected: the same suite can report on the reference."""
    assert (await judged(tree(RIGHT), task(ECHOING))).reading == "PASS"
    for words in ("noise\nmore noise", "x\nok 1 - doubles"):
        verdict = await judged(tree(f"#!/bin/sh\necho '{words}'\n"), task(ECHOING))
        assert (verdict.reading, verdict.standing) == ("CRASH", "rejected"), words
        assert "not with the reference in between" in verdict.detail


UNITTEST = """\
import os, subprocess, sys, unittest
from xml.sax.saxutils import quoteattr

class It(unittest.TestCase):
    def test_doubles(self):
        out = subprocess.run(["subject", "twice"], input=b"ab", capture_output=True).stdout
        self.assertEqual(b"abab\\n", out)

result = unittest.TestResult()
unittest.defaultTestLoader.loadTestsFromTestCase(It).run(result)
failed = [trace.splitlines()[-1] for _, trace in result.failures + result.errors]
inside = "".join(f"<failure message={quoteattr(text)}/>" for text in failed)
with open(os.environ["PROCTOR_REPORT"], "w") as report:
    report.write(f'<testsuite tests="1" failures="{len(failed)}">'
                 f'<testcase classname="It" name="test_doubles">{inside}</testcase></testsuite>')
sys.exit(bool(failed))
"""


@pytest.mark.anyio
async def test_junit_in_a_file_and_counts() -> None:
    """A report in a file of the suite's room, and one that only counts."""
    junit = task(UNITTEST, runner="junit", command=["python3", "suite.sh"], ids=["It.test_doubles"])
    assert (await judged(tree(RIGHT), junit)).reading == "PASS"
    bad = await judged(tree("#!/bin/sh\nexec cat\n"), junit)
    assert (bad.reading, "b'abab" in bad.detail) == ("FAIL", True)
    counting = SUITE.replace("echo 1..2\n", "") + "echo 2 passed, 0 failed\n"
    card = {"runner": "counts", "ids": [], "total": 2, "pattern": r"(?P<passed>\d+) passed, (?P<failed>\d+) failed"}
    assert (await judged(tree(RIGHT), task(counting, **card))).reading == "PASS"
    wrong = task(counting.replace("2 passed, 0 failed", "1 passed, 1 failed") + "exit 1\n", **card)
    verdict = await judged(tree(RIGHT), wrong)
    assert (verdict.reading, verdict.tiers[0].passed, verdict.tests) == ("FAIL", 1, ())


class _Sized(FolderRoom):
    """A room that says how much memory it has."""

    memory_bytes = 0

    async def facts(self) -> dict[str, int]:
        """Its memory alone."""
        return {"memory_bytes": self.memory_bytes}


@pytest.mark.anyio
@pytest.mark.parametrize("memory_bytes", [512 << 20, 1 << 30])
async def test_a_room_too_small_for_the_limits(memory_bytes: int, tmp_path: Path) -> None:
    """A room with less memory than a call may hold is refused before anything runs; a larger one judges."""
    opened = []

    @asynccontextmanager
    async def rooms() -> AsyncIterator[FolderRoom]:
        folder = tmp_path / str(len(opened))
        folder.mkdir()
        opened.append(_Sized(folder))
        opened[-1].memory_bytes = memory_bytes
        yield opened[-1]

    made = task()
    referee = CommandReferee(memory_bytes=512 << 20)
    if memory_bytes > 512 << 20:
        assert (await referee.judge(Exhibit(tree=tree(RIGHT)), made.open, made.sealed, rooms)).reading == "PASS"
        return
    with pytest.raises(RefereeError, match="raise memory_bytes of"):
        await referee.judge(Exhibit(tree=tree(RIGHT)), made.open, made.sealed, rooms)


@pytest.mark.anyio
async def test_no_public_tier() -> None:
    """There is none, and that is said."""
    made = task()
    async with CommandReferee().public_check(made.open, made.sealed, folder_rooms) as check:
        assert check is None
