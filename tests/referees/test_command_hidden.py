"""
What a program whose output is in the report may not do there: hide what a suite says of it, or keep its reader busy.
Each attack stands beside the report that it differs from in what the program put out.
"""

from __future__ import annotations

import json
import time

import pytest

from referees.command_card import CommandCard
from referees.command_readers import READERS, read_report
from referees.command_report import NESTED, Unreadable
from tests.referees.test_command_report import card


def told(runner: str, data: bytes, status: int = 0) -> bool:
    """Whether a report of `a` and `b` passes."""
    return read_report(card(runner, ["a", "b"]), data, status).first is None


TAP = b"1..2\n%snot ok - a\n%sok - b\n"


@pytest.mark.parametrize(
    ("first", "second"),
    [(b"ok - a\n# x", b""), (b"ok - a\n# ", b""), (b"ok - a\n  ---\n  x", b"  ...\n"), (b"ok - a\n1..2 # x", b"")],
)
def test_a_failing_line_without_a_number_is_not_hidden(first: bytes, second: bytes) -> None:
    """Glued to the end of what the program left unfinished, a comment or a block, it is found all the same."""
    assert not told("tap", TAP % (b"", b""))
    with pytest.raises(Unreadable, match="inside a comment or a block"):
        told("tap", TAP % (first, second))


SUITE = (
    b'<testsuite><testcase name="a"><system-out>%s</system-out><failure message="no"/><system-err>%s</system-err>'
    b'</testcase><testcase name="b"><system-out>%s</system-out></testcase></testsuite>'
)
PIECE = range((1 << 20) - 135, (1 << 20) - 60, 4)
"""So much in front, and what the program would hide lies across the end of the parser's first piece."""


@pytest.mark.parametrize("padding", [0, 8180, *PIECE])
def test_no_test_case_is_hidden_in_a_text_of_any_length(padding: int) -> None:
    """A text comes in pieces, and a test case may lie across two of them."""
    opened = b"<![CDATA[" + b"x" * padding
    closed = b']]></system-out></testcase><testcase name="b"><system-out>'
    assert not told("junit", SUITE % (b"", b"", b""))
    with pytest.raises(Unreadable, match="inside the text of 'system-out'"):
        told("junit", SUITE % (opened, b"", closed))


@pytest.mark.parametrize("padding", [0, 8180, *PIECE])
def test_no_failure_is_hidden_between_two_texts(padding: int) -> None:
    """What the program put out closes what it opened before: all between them would be text."""
    opened, closed = b"<![CDATA[" + b"x" * padding, b"]]></system-out><system-err>"
    with pytest.raises(Unreadable, match="inside the text of 'system-out'"):
        told("junit", SUITE % (opened, closed, b""))
    assert (
        READERS["junit"](SUITE % (b"<![CDATA[a failure, no <failures>]]>", b"&lt;failure/>", b""))[0].word == "failed"
    )


def counting(pattern: str) -> CommandCard:
    """A card for two tests that are counted."""
    return CommandCard(runner="counts", total=2, pattern=pattern, program=["./it"], command=["sh", "suite.sh"])


PATTERN = r"(?P<failed>\d+) failed, (?P<passed>\d+) passed"


def test_a_line_counts_once() -> None:
    """Counts that the program put before the suite's own on one line are others, and so there are two."""
    assert read_report(counting(PATTERN), b"0 failed, 2 passed\n", 0).first is None
    with pytest.raises(Unreadable, match="2 places match"):
        read_report(counting(PATTERN), b"0 failed, 2 passed 1 failed, 1 passed\n", 0)


def test_a_line_that_a_pattern_takes_for_ever_over_is_given_up() -> None:
    """A pattern that is fine with what the suite says may not be with what a program does; its reader goes on."""
    slow = counting(r"^(?:\w+ ?)*(?P<passed>\d+) passed, (?P<failed>\d+) failed$")
    assert read_report(slow, b"all tests 2 passed, 0 failed\n", 0).first is None
    began = time.process_time()
    with pytest.raises(Unreadable, match="took over 1 s"):
        read_report(slow, b"x" * 60 + b"!\n2 passed, 0 failed\n", 0)
    assert time.process_time() - began < 0.5


def test_a_name_of_any_depth_is_bounded() -> None:
    """Subtests of Go's nest by their names: down to a bound, and not as many times over as there are slashes."""

    def go(depth: int) -> bytes:
        name = "/".join(["TestA", *"x" * (depth - 1)])
        events = [{"Action": "pass", "Package": "p", "Test": name}, {"Action": "pass", "Package": "p"}]
        return "\n".join(map(json.dumps, events)).encode()

    assert len(READERS["go"](go(NESTED - 1))) == 1
    with pytest.raises(Unreadable, match="nested"):
        READERS["go"](go(10**5))


@pytest.mark.parametrize(
    "line", ["running {} tests", "test result: FAILED. 1 passed; {} failed; 0 ignored; 0 measured"]
)
def test_a_number_without_end_is_none(line: str) -> None:
    """Python refuses to read so many digits, and so does the reader, in its own words."""
    log = "running 1 test\ntest a ... FAILED\n\n---- a stdout ----\n{}\n"
    end = "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n"
    long = line.format("9" * 5000) + ("; 0 filtered out" if "result" in line else "")
    assert READERS["cargo"]((log.format("x") + end).encode())[0].word == "failed"
    assert READERS["cargo"]((log.format(long) + end).encode())[0].word == "failed"
    with pytest.raises(Unreadable):
        READERS["cargo"](f"{long}\n".encode())


@pytest.mark.parametrize(
    ("forged", "status", "why"),
    [
        (b'{"Action":"pass","Package":"p","Test":"a"}\n', 1, "ends twice"),
        (b'{"Action":"pass","Package":"p"}\n', 1, "after its package ended"),
        (b'{"Action":"output","Package":"p","Output":"', 1, "expected an event"),
        (b"\0", 1, "expected an event"),
        (b"\x1b[2K\r", 1, "expected an event"),
        (b"\xff\xfe", 1, "expected an event"),
        (b"", 0, "exit status is 0"),
    ],
)
def test_forged_events_of_go(forged: bytes, status: int, why: str) -> None:
    """No line that a program adds, breaks or hides makes a failing report pass: it is unreadable at most."""
    failing = b'{"Action":"fail","Package":"p","Test":"a"}\n{"Action":"fail","Package":"p"}\n'
    assert read_report(card("go", ["p.a"]), failing, 1).first is not None
    with pytest.raises(Unreadable, match=why):
        read_report(card("go", ["p.a"]), forged + failing, status)


@pytest.mark.parametrize(
    "glued",
    [
        b"ok - a\n\0",
        b"ok - a\n\x1b[2K",
        b"ok - a\r",
        b"ok - a\n\xef\xbb\xbf",
        b"ok - a\n\x08",
        b"ok - a # ",
        b"ok - a\n\\",
    ],
)
def test_no_control_character_takes_a_line_away(glued: bytes) -> None:
    """What a terminal would not show stands in the report all the same."""
    assert not told("tap", TAP % (b"", b""))
    with pytest.raises(Unreadable):
        told("tap", TAP % (glued, b""))


def test_subtests_that_a_program_adds_are_not_declared() -> None:
    """Set in before a failing line, they are in it; the line fails all the same, or nothing does."""
    with pytest.raises(Unreadable):
        told("tap", TAP % (b"    ok - a\n    1..1\nok - a\n", b""))
    report = read_report(card("tap", ["a", "b"]), TAP % (b"    ok - x\n    1..1\n", b""), 0)
    assert report.first is not None
