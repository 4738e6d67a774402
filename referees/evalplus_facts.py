"""What a public tier tells of its calls: violated assertions for a seat, and a reading of each for the record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.values import TestReading
from harness.views import Fact
from referees.evalplus_expected import Expected
from referees.evalplus_render import FACT_CHARS, observed, render
from referees.evalplus_suite import Suite
from referees.evalplus_tiers import TierRun
from referees.evalplus_values import parse

__all__ = ["facts_of", "tests_of", "unbuilt_of"]

_MOST_FACTS = 6
_TEST_CHARS = 4000
"""Enough for every public assertion of EvalPlus's own data sets. One that is longer is left out whole, as a fact is."""


def facts_of(suite: Suite, expected: Expected, run: TierRun) -> tuple[Fact, ...]:
    """
    The first six violated public assertions that can be written, in source order, each with what the candidate did
    instead as far as that can be written too. A candidate of which no call can be made (it does not build, or has no
    entry point) violates all of them.
    """
    facts: list[Fact] = []
    uncalled = run.reading != "PASS" and set(run.calls) <= {"NOT_RUN"}
    for index in range(len(run.calls)) if uncalled else run.violated:
        fact = _fact(suite, expected, index, FACT_CHARS)
        if fact is not None:
            facts.append(replace(fact, **_instead(suite, expected, run, index)))
        if len(facts) == _MOST_FACTS:
            break
    return tuple(facts)


def unbuilt_of(run: TierRun) -> str | None:
    """The exception of a candidate that does not build, None of any other."""
    return run.why.removeprefix("build: ") if run.reading == "NO_BUILD" else None


def tests_of(suite: Suite, expected: Expected, run: TierRun) -> tuple[TestReading, ...]:
    """The reading of each public call; of a violated one the assertion, `f(1) == 2`, of one not run why."""
    tests, violated = [], set(run.violated)
    for index, reading in enumerate(run.calls):
        fact = _fact(suite, expected, index, _TEST_CHARS) if index in violated else None
        detail = "" if fact is None else f"{fact.call} == {fact.expected}"
        detail = run.left if reading == "NOT_RUN" else detail
        tests.append(TestReading(id=f"public[{index}]", reading=reading, detail=detail))
    return tuple(tests)


def _fact(suite: Suite, expected: Expected, index: int, limit: int) -> Fact | None:
    kind, data = expected["public"].frame(index)
    if suite.rule == "not_none":
        value: object = (kind, data) != ("V", b"N")
    # A value of more bytes than this has more characters than a fact may.
    elif kind == "V" and len(data) <= 8 * limit:
        value = expected["public"].value(index)
    else:
        return None
    args = suite.args("public", index)
    return render(suite.rule, suite.entry_point, args, value, atol=suite.atol, limit=limit)


def _instead(suite: Suite, expected: Expected, run: TierRun, index: int) -> dict[str, Any]:
    """What the candidate's call did: the value it gave, what it raised, or the class that ended it."""
    if run.calls[index] == "NOT_RUN":
        return {}
    if run.calls[index] != "FAIL":
        return {"ended": run.calls[index]}
    kind, data = run.told.get(index, ("", b""))
    if kind == "X":
        return {"raised": data.decode("utf-8", "replace")}
    if kind != "V":
        return {}
    try:
        value = parse(data, max_nodes=len(data) + 1)
    except ValueError:
        return {}
    # Where a fact could be written the reference's value is short, and sent whole.
    wanted = expected["public"].value(index) if expected["public"].frame(index)[0] == "V" else None
    return {"observed": observed(suite.rule, value, wanted, atol=suite.atol)}
