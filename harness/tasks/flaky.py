"""Flaky tests: those whose reading changes for one and the same candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.tasks.characterise import Characterised

__all__ = ["Flaky", "flaky"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Flaky:
    """What was said of `test` (empty: of the whole candidate) in each round, where that is not always the same."""

    candidate: str
    test: str
    readings: tuple[str, ...]


def flaky(rounds: Sequence[Sequence[Characterised]]) -> tuple[Flaky, ...]:
    """Whatever differs between rounds of the same candidates in the same order."""
    found = []
    for rows in zip(*rounds, strict=True):
        name = rows[0].called
        whole = tuple(row.reading or row.word for row in rows)
        if len({row.said for row in rows}) > 1:
            found.append(Flaky(candidate=name, test="", readings=whole))
        told = [{test.id: test.reading for test in row.tests} for row in rows]
        for test in dict.fromkeys(test for readings in told for test in readings):
            readings = tuple(one.get(test, "not told") for one in told)
            if len(set(readings)) > 1:
                found.append(Flaky(candidate=name, test=test, readings=readings))
    return tuple(found)
