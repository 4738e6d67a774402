"""
What the readers of the command referee make of reports: those that real runners left (`logs/command`), and those that
somebody tampered with. Each refusal stands beside the report that it differs from in one thing.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from referees.command_card import CommandCard
from referees.command_counts import read_counts
from referees.command_readers import READERS, read_report
from referees.command_report import Unreadable

LOGS = Path(__file__).parent / "logs" / "command"


def words(runner: str, data: bytes) -> dict[str, str]:
    """The word of each test, each told once."""
    told = READERS[runner](data)
    assert len({item.id for item in told}) == len(told)
    return {item.id: item.word for item in told}


def card(runner: str, ids: list[str]) -> CommandCard:
    """A card for these ids."""
    return CommandCard(runner=runner, ids=ids, program=["./it"], command=["sh", "suite.sh"])


GO = {
    "suite.TestPasses": "passed",
    "suite.TestFails": "failed",
    "suite.TestSkipped": "skipped",
    "suite.TestGroup/one": "passed",
    "suite.TestGroup/two/deep": "failed",
    "suite.TestOuterFails": "failed",
    "suite.TestOuterFails/inner": "passed",
}
CARGO = {
    "tests::adds": "passed",
    "tests::fails": "failed",
    "tests::ignored": "skipped",
    "tests::ignored_why": "skipped",
    "tests::panics": "passed",
    "other": "passed",
}
NODE = {
    "counts": "passed",
    "fails": "failed",
    "skipped": "skipped",
    "todo": "todo",
    "group > inner one": "passed",
    "group > inner two": "failed",
}


@pytest.mark.parametrize(
    ("runner", "log", "expected"),
    [
        ("go", "go.json", GO),
        ("go", "go_panic.json", {**GO, "suite.TestPanics": "failed"}),
        ("cargo", "cargo.txt", CARGO),
        ("cargo", "cargo.json", CARGO),
        ("node", "node18.tap", NODE),
        ("node", "node20.tap", {**NODE, "other": "passed"}),
        (
            "ctest",
            "ctest.xml",
            {"right": "passed", "wrong": "failed", "skipped": "skipped", "absent": "skipped", "off": "skipped"},
        ),
    ],
)
def test_what_real_runners_left(runner: str, log: str, expected: dict[str, str]) -> None:
    """Recorded reports: every test with its word; of tests that hold others only the innermost, and who failed alone."""
    assert words(runner, (LOGS / log).read_bytes()) == expected


def test_failures_say_what_the_runner_said() -> None:
    """The runner's own message comes with the test, bounded."""
    for runner, log, test, said in (
        ("go", "go.json", "suite.TestGroup/two/deep", "suite_test.go:10: wrong"),
        ("cargo", "cargo.txt", "tests::fails", "assertion `left == right` failed"),
        ("cargo", "cargo.json", "tests::fails", "assertion `left == right` failed"),
        ("node", "node18.tap", "group > inner two", "error: 'boom'"),
        ("ctest", "ctest.xml", "wrong", "<x> ]]>"),
    ):
        [found] = [item for item in READERS[runner]((LOGS / log).read_bytes()) if item.id == test]
        assert said in found.detail
        assert len(found.detail) <= 600


@pytest.mark.parametrize("log", sorted(path.name for path in LOGS.iterdir() if path.suffix != ".xml"))
def test_a_report_that_is_cut_short_is_unreadable(log: str) -> None:
    """Wherever a whole line is missing at the end, the report does not say what happened."""
    runner = next(name for name in ("go", "cargo", "node") if log.startswith(name))
    lines = (LOGS / log).read_bytes().rstrip(b"\n").split(b"\n")
    if runner == "node":  # its last lines are comments; what counts is the plan before them
        lines = lines[: next(index for index, line in enumerate(lines) if line.startswith(b"1..")) + 1]
    for kept in range(1, len(lines)):
        with pytest.raises(Unreadable):
            read_report(card(runner, ["x"]), b"\n".join(lines[:kept]), 0)


def test_a_suite_that_does_not_compile_is_unreadable() -> None:
    """What go says then is no event."""
    with pytest.raises(Unreadable, match="expected an event"):
        READERS["go"]((LOGS / "go_no_compile.json").read_bytes())


TAP = b"TAP version 14\n1..3\nok 1 - a\n# why\nok 2 - b\n  ---\n  got: 1\n  ...\nok 3 - c\n"


def test_tap() -> None:
    """Version, comments, blocks, a plan at either end, numbers or none."""
    assert words("tap", TAP) == dict.fromkeys("abc", "passed")
    assert words("tap", b"ok\nok - b\nok 3 c # 1\n1..3\n") == {"1": "passed", "b": "passed", "c # 1": "passed"}
    assert words("tap", b"1..2\nok 1 - a # SKIP no\nnot ok 2 - b # TODO later\n") == {"a": "skipped", "b": "todo"}
    assert words("tap", b"1..1\nnot ok 1 - a # SKIP no\n") == {"a": "failed"}
    assert words("tap", b"1..1\nok 1 - a \\# SKIP no\n") == {"a # SKIP no": "passed"}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"1..3\n", b"", "a plan of none"),
        (b"1..3\n", b"1..4\n", "a plan of 4"),
        (b"1..3\n", b"1..3\n1..3\n", "a second plan"),
        (b"ok 2", b"ok 7", "expected number 2"),
        (b"# why", b"why", "expected a plan, a test"),
        (b"# why", b"Bail out! no", "expected a plan, a test"),
        (b"# why", b"# not ok 2 - b", "inside a comment"),
        (b"  got: 1", b"  got: ok 2 - b", "inside a comment or a block"),
        (b"  ...\n", b"", "does not end before it"),
        (b"  ...\nok 3 - c\n", b"  got: 2\n", "stops inside a block"),
        (b"1..3\n", b"1..3 # not ok 1 - a\n", "inside a comment"),
        (b"ok 2 - b\n", b"    1..0 # not ok 2 - b\nok 2 - b\n", "inside a comment"),
        (b"ok 3", b"    ok 3", "expected number 1"),
        (b"ok 3", b"  ok 3", "expected a plan, a test"),
        (b"ok 3 - c\n", b"ok 3 - c\n    ok 1 - d\n", "stops inside a block or a subtest"),
        (b"TAP version 14", b"TAP version 12", "expected a plan, a test"),
    ],
)
def test_tap_that_is_none(old: bytes, new: bytes, why: str) -> None:
    """One change, and the report does not say what happened."""
    assert TAP.count(old) == 1
    with pytest.raises(Unreadable, match=why):
        READERS["tap"](TAP.replace(old, new))


FAILING = [b"TAP version 14", b"1..3", b"ok 1 - a", b"not ok 2 - b", b"ok 3 - c"]
CLAIMS = st.sampled_from(
    [
        b"ok 1 - a",
        b"ok 2 - b",
        b"ok 3 - c",
        b"  ---",
        b"  ...",
        b"# ",
        b"    ",
        b"1..3",
        b"1..2",
        b"    1..0 # ",
        b"  x: ",
        b"",
        b"not ",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.lists(CLAIMS, min_size=1, max_size=3), st.booleans()), max_size=3))
@example([(3, [b"ok 2 - b", b"# "], False)])
@example([(3, [b"ok 2 - b", b"  ---", b"  x: "], False), (4, [b"  ..."], True)])
@example([(3, [b"ok 2 - b"], True)])
@example([(3, [b"    1..0 # "], False), (4, [b"ok 2 - b"], True)])
def test_nothing_that_is_put_into_a_failing_report_makes_it_pass(added: list[tuple[int, list[bytes], bool]]) -> None:
    """Whatever a program says between the lines, with or without an end of its last line, no failure is lost."""
    lines = list(FAILING)
    for at, claims, ended in added:
        text = b"\n".join(claims) + (b"\n" if ended else b"")
        place = min(at, len(lines) - 1)
        lines[place] = text + lines[place]
    try:
        report = read_report(card("tap", ["a", "b", "c"]), b"\n".join(lines) + b"\n", 0)
    except Unreadable:
        return
    assert report.first is not None


JUNIT = (
    b'<?xml version="1.0"?><testsuites><testsuite name="s" tests="2" failures="0" errors="0" skipped="0">'
    b'<testcase classname="s.T" name="a"/><testcase name="b"><system-out>text</system-out></testcase>'
    b"</testsuite></testsuites>"
)


def test_junit() -> None:
    """Cases by class and name; failures, errors, skips and the status of ctest."""
    assert words("junit", JUNIT) == {"s.T.a": "passed", "b": "passed"}
    failing = JUNIT.replace(b'failures="0"', b'failures="1"').replace(
        b"<system-out>", b'<error message="no"/><system-out>'
    )
    assert words("junit", failing) == {"s.T.a": "passed", "b": "failed"}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b'tests="2"', b'tests="3"', "says tests 3, and 2"),
        (b'failures="0"', b'failures="1"', "says failures 1, and 0"),
        (b'skipped="0"', b'skipped="x"', "no numbers"),
        (b"<testsuites>", b'<!DOCTYPE x [<!ENTITY y "z">]><testsuites>', "a document type"),
        (b"text", b"&lt;testcase name='c'&gt;", "inside the text of 'system-out'"),
        (b"text", b"<![CDATA[<testcase/>]]>", "inside the text of 'system-out'"),
        (b"text", b"&y;", "no XML"),
        (b"<system-out>", b"<!-- <failure/> --><system-out>", "a comment"),
        (b"<system-out>", b"<?pi?><system-out>", "a processing instruction"),
        (b"<system-out>", b"<b/><system-out>", "an element 'b'"),
        (b"<system-out>", b"odd<system-out>", "text in 'testcase'"),
        (b'name="b"', b'name=""', "without a name"),
        (b'name="b"', b'name="b" status="odd"', "the status 'odd'"),
        (b"</testsuites>", b"", "no XML"),
        (b"</testsuites>", b"</testsuites><testsuites/>", "no XML"),
    ],
)
def test_junit_that_is_none(old: bytes, new: bytes, why: str) -> None:
    """One change, and the report does not say what happened."""
    assert JUNIT.count(old) == 1
    with pytest.raises(Unreadable, match=why):
        READERS["junit"](JUNIT.replace(old, new))


def test_junit_of_any_depth_or_size_is_bounded() -> None:
    """Suites within suites are counted, down to a bound."""
    deep = b'<testsuite name="s">' * 9 + b"</testsuite>" * 9
    with pytest.raises(Unreadable, match="an element 'testsuite'"):
        READERS["junit"](deep)
    assert READERS["junit"](b'<testsuite name="s">' * 8 + b"</testsuite>" * 8) == []


def test_counts() -> None:
    """One line counts; none, two, or one that is too long does not; a failure is no pass, whatever the exit status."""
    pattern = r"(?P<passed>\d+) passed, (?P<failed>\d+) failed"
    counting = CommandCard(runner="counts", total=3, pattern=pattern, program=["./it"], command=["sh", "suite.sh"])
    assert read_report(counting, b"hello\n3 passed, 0 failed\n", 0).first is None
    failing = read_report(counting, b"2 passed, 1 failed\n", 1)
    assert (failing.passed, failing.first is None) == (2, False)
    for data, status in (
        (b"", 0),
        (b"3 passed, 0 failed\n" * 2, 0),
        (b"2 passed, 0 failed\n", 0),
        (b"4 passed, 0 failed\n", 0),
        (b"3 passed, 0 failed\n", 1),
        (b"2 passed, 1 failed\n", 0),
        (b"x" * 20_000 + b"\n3 passed, 0 failed\n", 0),
        (b"99999999 passed, 0 failed\n", 0),
    ):
        with pytest.raises(Unreadable):
            read_report(counting, data, status)
    assert [item.word for item in read_counts(b"1 passed, 1 failed", pattern)] == ["passed", "failed"]


@pytest.mark.parametrize(
    ("data", "status", "first"),
    [
        (b"1..2\nok 1 - a\nok 2 - b\n", 0, None),
        (b"1..2\nok 1 - a\nnot ok 2 - b\n", 1, "b"),
        (b"1..2\nok 1 - a\nnot ok 2 - b\n", 0, "b"),
        (b"1..2\nok 1 - a\nok 2 - b # SKIP\n", 0, "b"),
        (b"1..3\nok 1 - a\nok 2 - b\nnot ok 3 - c\n", 1, "c"),
        (b"1..3\nok 1 - a\nnot ok 2 - a\nok 3 - b\n", 1, "a"),
        (b"1..1\nnot ok 1 - b\n", 1, "b"),
    ],
)
def test_what_counts(data: bytes, status: int, first: str | None) -> None:
    """PASS needs both, once, passed; failures count wherever they are, declared or not."""
    report = read_report(card("tap", ["a", "b"]), data, status)
    assert (report.first.id if report.first else None) == first


@pytest.mark.parametrize(
    ("data", "status", "why"),
    [
        (b"1..1\nok 1 - a\n", 0, "b is missing"),
        (b"1..3\nok 1 - a\nok 2 - b\nok 3 - b\n", 0, "b is reported more than once"),
        (b"1..3\nok 1 - a\nok 2 - b\nok 3 - c\n", 0, "c is not declared"),
        (b"1..2\nok 1 - a\nok 2 - b\n", 1, "exit status is 1"),
        (b"", 0, "a plan of none"),
    ],
)
def test_what_is_not_of_the_declared_suite(data: bytes, status: int, why: str) -> None:
    """Nothing failed, and yet it is no pass: that says something of the suite, and nothing of the program."""
    with pytest.raises(Unreadable, match=why):
        read_report(card("tap", ["a", "b"]), data, status)


def test_a_runner_that_fails_must_say_so_in_its_status() -> None:
    """Go ends with 1 when a test failed; a report of failures with 0 is at odds with itself."""
    data = (LOGS / "go.json").read_bytes()
    assert read_report(card("go", list(GO)), data, 1).passed == 3
    with pytest.raises(Unreadable, match="exit status is 0"):
        read_report(card("go", list(GO)), data, 0)


@pytest.mark.parametrize(
    ("runner", "data"),
    [
        ("cargo", b'{"type":"suite","event":["started"]}'),
        ("cargo", b'{"type":"suite","event":"started","test_count":1}\n{"type":"test","event":{},"name":"a"}'),
        ("junit", b'<?xml version="1.0" encoding="gbk"?><testsuite name="\xc4\xe3"/>'),
        ("junit", b'<?xml version="1.0" encoding="hex"?><testsuite><x/></testsuite>'),
        ("junit", b'<?xml version="1.0" encoding="iso-8859-1"?><testsuite name="\xe9"/>'),
    ],
)
def test_events_and_encodings_of_no_known_kind_are_unreadable(runner: str, data: bytes) -> None:
    """A word that is a list or a table is no word; XML is read as UTF-8, whatever it calls itself."""
    with pytest.raises(Unreadable):
        READERS[runner](data)


@pytest.mark.parametrize("runner", sorted(READERS))
@given(data=st.binary(max_size=300))
@settings(max_examples=40, deadline=None)
def test_no_reader_falls_over(runner: str, data: bytes) -> None:
    """Whatever the bytes, a reader reads or refuses."""
    try:
        READERS[runner](data)
    except Unreadable:
        return
