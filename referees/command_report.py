"""What a runner's report says of each declared test: pure functions, and strict. Only `passed`, once, is a pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

__all__ = ["DETAIL", "Found", "Outcome", "Report", "Told", "Unreadable", "decide", "leaves"]

DETAIL = 600
"""Characters of what a runner said of one test."""

MOST = 20_000
"""Tests in one report."""

NESTED = 100
"""Names from the outermost test to the innermost."""


class Unreadable(Exception):  # noqa: N818 - it says what the report is
    """A report that does not say what happened: malformed, at odds with itself, or not of the declared suite."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """One test as a report has it: `word` is `passed`, `failed`, `skipped` or `todo`."""

    id: str
    word: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """One test in a report that nests tests, by the names from the outermost to its own."""

    path: tuple[str, ...]
    word: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One declared test: `word` is `passed`, or why it is not."""

    id: str
    word: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Every declared test in the card's order; `first` is the first thing that forbids a PASS, declared or not."""

    outcomes: tuple[Outcome, ...]
    first: Outcome | None

    @property
    def passed(self) -> int:
        """How many declared tests passed."""
        return sum(outcome.word == "passed" for outcome in self.outcomes)


def leaves(found: Sequence[Found], name: Callable[[tuple[str, ...]], str]) -> list[Told]:
    """
    The tests that hold no other, each named by `name`. One that does is told only where it did not pass although
    everything in it did: then something of its own went wrong.
    """
    if len(found) > MOST:
        raise Unreadable(f"{len(found)} tests: expected at most {MOST}")
    deepest = max((len(item.path) for item in found), default=0)
    if deepest > NESTED:
        raise Unreadable(f"tests nested {deepest} deep: expected at most {NESTED}")
    known = {item.path for item in found}
    above: set[tuple[str, ...]] = set()
    troubled: set[tuple[str, ...]] = set()
    for item in found:
        prefixes = known.intersection(item.path[:length] for length in range(1, len(item.path)))
        above.update(prefixes)
        if item.word != "passed":
            troubled.update(prefixes)
    kept = (item for item in found if item.path not in above or (item.word != "passed" and item.path not in troubled))
    return [Told(id=name(item.path), word=item.word, detail=item.detail[:DETAIL]) for item in kept]


def decide(declared: Sequence[str], told: Iterable[Told], *, status: int, strict: bool) -> Report:
    """
    The outcome of each declared test. `status` is the runner's exit status, which must be 0 where nothing failed, and,
    for a `strict` runner, must not be where something did.

    Raises `Unreadable` where nothing failed, and yet not every declared test passed exactly once and no other ran.
    """
    by_id: dict[str, list[Told]] = {}
    for item in told:
        by_id.setdefault(item.id, []).append(item)
    outcomes = tuple(_outcome(test, by_id.get(test, [])) for test in declared)
    extra = [item for test, items in by_id.items() if test not in set(declared) for item in items]
    bad = [outcome for outcome in outcomes if outcome.word in {"failed", "skipped", "todo"}]
    bad += [Outcome(id=item.id, word="failed", detail=item.detail) for item in extra if item.word == "failed"]
    failed = any(outcome.word == "failed" for outcome in bad)
    if strict and failed and status == 0:
        raise Unreadable("tests failed, and the runner's exit status is 0")
    if not failed and status != 0:
        raise Unreadable(f"no test failed, and the runner's exit status is {status}")
    if not bad:
        _as_declared(outcomes, extra)
    return Report(outcomes=outcomes, first=bad[0] if bad else None)


def _outcome(test: str, items: Sequence[Told]) -> Outcome:
    if not items:
        return Outcome(id=test, word="missing")
    failing = next((item for item in items if item.word == "failed"), None)
    if failing is not None:
        return Outcome(id=test, word="failed", detail=failing.detail)
    if len(items) > 1:
        return Outcome(id=test, word="reported more than once")
    return Outcome(id=test, word=items[0].word, detail=items[0].detail)


def _as_declared(outcomes: Sequence[Outcome], extra: Sequence[Told]) -> None:
    odd = [f"{outcome.id} is {outcome.word}" for outcome in outcomes if outcome.word != "passed"]
    odd += [f"{item.id} is not declared" for item in extra]
    if odd:
        more = f", and {len(odd) - 5} more" if len(odd) > 5 else ""
        raise Unreadable(f"the report is not of the declared suite: {'; '.join(odd[:5])}{more}")
