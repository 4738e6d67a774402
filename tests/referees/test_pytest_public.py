"""What a public fact of the `pytest` referee says of the subject's own answer."""

from __future__ import annotations

import pytest

from referees.pytest_public import told
from referees.pytest_report import Outcome


@pytest.mark.parametrize(
    ("line", "detail", "fault", "came"),
    [
        ("assert double(2) == 4", "AssertionError: x; the subject's last answer: 6", None, {"observed": "6"}),
        (
            "assert double(2) == 4",
            "KeyError: 'no'; the subject's last answer: KeyError('no')",
            None,
            {"raised": "KeyError: 'no'"},
        ),
        ("assert double(2) == 4", "AssertionError: x; the subject's last answer: <object>", None, {}),
        ("assert double(2) == 4", "AssertionError: x", None, {}),
        ("assert double(2) == 4", "AssertionError: x; the subject's last answer: {[]: 1}", None, {}),
        ("assert double(2) == 4", "AssertionError: x; the subject's last answer: {{1}, 2}", None, {}),
        ("assert double(2) == 4", f"AssertionError: x; the subject's last answer: {'(' * 150}", None, {}),
        ("assert double(2) == 4", "SubjectGone: x", "CRASH", {"ended": "CRASH"}),
        ("assert double(2) == 4", "KeyError: 'no'; the subject's last answer: 6", None, {}),
        ("assert shown(2) == 4", "AssertionError: x; the subject's last answer: 6", None, {}),
        ("assert double(double(2)) == 4", "AssertionError: x; the subject's last answer: 6", None, {}),
        ("assert double.of(2) == 4", "AssertionError: x; the subject's last answer: 6", None, {}),
    ],
)
def test_a_public_fact_says_what_came_instead(line: str, detail: str, fault: str | None, came: dict[str, str]) -> None:
    """The subject's answer where its own name alone was called, and never in the place of a helper's of the suite."""
    fact = told(Outcome(id="t", word="failed", line=line, detail=detail, fault=fault), frozenset({"double"}))
    assert fact is not None
    told_of = {name: getattr(fact, name) for name in ("observed", "raised", "ended")}
    assert {name: text for name, text in told_of.items() if text is not None} == came
