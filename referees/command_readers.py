"""Which report is read how: a table of pure functions from bytes to the tests that they tell of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from referees.command_card import CommandCard
from referees.command_cargo import read_cargo
from referees.command_counts import read_counts
from referees.command_go import read_go
from referees.command_junit import read_junit
from referees.command_report import Report, Told, decide
from referees.command_tap import read_tap

__all__ = ["READERS", "STRICT_STATUS", "read_report"]

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


def read_report(card: CommandCard, data: bytes, status: int) -> Report:
    """What a runner's report and exit status say of each declared test. Raises `Unreadable` where they say nothing."""
    told = read_counts(data, card.pattern) if card.runner == "counts" else READERS[card.runner](data)
    return decide(card.declared, told, status=status, strict=card.runner in STRICT_STATUS)
