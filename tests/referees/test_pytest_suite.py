"""
The pytest referee in rooms without walls: what passes, what is rejected and as what, and what makes it refuse to judge.
Each way to a NO is shown beside the YES that it is the only difference to.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import ExperimentError, RefereeError
from harness.tasks.task import OpenHalf, SealedHalf, Task
from harness.tree import Dropped, Exhibit, Tree
from harness.values import Verdict
from referees.pytest_suite import PytestReferee
from tests.referees.folder_room import folder_rooms

pytestmark = pytest.mark.live

SUITE = """\
import pytest
from solution import Box, Empty, double


def test_double():
    assert double(2) == 4


def test_box():
    box = Box([3, 1])
    box.put(2)
    assert len(box) == 3
    assert sorted(box) == [1, 2, 3]
    assert 2 in box
    assert box[0] == 3
    assert box.name == "box"
    assert isinstance(box, Box)
    with box as same:
        assert same is box


def test_empty():
    with pytest.raises(Empty, match="nothing"):
        Box([]).take()


@pytest.mark.parametrize("value", [0.5, 1.5])
def test_near(value):
    assert double(value) == pytest.approx(2 * value)
"""
GOOD = """\
class Empty(LookupError):
    pass


def double(value):
    return value * 2


class Box:
    name = "box"

    def __init__(self, items):
        self.items = list(items)

    def put(self, item):
        self.items.append(item)

    def take(self):
        if not self.items:
            raise Empty("there is nothing in it")
        return self.items.pop()

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    def __contains__(self, item):
        return item in self.items

    def __getitem__(self, index):
        return self.items[index]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False
"""
IDS = [f"test_it.py::{name}" for name in ("test_double", "test_box", "test_empty", "test_near[0.5]", "test_near[1.5]")]
CARD = {"ids": IDS, "interface": [{"module": "solution", "names": ["Box", "double"], "exceptions": ["Empty"]}]}


def task(suite: str = SUITE, **card: Any) -> Task:
    """The demonstration task, with another suite or card."""
    return Task(
        open=OpenHalf(benchmark="demo", name="box", instruction="Write it."),
        sealed=SealedHalf(
            tests=Tree.of({"test_it.py": suite}), solution=Tree.of({"solution.py": GOOD}), card={**CARD, **card}
        ),
    )


def one(body: str, names: list[str], **card: Any) -> Task:
    """A task whose suite is the one test `test_it`."""
    imports = f"import pytest\nfrom solution import {', '.join(names)}\n\n\n"
    interface = [{"module": "solution", "names": names}]
    return task(f"{imports}def test_it():\n{body}", **{"ids": ["test_it.py::test_it"], "interface": interface, **card})


async def judged(code: str, made: Task | None = None, files: dict[str, str] | None = None, **options: Any) -> Verdict:
    """The verdict on `solution.py` with `code`, and what else the seat left."""
    made = made or task()
    exhibit = Exhibit(tree=Tree.of({"solution.py": code, **(files or {})}))
    return await PytestReferee(**options).judge(exhibit, made.open, made.sealed, folder_rooms)


@pytest.mark.anyio
async def test_reference_passes() -> None:
    """The reference is PASS with every test counted, and the evidence names the code and the suite judged."""
    verdict = await judged(GOOD)
    assert (verdict.reading, verdict.standing) == ("PASS", "accepted")
    assert [(tier.tier, tier.passed, tier.total) for tier in verdict.tiers] == [("suite", 5, 5)]
    assert verdict.evidence.code == Tree.of({"solution.py": GOOD}).digest
    assert verdict.evidence.suite == PytestReferee().suite(task().sealed)["digest"]


@pytest.mark.anyio
async def test_one_fault_fails_and_names_the_line() -> None:
    """One violated assertion is FAIL; the detail holds its test, its line and the subject's answer."""
    verdict = await judged(GOOD.replace("value * 2", "value * 3"))
    assert (verdict.reading, verdict.standing, verdict.tiers[0].passed) == ("FAIL", "rejected", 2)
    for said in ("test_it.py::test_double", "assert double(2) == 4", "answer: 6"):
        assert said in verdict.detail


@pytest.fixture
def anyio_backend() -> str:
    """One loop here; the two tests of the whole way below name both."""
    return "asyncio"


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_both_loops(loop: str) -> None:
    """The referee works on either event loop."""
    import anyio

    assert anyio.run(judged, GOOD, backend=loop).reading == "PASS"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reading", "code", "said"),
    [
        ("NO_BUILD", "def double(value:\n", "SyntaxError"),
        ("NO_BUILD", "raise ValueError('at import')\n", "at import"),
        ("NO_BUILD", "import sys\nsys.exit(0)\n", "SystemExit"),
        ("NO_BUILD", "import os\nos._exit(0)\n", "exit status 0"),
        ("CRASH", "import os\nos.kill(os.getpid(), 9)\n", "signal 9"),
        ("NO_BUILD", "import os\nos.kill(os.getppid(), 9)\n", "Operation not permitted"),
        ("CRASH", "import os\nos.closerange(3, 99)\nos.kill(os.getpid(), 15)\n", "signal 15"),
        ("MEMORY", "x = bytearray(1 << 40)\n", "MemoryError"),
        ("INTERFACE_MISS", GOOD.replace("def double", "def triple"), "solution.double"),
        ("INTERFACE_MISS", GOOD.replace("class Empty(LookupError)", "class Empty"), "an exception class"),
    ],
)
async def test_rejected_before_any_test(reading: str, code: str, said: str) -> None:
    """What can't be imported, or lacks a name, is rejected with its own class and no test passed."""
    verdict = await judged(code)
    assert (verdict.reading, verdict.standing) == (reading, "rejected")
    assert (verdict.tiers[0].passed, verdict.tiers[0].total) == (0, 5)
    assert said in verdict.detail


@pytest.mark.anyio
async def test_a_file_that_was_left_out_is_named() -> None:
    """A module that is not in the exhibit is NO_BUILD, and the verdict says why the harness left it out."""
    made = task()
    exhibit = Exhibit(tree=Tree(), dropped=(Dropped(path="solution.py", why="symbolic link"),))
    verdict = await PytestReferee().judge(exhibit, made.open, made.sealed, folder_rooms)
    assert verdict.reading == "NO_BUILD"
    assert "solution.py was left out of the exhibit: symbolic link" in verdict.detail


PLANTS = {
    "nothing": {},
    "conftest": {
        "conftest.py": "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport():\n"
        "    outcome = yield\n    outcome.get_result().outcome = 'passed'\n"
    },
    "xfail": {
        "conftest.py": "import pytest\ndef pytest_collection_modifyitems(items):\n"
        "    for item in items:\n        item.add_marker(pytest.mark.xfail(run=False))\n"
    },
    "deselect": {"pytest.ini": "[pytest]\naddopts = --deselect=test_it.py::test_double\n"},
    "pytest.py": {"pytest.py": "import sys\nsys.exit(0)\n"},
    "sitecustomize": {"sitecustomize.py": "import os\nos._exit(0)\n"},
    "own test": {"test_c.py": "def test_c():\n    assert True\n"},
}


@pytest.mark.anyio
@pytest.mark.parametrize("plant", PLANTS)
async def test_planted_files_change_nothing(plant: str) -> None:
    """A wrong candidate fails the same tests of the same number whatever it plants beside itself."""
    verdict = await judged(GOOD.replace("return self.items[index]", "return 7"), files=PLANTS[plant])
    assert (verdict.reading, verdict.tiers[0].passed, verdict.tiers[0].total) == ("FAIL", 4, 5)
    assert "test_it.py::test_box" in verdict.detail


HOSTILE = """\
class Same:
    def __eq__(self, other):
        return True
    def __ne__(self, other):
        return False
    __hash__ = None
    def __bool__(self):
        return True
class Int(int):
    def __eq__(self, other):
        return True
    __hash__ = int.__hash__
def give(what):
    return {"object": Same(), "int": Int(4), "nested": [1, Same()], "key": {"a": Int(2)}, "nan": float("nan"),
            "text": type("T", (str,), {"__eq__": lambda self, other: True, "__hash__": None})("x")}[what]
"""
COMPARED = {
    "object": "4",
    "int": "4",
    "nested": "[1, 2]",
    "key": "{'a': 2}",
    "nan": "pytest.approx(1.0, abs=1e9)",
    "text": "'x'",
}


@pytest.mark.anyio
async def test_nothing_that_agrees_with_everything_is_equal() -> None:
    """Objects with their own equality, alone or nested, and NaN against a tolerance, fail; honest values pass."""
    tests = "".join(f"def test_{key}():\n    assert give({key!r}) == {value}\n\n\n" for key, value in COMPARED.items())
    card = {
        "ids": [f"test_it.py::test_{key}" for key in COMPARED],
        "interface": [{"module": "solution", "names": ["give"]}],
    }
    made = task(f"import pytest\nfrom solution import give\n\n\n{tests}", **card)
    assert (await judged(HOSTILE, made)).tiers[0].passed == 0
    honest = "def give(what):\n    return {'object': 4, 'int': 4, 'nested': [1, 2], 'key': {'a': 2}, 'nan': 1.0, 'text': 'x'}[what]\n"
    assert (await judged(honest, made)).reading == "PASS"


@pytest.mark.anyio
async def test_the_table_of_kinds() -> None:
    """True is 1 and 1.0 is 1, a tuple is no list, and no sort of bytes or set is another: as Python compares them."""
    body = """\
    assert echo(True) == 1 and echo(True) is True and echo(1.0) == 1 and type(echo(1)) is int
    assert echo((1, 2)) != [1, 2] and echo([1, 2]) == [1, 2] and echo({1: (2,)}) == {1: (2,)}
    assert echo({1, 2}) == {1, 2} and echo(frozenset([1])) == {1} and type(echo(frozenset())) is frozenset
    assert echo(b"ab") == b"ab" and type(echo(bytearray(b"ab"))) is bytearray and echo("ab") != b"ab"
    assert echo(2**70) == 2**70 and echo(-(2**53)) == -(2**53) and echo(float("inf")) == float("inf")
    assert echo(None) is None and echo("\\ud800") == "\\ud800" and echo({}) == {} and echo(()) == ()
"""
    assert (await judged("def echo(value):\n    return value\n", one(body, ["echo"]))).reading == "PASS"


@pytest.mark.anyio
async def test_forbidden_words_are_screened() -> None:
    """A forbidden word as a name, an import or a whole string is SCREENED; in prose it is not; a hidden import fails."""
    made = one("    assert go() == 1\n", ["go"], forbidden=["zlib"])
    for code in ("import zlib\n", "from zlib import crc32\n", "__import__('zlib')\n"):
        verdict = await judged(f"{code}def go():\n    return 1\n", made)
        assert (verdict.reading, verdict.standing) == ("SCREENED", "rejected")
    assert (await judged("# unlike zlib\ndef go():\n    'Not zlib at all.'\n    return 1\n", made)).reading == "PASS"
    assert (await judged("def go():\n    return len([__import__('zl' + 'ib')])\n", made)).reading == "FAIL"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (task(ids=[*IDS, "test_it.py::test_more"]), "test_more"),
        (task(ids=IDS[:-1]), "test_near[1.5]"),
        (task(SUITE + "\n\nBOX = Box([])\n"), "while it is imported"),
        (task("import nothing_like_it\n"), "nothing_like_it"),
        (task(SUITE.replace("import Box", "import Bag, Box")), "cannot import name 'Bag'"),
    ],
    ids=[
        "declared and not collected",
        "collected and not declared",
        "calls at import",
        "does not import",
        "undeclared",
    ],
)
async def test_a_faulty_suite_is_no_verdict(made: Task, said: str) -> None:
    """Where the suite is not what the card says, nothing is said of the candidate."""
    with pytest.raises(RefereeError) as error:
        await judged(GOOD, made)
    assert said in str(error.value)


@pytest.mark.anyio
async def test_what_can_not_cross_fails_with_a_reason() -> None:
    """A suite that passes its own objects gets a failure that says so, even inside a `raises(TypeError)`."""
    body = "    with pytest.raises(TypeError):\n        go(object())\n"
    verdict = await judged("def go(value):\n    return 1\n", one(body, ["go"]))
    assert verdict.reading == "FAIL"
    assert "passes a value of type object to the subject: only plain" in verdict.detail


@pytest.mark.anyio
async def test_the_battery_is_rejected() -> None:
    """No degenerate candidate is accepted."""
    made, referee = task(), PytestReferee()
    battery = referee.battery(made.open, made.sealed)
    assert {"empty", "stub", "constant", "exit_at_import", "equals_everything", "planted_result_file"} <= set(battery)
    for name in ("constant", "equals_everything", "planted_result_file"):
        verdict = await referee.judge(Exhibit(tree=battery[name]), made.open, made.sealed, folder_rooms)
        assert verdict.standing == "rejected", name


@pytest.mark.anyio
async def test_public_check() -> None:
    """None without public ids; with them, these tests alone are run, and a violated literal assertion is a fact."""
    referee, plain = PytestReferee(), task()
    async with referee.public_check(plain.open, plain.sealed, folder_rooms) as check:
        assert check is None
    made = task(public=IDS[:2])
    async with referee.public_check(made.open, made.sealed, folder_rooms) as check:
        assert check is not None
        good = await check(GOOD)
        assert (good.reading, good.accepted, good.passed, good.total, good.facts) == ("PASS", True, 2, 2, ())
        bad = await check(GOOD.replace("value * 2", "value * 3"))
        assert (bad.reading, bad.accepted, bad.passed) == ("FAIL", False, 1)
        assert [(fact.call, fact.expected, fact.observed) for fact in bad.facts] == [("double(2)", "4", "6")]
        raising = await check(GOOD.replace("return value * 2", "raise KeyError('no')"))
        assert [(fact.call, fact.observed, fact.raised) for fact in raising.facts] == [
            ("double(2)", None, "KeyError: 'no'")
        ]


def test_options_are_checked() -> None:
    """An unknown option is refused with the nearest known one, and a bad value with what was expected."""
    with pytest.raises(ExperimentError, match="Did you mean 'wall_s'"):
        PytestReferee(wall=3)
    with pytest.raises(ExperimentError, match="cpu_s"):
        PytestReferee({"cpu_s": 0})
    assert PytestReferee({"cpu_s": 3}).options.cpu_s == PytestReferee(cpu_s=3).options.cpu_s == 3


def test_the_suite_digest_pins_everything() -> None:
    """The digest moves with the tests, the card and the options, and not with the solution."""

    def digest(made: Task, **options: Any) -> str:
        return str(PytestReferee(**options).suite(made.sealed)["digest"])

    base = digest(task())
    assert base == digest(task())
    assert len({base, digest(task(SUITE + "\n")), digest(task(public=IDS[:1])), digest(task(), cpu_s=5)}) == 4
