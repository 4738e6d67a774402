"""What a characterisation leaves untouched, and what changes from one round to the next."""

from __future__ import annotations

from harness.tasks.characterise import Characterised, Kind
from harness.tasks.flaky import Flaky, flaky
from harness.tasks.suite_arms import DeadArms, dead_arms
from harness.tree import Tree
from harness.values import TestReading

SUITE = Tree.of(
    {
        "test_it.py": (
            "import pytest\n\n\ndef test_a():\n    assert f(1) == 2\n    assert f(2) == 3\n\n\n"
            "def test_b():\n    with pytest.raises(ValueError):\n        f(0)\n    assert (\n        f(4) == 5\n    )\n"
        ),
        "notes.txt": "assert nothing\n",
        "broken.py": "def (\n",
    }
)


def row(name: str, kind: Kind, **tests: str) -> Characterised:
    """A row whose tests read as given, `READING detail`."""
    told = tuple(
        TestReading(id=f"test_it.py::{test}", reading=said.partition(" ")[0], detail=said.partition(" ")[2])
        for test, said in tests.items()
    )
    return Characterised(name=name, kind=kind, word="killed", holds=True, reading="FAIL", tests=told)


REFERENCE = row("reference", "reference", test_a="PASS", test_b="PASS", test_c="PASS")


def test_dead_tests_and_assertions_are_told() -> None:
    """A test that nothing fails; one that only degenerates fail; assertions that were never the first to be violated."""
    rows = [
        REFERENCE,
        row("m1", "mutant", test_a="FAIL failed; assert f(2) == 3; got 4", test_b="PASS", test_c="NOT_RUN"),
        row("stub", "battery", test_a="PASS", test_b="FAIL failed; with pytest.raises(ValueError):", test_c="PASS"),
    ]
    assert dead_arms(rows, SUITE) == DeadArms(
        tests=("test_it.py::test_c",),
        by_no_mutant=("test_it.py::test_b",),
        assertions=("test_it.py:5 assert f(1) == 2", "test_it.py:12 assert ("),
    )


def test_where_everything_is_tripped_nothing_is_dead() -> None:
    """The other answer: no test and no assertion is left."""
    lines = ("assert f(1) == 2", "assert f(2) == 3")
    rows = [
        REFERENCE,
        *(row(line, "mutant", test_a=f"FAIL {line}", test_b="FAIL assert (", test_c="FAIL x") for line in lines),
        row("g", "generated", test_b="FAIL with pytest.raises(ValueError):"),
    ]
    assert dead_arms(rows, SUITE) == DeadArms(tests=(), by_no_mutant=(), assertions=())


def test_what_a_referee_does_not_tell_is_none_and_not_zero() -> None:
    """Without readings by test nothing is known; without violated lines nothing of assertions."""
    assert dead_arms([row("reference", "reference")], SUITE) == DeadArms(tests=None, by_no_mutant=None, assertions=None)
    silent = [REFERENCE, row("m1", "mutant", test_a="FAIL")]
    assert dead_arms(silent, SUITE).assertions is None


def test_a_test_that_changes_is_flaky() -> None:
    """By its own reading, by the whole's, and where it is told of only once; the same every time is not."""
    steady = row("m1", "mutant", test_a="FAIL", test_b="PASS")
    assert flaky([[REFERENCE, steady], [REFERENCE, steady]]) == ()
    wavering = row("m1", "mutant", test_a="PASS")
    assert flaky([[steady], [wavering], [steady]]) == (
        Flaky(candidate="mutant m1", test="test_it.py::test_a", readings=("FAIL", "PASS", "FAIL")),
        Flaky(candidate="mutant m1", test="test_it.py::test_b", readings=("PASS", "not told", "PASS")),
    )
    unread = Characterised(name="m1", kind="mutant", word="not measured", holds=False)
    (whole, *_) = flaky([[steady], [unread]])
    assert (whole.test, whole.readings) == ("", ("FAIL", "not measured"))
