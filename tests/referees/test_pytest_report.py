"""Reading the judge's report: only a whole pass of every declared id is a PASS, and a broken report is no verdict."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import RefereeError
from referees.pytest_report import read_report


def phases(test: str, **changes: Any) -> list[dict[str, Any]]:
    """The three passed phases of a test; `changes` are laid over the call."""
    plain = {"event": "phase", "nonce": "n", "id": test, "outcome": "passed", "xfail": False, "fault": None}
    return [{**plain, "when": when, **(changes if when == "call" else {})} for when in ("setup", "call", "teardown")]


def events(*parts: list[dict[str, Any]], ids: tuple[str, ...] = ("a", "b"), status: int = 0) -> list[dict[str, Any]]:
    """The events of a run that collected `ids`."""
    head = [{"event": "collected", "nonce": "n", "ids": list(ids)}]
    return [*head, *(event for part in parts for event in part), {"event": "finished", "nonce": "n", "status": status}]


@pytest.mark.parametrize(
    ("word", "second"),
    [
        ("passed", phases("b")),
        ("missing", []),
        ("missing a phase", phases("b")[:2]),
        ("run more than once", [*phases("b"), *phases("b")]),
        ("skipped", phases("b", outcome="skipped")),
        ("xfailed", phases("b", outcome="skipped", xfail=True)),
        ("xfailed", phases("b", outcome="passed", xfail=True)),
        ("failed", phases("b", outcome="failed")),
        ("failed", phases("b", fault="CRASH")),
        ("run more than once", [*phases("b", outcome="rerun"), *phases("b")]),
        ("deselected", [{"event": "deselected", "nonce": "n", "ids": ["b"]}, *phases("b")]),
    ],
)
def test_only_a_whole_pass_is_a_pass(word: str, second: list[dict[str, Any]]) -> None:
    """Missing, doubled, skipped, xfailed, deselected or rerun is no pass; a test that is not declared isn't counted."""
    report = read_report(["a", "b"], ["a", "b"], events(phases("a"), second, phases("c")), "n")
    assert [outcome.word for outcome in report.outcomes] == ["passed", word]
    assert report.passed == 1 + (word == "passed")


def uncollected(detail: str) -> dict[str, Any]:
    """The event of a file that can't be collected."""
    return {"event": "uncollected", "nonce": "n", "id": "t.py", "detail": detail}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (events(ids=("a",)), "not what the card declares"),
        (events(ids=("a", "b", "b")), "not what the card declares"),
        (events(status=2), "did not finish"),
        (events()[:-1], "did not finish"),
        (events()[1:], "collected 0 times"),
        (events(ids=(), status=5), r"\['a', 'b'\] declared and not collected"),
        (
            [uncollected('importlib.py:5: in load\n    ...\nE     File "a.py", line 3\nE   SyntaxError: bad')],
            '^the suite can.t be collected at t.py: File "a.py", line 3 SyntaxError: bad$',
        ),
        ([uncollected("no mark at all")], "at t.py: no mark at all"),
        ([{**events()[0], "nonce": "other"}, *events()[1:]], "nonce"),
    ],
)
def test_a_broken_report_is_no_verdict(given: list[dict[str, Any]], said: str) -> None:
    """Events of another execution, another suite, or a pytest that did not finish, are the referee's failure."""
    with pytest.raises(RefereeError, match=said):
        read_report(["a", "b"], ["a", "b"], given, "n")
