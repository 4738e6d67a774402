"""Which report is read how: a table of pure functions from bytes to the tests that they tell of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from referees.command_card import CommandCard
from referees.command_cargo import read_cargo
from referees.command_go import read_go
from referees.command_junit import read_junit
from referees.command_report import MOST, Report, Told, Unreadable, decide
from referees.command_tap import read_tap

__all__ = ["READERS", "STRICT_STATUS", "read_counts", "read_report"]

READERS: Mapping[str, Callable[[bytes], list[Told]]] = MappingProxyType(
    {
        "cargo": read_cargo,
        "ctest": read_junit,
        "go": read_go,
        "junit": read_junit,
        "node": read_tap,
        "tap": read_tap,
    }
)

STRICT_STATUS = frozenset({"cargo", "ctest", "counts", "go", "node"})
"""Runners that must end with another status than 0 when a test failed; a script that prints TAP need not."""

LINE = 10_000
"""Characters of the longest line of a report that is searched for counts."""


def read_report(card: CommandCard, data: bytes, status: int) -> Report:
    """What a runner's report and exit status say of each declared test. Raises `Unreadable` where they say nothing."""
    told = read_counts(data, card.pattern) if card.runner == "counts" else READERS[card.runner](data)
    return decide(card.declared, told, status=status, strict=card.runner in STRICT_STATUS)


def read_counts(data: bytes, pattern: str) -> list[Told]:
    """
    Numbered tests for the counts in the one line that `pattern` matches: those that passed first.

    Raises `Unreadable` where no line matches or several do, where one is too long to be searched, or where the counts
    are no numbers.
    """
    lines = data.decode("utf-8", "replace").split("\n")
    longest = max(map(len, lines))
    if longest > LINE:
        raise Unreadable(f"a line of {longest} characters: expected at most {LINE}")
    matches = [match for line in lines if (match := re.search(pattern, line))]
    if len(matches) != 1:
        raise Unreadable(f"{len(matches)} lines match {pattern!r}: expected one")
    try:
        counts = {name: int(text or "0") for name, text in matches[0].groupdict().items()}
    except ValueError:
        raise Unreadable(f"the counts are no numbers: {matches[0].group()[:120]!r}") from None
    if not 0 <= sum(counts.values()) <= MOST or min(counts.values()) < 0:
        raise Unreadable(f"counts out of bounds: {matches[0].group()[:120]!r}")
    words = [(name, counts.get(name, 0)) for name in ("passed", "failed", "skipped")]
    listed = [word for word, count in words for _ in range(count)]
    return [Told(id=str(number), word=word) for number, word in enumerate(listed, 1)]
