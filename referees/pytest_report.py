"""What the judge's events say of each declared test: a pure function, and strict. Only `passed` in full is a pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import RefereeError
from harness.values import TestReading

__all__ = ["Outcome", "Report", "read_report", "sayable", "tests_of", "unread"]

_NOTHING_COLLECTED = 5
"""The status with which pytest says so."""

PHASES = ("setup", "call", "teardown")


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """
    One declared test: `word` is `passed`, or why it is not; `fault` is the class of what became of the subject, if
    anything, and `ended` whether its process was gone by then.
    """

    id: str
    word: str
    fault: str | None = None
    ended: bool = False
    line: str = ""
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Every declared test, in the card's order."""

    outcomes: tuple[Outcome, ...]

    @property
    def passed(self) -> int:
        """How many declared tests passed."""
        return sum(outcome.word == "passed" for outcome in self.outcomes)

    @property
    def first(self) -> Outcome | None:
        """The first declared test that did not pass."""
        return next((outcome for outcome in self.outcomes if outcome.word != "passed"), None)


def read_report(
    declared: Sequence[str],
    wanted: Sequence[str],
    events: Sequence[Mapping[str, Any]],
    nonce: str,
    *,
    whole: bool = True,
) -> Report:
    """
    The outcomes of the `wanted` tests among those `declared`; with `whole` False, those of a suite that was cut short.

    Raises `RefereeError` where the suite is not what the card declares or pytest itself did not finish: that is decided
    by sealed material alone, since the suite is collected without a call of the subject.
    """
    strange = [event for event in events if event.get("nonce") != nonce]
    if strange:
        raise RefereeError(f"{len(strange)} of {len(events)} events do not carry this execution's nonce")
    for event in events:
        if event["event"] == "uncollected":
            raise RefereeError(f"the suite can't be collected at {event['id'] or '.'}: {_reason(event['detail'])}")
    last = events[-1] if events else {}
    if last.get("status") == _NOTHING_COLLECTED:
        _collected_as_declared(declared, events)
    if whole and (last.get("event") != "finished" or last.get("status") not in {0, 1}):
        raise RefereeError(
            f"pytest did not finish: its last event is {dict(last)!r}, expected `finished` with status 0 or 1"
        )
    _collected_as_declared(declared, events)
    left_out = {test for event in events if event["event"] == "deselected" for test in event["ids"]}
    phases = [event for event in events if event["event"] == "phase"]
    return Report(
        outcomes=tuple(
            _outcome(test, [phase for phase in phases if phase["id"] == test], test in left_out) for test in wanted
        )
    )


def _reason(detail: str) -> str:
    """Of a long text on a failed collection the lines that say what is wrong, as pytest marks them; else all of it."""
    marked = [line[1:].strip() for line in detail.splitlines() if line.startswith("E ")]
    return " ".join(marked) or detail


def _collected_as_declared(declared: Sequence[str], events: Sequence[Mapping[str, Any]]) -> None:
    collections = [event["ids"] for event in events if event["event"] == "collected"]
    if len(collections) != 1:
        raise RefereeError(f"the suite was collected {len(collections)} times: expected once")
    found, asked = Counter(collections[0]), Counter(declared)
    if found != asked:
        missing, extra = sorted((asked - found).elements()), sorted((found - asked).elements())
        raise RefereeError(
            f"the suite is not what the card declares: {missing or 'none'} declared and not collected, "
            f"{extra or 'none'} collected and not declared"
        )


def _outcome(test: str, phases: Sequence[Mapping[str, Any]], left_out: bool) -> Outcome:  # noqa: FBT001 - a fact of it
    word = "deselected" if left_out else _word(phases)
    if word == "passed":
        return Outcome(id=test, word=word)
    failing = next((phase for phase in phases if phase["outcome"] != "passed" or phase["fault"]), {})
    fault = "MEMORY" if failing.get("raised") == "MemoryError" else failing.get("fault")
    return Outcome(
        id=test,
        word=word,
        fault=fault,
        ended=failing.get("fault") is not None,
        line=failing.get("line", ""),
        detail=failing.get("detail", ""),
    )


def _word(phases: Sequence[Mapping[str, Any]]) -> str:
    """`passed` for exactly one passed setup, call and teardown, with the subject alive; else why not."""
    whens = [phase["when"] for phase in phases]
    if not phases:
        return "missing"
    if len(set(whens)) != len(whens):
        return "run more than once"
    if any(phase["xfail"] for phase in phases):
        return "xfailed"
    if any(phase["outcome"] == "skipped" for phase in phases):
        return "skipped"
    if any(phase["outcome"] != "passed" or phase["fault"] for phase in phases):
        return "failed"
    return "passed" if tuple(whens) == PHASES else "missing a phase"


def unread(declared: Sequence[str]) -> tuple[TestReading, ...]:
    """Every declared test, none of which was run."""
    return tuple(TestReading(id=test, reading="NOT_RUN") for test in declared)


def tests_of(declared: Sequence[str], report: Report | None, reading: str) -> tuple[TestReading, ...]:
    """
    Every declared test once, in the card's order, with what it came to and the first line of it that was violated.

    The subject ends in one test, which has the class of that end; those after it were not run, whatever pytest made of
    them. A test that was cut short has the `reading` of the suite.
    """
    if report is None:
        return unread(declared)
    told: list[TestReading] = []
    ended = False
    for outcome in report.outcomes:
        if outcome.word == "passed":
            told.append(TestReading(id=outcome.id, reading="PASS"))
        elif outcome.word == "missing" or (outcome.ended and ended):
            told.append(TestReading(id=outcome.id, reading="NOT_RUN"))
        else:
            word = reading if outcome.word == "missing a phase" else outcome.fault or "FAIL"
            said = "; ".join(part for part in (outcome.word, outcome.line, outcome.detail) if part)
            told.append(TestReading(id=outcome.id, reading=word, detail=sayable(said)))
        ended = ended or outcome.ended
    return tuple(told)


def sayable(text: str) -> str:
    """The subject's words as any record can hold them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
