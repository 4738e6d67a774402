"""
The evalplus referee with its real zygote, on this host instead of in a sandbox: candidates here are the tests' own and
do no harm. What a hostile one meets is in `tests/live/test_evalplus_referee.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.canonical import digest_bytes
from harness.errors import ExperimentError, RefereeError
from harness.tasks import evalplus_inputs
from harness.tasks.evalplus import load_evalplus
from harness.tasks.task import SealedHalf
from harness.tree import Dropped, Exhibit, Tree
from harness.views import Fact
from referees.evalplus import EvalPlusReferee
from referees.evalplus_suite import load_suite, prelude_of
from tests.referees.evalplus_own import QUICKSTART, exhibit, own, own_home, quick, ran_reference, reading  # noqa: F401 - a fixture is used by its name
from tests.referees.local_room import LocalRooms

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture
def anyio_backend() -> str:
    """Both loops are tried in test_evalplus_line."""
    return "asyncio"


async def test_references_pass_and_the_battery_is_rejected() -> None:
    """
    On one line each: every quickstart reference is PASS on both tiers, degenerate candidates are rejected. One room has
    the candidates; the references that made the expected values had one of their own, the first time.
    """
    referee, rooms = EvalPlusReferee(), LocalRooms()
    tasks = load_evalplus(QUICKSTART)
    verdicts = await referee.judge_many([(Exhibit(tree=referee.reference(t.sealed)), t.sealed) for t in tasks], rooms)
    assert [("PASS", "accepted", 2)] * len(tasks) == [
        (v.reading, v.standing, sum(tier.reading == "PASS" for tier in v.tiers)) for v in verdicts
    ]
    some = tasks[::5]
    work = [(Exhibit(tree=tree), t.sealed) for t in some for tree in referee.battery(t.open, t.sealed).values()]
    assert {"rejected"} == {verdict.standing for verdict in await referee.judge_many(work, rooms)}
    assert len(rooms.opened) == 3


async def test_evidence_names_code_and_suite() -> None:
    """A verdict carries the digests of what was judged and by what; judged again it is the same."""
    [task] = quick("0")
    referee, code = EvalPlusReferee(), exhibit("def double(number):\n    return number + number\n")
    verdict = await referee.judge(code, task.open, task.sealed, LocalRooms())
    again = await referee.judge(code, task.open, task.sealed, LocalRooms())
    assert verdict.evidence.code == code.digest
    assert verdict.evidence.suite == referee.suite(task.sealed)["digest"]
    assert verdict.evidence.execution != again.evidence.execution
    assert verdict.same_as(again)


async def test_a_verdict_tells_its_public_tests_and_its_limits(tmp_path: Path) -> None:
    """
    Each public call has its reading, a violated one the assertion as text that Python reads; the hidden tier has none.
    """
    task = own(tmp_path, base_input=[[1], [2], [3]], canonical_solution="    return [x, 0.5] if x < 3 else [None]\n")
    code = exhibit("def f(x):\n    return [x, 0.5] if x == 1 else x\n")
    wrong = await EvalPlusReferee().judge(code, task.open, task.sealed, LocalRooms())
    assert [(test.id, test.reading, test.detail) for test in wrong.tests] == [
        ("public[0]", "PASS", ""),
        ("public[1]", "FAIL", "f(2) == [2, 0.5]"),
        ("public[2]", "FAIL", "f(3) == [None]"),
    ]
    assert wrong.limits == {
        "call_cpu_s": 1.0,
        "build_cpu_s": 2.0,
        "tier_cpu_s": pytest.approx(60, 0.01),
        "memory_bytes": 2 << 30,
    }
    assert wrong.seconds is not None
    assert wrong.cpu_s is not None
    assert 0 < wrong.cpu_s < 5
    unbuilt = await EvalPlusReferee().judge(exhibit("def"), task.open, task.sealed, LocalRooms())
    assert [(test.reading, test.detail) for test in unbuilt.tests] == [("NOT_RUN", "no call was made")] * 3
    slow = exhibit("def f(x):\n    while x == 2: pass\n    return [x, 0.5]\n")
    stopped = await EvalPlusReferee({"min_time_s": 0.1}).judge(slow, task.open, task.sealed, LocalRooms())
    assert [test.reading for test in stopped.tests] == ["PASS", "TIMEOUT", "FAIL"]


CLASSES: list[tuple[str | bytes, tuple[str, str, str]]] = [
    ("def f(x):\n    return x + 1\n", ("PASS", "PASS", "PASS")),
    ("def f(x):\n    return min(x, 9) + 1\n", ("FAIL", "PASS", "FAIL")),
    ("def f(x):\n    return x\n", ("FAIL", "FAIL", "NOT_RUN")),
    ("def f(x):\n    return float(x + 1)\n", ("PASS", "PASS", "PASS")),
    ("def f(x):\n    return str(x + 1)\n", ("FAIL", "FAIL", "NOT_RUN")),
    ("def f(x):\n    raise SystemExit(0)\n", ("FAIL", "FAIL", "NOT_RUN")),
    ("def f():\n    return 2\n", ("FAIL", "FAIL", "NOT_RUN")),
    ("def f(x:\n", ("NO_BUILD", "NO_BUILD", "NOT_RUN")),
    (b"def f(x):\n    return '\xff'\n", ("NO_BUILD", "NO_BUILD", "NOT_RUN")),
    ("x = 1\0", ("NO_BUILD", "NO_BUILD", "NOT_RUN")),
    ("raise ValueError", ("NO_BUILD", "NO_BUILD", "NOT_RUN")),
    ("import sys\nsys.exit(0)", ("NO_BUILD", "NO_BUILD", "NOT_RUN")),
    ("(" * 5000 + ")" * 5000, ("NO_BUILD", "NO_BUILD", "NOT_RUN")),
    ("", ("INTERFACE_MISS", "INTERFACE_MISS", "NOT_RUN")),
    ("f = 3\n", ("INTERFACE_MISS", "INTERFACE_MISS", "NOT_RUN")),
    ("import os\ndef f(x):\n    os._exit(0)\n", ("CRASH", "CRASH", "NOT_RUN")),
    ("def f(x):\n    return x + 1 if x < 9 else __import__('os')._exit(3)\n", ("CRASH", "PASS", "CRASH")),
    ("def f(x):\n    print('noise' * 1000)\n    return x + 1\n", ("PASS", "PASS", "PASS")),
    ("import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()\nf = lambda x: x + 1\n",
     ("PASS", "PASS", "PASS")),
    ("class I(int):\n    pass\ndef f(x):\n    return I(x + 1)\n", ("FAIL", "FAIL", "NOT_RUN")),
    ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\ndef f(x):\n    return P(x).x + 1\n",
     ("PASS", "PASS", "PASS")),
]  # fmt: skip


async def test_classes(tmp_path: Path) -> None:
    """Each way to end has its class, the hidden tier runs only after a public PASS, and one zygote judges them all."""
    task, rooms = own(tmp_path), LocalRooms()
    await ran_reference(task)
    work = [(exhibit(code), task.sealed) for code, _ in CLASSES]
    verdicts = await EvalPlusReferee().judge_many(work, rooms)
    for verdict, (code, expected) in zip(verdicts, CLASSES, strict=True):
        assert expected == (verdict.reading, *(tier.reading for tier in verdict.tiers)), code
        assert [tier.ran for tier in verdict.tiers] == [True, expected[2] != "NOT_RUN"]
        assert (verdict.tiers[1].passed, verdict.tiers[1].total) == (None, None)
    assert len(rooms.opened) == 1


LIMITS = [
    ("def f(x):\n    while True:\n        pass\n", "TIMEOUT"),
    (
        "def f(x):\n    while True:\n        try:\n            f(x)\n        except BaseException:\n            pass\n",
        "TIMEOUT",
    ),
    ("import time\ndef f(x):\n    time.sleep(60)\n", "TIMEOUT"),
    ("while True:\n    pass\n", "TIMEOUT"),
    ("def f(x):\n    return len(bytearray(1 << 30))\n", "MEMORY"),
    ("z = bytearray(1 << 30)\n", "MEMORY"),
]


async def test_limits(tmp_path: Path) -> None:
    """CPU time, blocking and memory are limited, each with its class."""
    task = own(tmp_path, base_input=[[1]])
    referee = EvalPlusReferee({"min_time_s": 0.1, "memory_bytes": 256 << 20})
    verdicts = await referee.judge_many([(exhibit(code), task.sealed) for code, _ in LIMITS], LocalRooms())
    assert [expected for _, expected in LIMITS] == [verdict.reading for verdict in verdicts]


async def test_missing_file_is_no_build(tmp_path: Path) -> None:
    """An exhibit without the candidate's file was not built; why it was left out of the exhibit is said."""
    task, referee = own(tmp_path), EvalPlusReferee()
    dropped = (Dropped(path="solution.py", why="symbolic link"),)
    left = Exhibit(tree=Tree.of({"other.py": "f = abs"}), dropped=dropped)
    verdict = await referee.judge(left, task.open, task.sealed, LocalRooms())
    assert (verdict.reading, verdict.tiers[0].passed, verdict.tiers[0].total) == ("NO_BUILD", 0, 3)
    assert "symbolic link" in verdict.detail


async def test_public_check_tells_facts_and_keeps_its_room(tmp_path: Path) -> None:
    """Rounds share a room; a reading has counts and literal facts in source order, at most six, none of them hidden."""
    task = own(tmp_path, base_input=[[n] for n in range(9)], plus_input=[[77]])
    rooms = LocalRooms()
    await ran_reference(task)
    async with EvalPlusReferee().public_check(task.open, task.sealed, rooms) as check:
        assert check is not None
        wrong = await check("def f(x):\n    return 1\n")
        right = await check("def f(x):\n    return x + 1\n")
        broken = await check("def f(x)\n")
        other = await check("def g(x):\n    return x + 1\n")
        surrogate = await check("'\udc80'")
    assert (wrong.reading, wrong.accepted, wrong.passed, wrong.total) == ("FAIL", False, 1, 9)
    assert [(f.call, f.expected) for f in wrong.facts] == [(f"f({n})", str(n + 1)) for n in range(1, 7)]
    assert (right.reading, right.accepted, right.passed, right.facts) == ("PASS", True, 9, ())
    every = tuple(Fact(call=f"f({n})", expected=str(n + 1)) for n in range(6))
    assert (broken.reading, broken.passed, broken.facts) == ("NO_BUILD", 0, every)
    assert (other.reading, other.passed, other.facts) == ("INTERFACE_MISS", 0, every)
    assert str(broken.unbuilt).startswith("SyntaxError: expected ':'")
    assert wrong.unbuilt is right.unbuilt is None
    assert surrogate.reading == "NO_BUILD"
    assert len(rooms.opened) == 1


async def test_a_crash_does_not_end_the_public_tier(tmp_path: Path) -> None:
    """The public tier goes on behind a call that killed the child; the first event decides."""
    task = own(tmp_path, base_input=[[1], [2], [3], [4]])
    code = "import os\ndef f(x):\n    if x == 2:\n        os._exit(0)\n    return x + 1 if x < 4 else 0\n"
    async with EvalPlusReferee().public_check(task.open, task.sealed, LocalRooms()) as check:
        assert check is not None
        got = await check(code)
    assert (got.reading, got.passed, got.total) == ("CRASH", 2, 4)
    assert [(fact.call, fact.ended, fact.observed) for fact in got.facts] == [
        ("f(2)", "CRASH", None),
        ("f(4)", None, "0"),
    ]


async def test_a_fact_says_what_came_instead(tmp_path: Path) -> None:
    """The value, or the exception in the candidate's own words; nothing of what is no plain data, or too long."""
    task = own(tmp_path, base_input=[[n] for n in range(6)])
    code = (
        "def f(x):\n"
        "    if x == 1: raise type('a\\nb', (ValueError,), {})('```')\n"
        "    return [x, [x], iter([x]), 'x' * 5000, {x: None}, -x][x]\n"
    )
    async with EvalPlusReferee().public_check(task.open, task.sealed, LocalRooms()) as check:
        assert check is not None
        got = await check(code)
    told = [(fact.observed, fact.raised, fact.ended) for fact in got.facts]
    assert told == [
        ("0", None, None),
        (None, "a\nb: ```", None),
        (None, None, None),
        (None, None, None),
        ("{4: None}", None, None),
        ("-5", None, None),
    ]


async def test_each_call_gets_its_own_arguments(tmp_path: Path) -> None:
    """A candidate that changes its arguments changes neither a later call nor what the judge compares with."""
    task = own(tmp_path, canonical_solution="    return sum(x)\n", base_input=[[[1, 2]], [[1, 2]]], plus_input=[])
    code = "kept = []\ndef f(x):\n    kept.append(x)\n    s = sum(x)\n    [k.clear() for k in kept]\n    return s\n"
    assert await reading(task, code) == ("PASS", "PASS", "NOT_RUN")


async def test_what_the_prompt_had_written_is_there(tmp_path: Path) -> None:
    """Imports and helpers of the prompt run first; without the option they don't. Both are different suites."""
    prompt = 'import math\n\n\ndef helper(x):\n    return math.floor(x)\n\n\ndef f(x):\n    """..."""\n'
    task = own(tmp_path, prompt=prompt, canonical_solution="    return helper(x) + 1\n")
    code = "def f(x):\n    return helper(x) + 1\n"
    assert (await reading(task, code))[0] == "PASS"
    assert (await reading(task, code, {"prelude": False}))[0] == "FAIL"
    digests = {EvalPlusReferee(options).suite(task.sealed)["digest"] for options in ({}, {"prelude": False})}
    assert len(digests) == 2


def test_a_prelude_is_everything_but_the_entry_point() -> None:
    """Imports, helpers and constants are kept, texts and the entry point are not, also when a prompt has no body yet."""
    prompt = '"""Words."""\nimport os\nA = 1\ndef g():\n    return A\ndef f(x):\n    """Doc."""\n'
    assert prelude_of(prompt, "f") == "import os\nA = 1\ndef g():\n    return A"
    assert prelude_of("import os\ndef f(x):\n", "f") == "import os"
    assert prelude_of("this is no Python", "f") == ""


def test_what_a_suite_says(tmp_path: Path) -> None:
    """Counts and digest follow the cap; the digest names inputs, reference, rule and options, and no secret is in it."""
    task = own(tmp_path, plus_input=[[n] for n in range(400)])
    capped, full = EvalPlusReferee(), EvalPlusReferee({"hidden_cap": "all"})
    assert capped.suite(task.sealed)["counts"] == {"public": 3, "hidden": 300}
    assert full.suite(task.sealed)["counts"] == {"public": 3, "hidden": 400}
    assert capped.suite(task.sealed)["digest"] != full.suite(task.sealed)["digest"]
    assert "return x + 1" not in json.dumps(capped.suite(task.sealed))
    assert load_suite(task.sealed, full.options).args("hidden", 399) == [399]


def test_a_suite_is_decoded_once(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811 - the fixture
    """A second run has the very same suite without decoding; other options, and a damaged file, are decoded anew."""
    task = own(tmp_path, plus_input=[[(n,)] for n in range(400)])
    options = EvalPlusReferee({"hidden_cap": "all"}).options
    first = load_suite(task.sealed, options)
    [kept] = (own_home / "decoded").iterdir()
    decoded: list[str] = []
    convert = evalplus_inputs.convert_inputs

    def noted(task_id: str, calls: list[list[Any]]) -> list[list[Any]]:
        decoded.append(task_id)
        return convert(task_id, calls)

    monkeypatch.setattr(evalplus_inputs, "convert_inputs", noted)
    assert load_suite(task.sealed, options) == first
    assert load_suite(task.sealed, options).digest == first.digest
    assert not decoded
    assert load_suite(task.sealed, EvalPlusReferee().options).total("hidden") == 300
    kept.write_bytes(kept.read_bytes()[:-1])
    assert load_suite(task.sealed, options) == first
    assert len(decoded) == 4


@pytest.mark.parametrize(
    "options",
    [{"hidden_cap": 0}, {"hidden_cap": "most"}, {"prelude": "yes"}, {"memory_bytes": 1}, {"min_time_s": 0},
     {"min_time_s": float("nan")}, {"file": "../x.py"}, {"speed": 3}],
)  # fmt: skip
def test_options_that_are_refused(options: dict[str, Any]) -> None:
    """An option that means nothing is refused, with its name and the known ones."""
    with pytest.raises(ExperimentError, match=rf"{next(iter(options))}.*Known: hidden_cap"):
        EvalPlusReferee(options)


async def test_expected_values_are_kept_and_checked(tmp_path: Path, own_home: Path) -> None:  # noqa: F811 - the fixture
    """A second referee reads what the first kept; a changed file is not believed, and the reference runs again."""
    task = own(tmp_path)
    assert (await reading(task, "def f(x):\n    return x + 1\n"))[0] == "PASS"
    [kept] = (own_home / "suites").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert (await reading(task, "def f(x):\n    return x + 1\n"))[0] == "PASS"
    digest, _, data = kept.read_bytes().partition(b"\n")
    assert digest_bytes(data).encode() == digest
    assert len(list((own_home / "suites").iterdir())) == 1


@pytest.mark.parametrize("solution", ["    return object()\n", "    import os; os._exit(0)\n"])
async def test_a_reference_that_gives_nothing_is_ours(tmp_path: Path, solution: str) -> None:
    """Without expected values there is no verdict: RefereeError, after a second try in a fresh room."""
    task, rooms = own(tmp_path, canonical_solution=solution), LocalRooms()
    with pytest.raises(RefereeError, match="Own/0"):
        await EvalPlusReferee().judge(exhibit("def f(x):\n    return x\n"), task.open, task.sealed, rooms)
    assert len(rooms.opened) == 2


SCAN = """
import ctypes, re
def remembered(pattern):
    for line in open("/proc/self/maps"):
        low, high = (int(part, 16) for part in line.split()[0].split("-"))
        if line.split()[1].startswith("rw") and high - low < 1 << 28:
            yield from re.findall(pattern, ctypes.string_at(low, high - low))
def f(x):
    return x + 1 if any(remembered(b"only-the-[r]eference-says-this")) else None
"""


async def test_no_candidate_inherits_the_reference(tmp_path: Path) -> None:
    """The memory of a candidate's process, freed parts included, has never held the reference's source."""
    task = own(tmp_path, canonical_solution="    return x + 1  # only-the-reference-says-this\n")
    assert await reading(task, SCAN, {"min_time_s": 20.0}) == ("FAIL", "FAIL", "NOT_RUN")
    # It does find what its process holds: its own text says the same, when written in one piece.
    found = SCAN + "mark = b'only-the-reference-says-this'\n"
    assert await reading(task, found, {"min_time_s": 20.0}) == ("PASS", "PASS", "PASS")


async def test_a_pinned_python_must_be_there(tmp_path: Path) -> None:
    """A room with another version than the pinned one is not judged in."""
    task = own(tmp_path)
    with pytest.raises(RefereeError, match=r"is pinned to 3\.1: judge in an image that has 3\.1, or set .*`python`"):
        await reading(task, "def f(x):\n    return x + 1\n", {"python": "3.1"})


async def test_sealed_material_that_is_no_suite_is_ours(tmp_path: Path) -> None:
    """A sealed half without a record says so and shows nothing of what is in it."""
    task = own(tmp_path)
    with pytest.raises(RefereeError, match="not a suite"):
        EvalPlusReferee().suite(SealedHalf(tests=Tree.of({"evalplus.json": '{"task_id": "secret"}'})))
    with pytest.raises(RefereeError, match="not a suite"):
        await EvalPlusReferee().judge(exhibit(""), task.open, SealedHalf(), LocalRooms())
