"""What the conformance suite found of a referee: a row a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Conformance", "Row", "row"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """
    One rule. `held` is None where what was seen is told and decides nothing; what could not be measured has not held.
    """

    rule: str
    held: bool | None
    seen: str
    expected: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Conformance:
    """The rows of one referee on one task, and the rules that were not asked for: of them nothing is said."""

    referee: str
    task: str
    rows: tuple[Row, ...]
    left_out: tuple[str, ...] = ()

    @property
    def broken(self) -> tuple[Row, ...]:
        """The rules that did not hold."""
        return tuple(item for item in self.rows if item.held is False)

    @property
    def conforms(self) -> bool:
        """Whether no rule was broken, of those that were shown."""
        return not self.broken

    @property
    def refusal(self) -> str:
        """A line for each broken rule; empty where the referee conforms."""
        return "\n".join(f"{item.rule}: {item.seen} (expected: {item.expected})" for item in self.broken)

    def to_json(self) -> dict[str, Any]:
        """The rows as JSON data."""
        rows = [asdict(item) for item in self.rows]
        left_out = list(self.left_out)
        return {
            "referee": self.referee,
            "task": self.task,
            "conforms": self.conforms,
            "rows": rows,
            "left_out": left_out,
        }


def row(rule: str, faults: Sequence[str], *, expected: str, seen: str) -> Row:
    """A row that holds where there is no fault; `seen` is what to say then."""
    most = 6
    said = "; ".join(faults[:most]) + (f"; and {len(faults) - most} more" if len(faults) > most else "")
    return Row(rule=rule, held=not faults, seen=said or seen, expected=expected)
