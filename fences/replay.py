"""An auditor's run of the same probes, compared with the recorded one row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from fences.rows import ProbeRow

__all__ = ["RowDifference", "compare_rows"]

_OF_THE_RUN = frozenset({"ms"})
"""What may differ between two runs that agree."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowDifference:
    """A field of a probe's row that is not the same; `None` stands for a row that one side does not have."""

    probe: str
    field: str
    recorded: str | None
    replayed: str | None

    def __str__(self) -> str:
        return f"{self.probe}: {self.field}: recorded {self.recorded!r}, replayed {self.replayed!r}"


def compare_rows(recorded: Sequence[ProbeRow], replayed: Sequence[ProbeRow]) -> tuple[RowDifference, ...]:
    """
    Every difference between two tables, by probe; the order of rows and the time they took say nothing.

    A name that stands twice on one side is a difference too: which of the two counted can't be told.
    """
    found: list[RowDifference] = []
    for name in sorted({row.probe for row in (*recorded, *replayed)}):
        before = [row for row in recorded if row.probe == name]
        after = [row for row in replayed if row.probe == name]
        if len(before) == len(after) == 1:
            found += _row_differences(before[0], after[0])
        else:
            found.append(RowDifference(probe=name, field="rows", recorded=_count(before), replayed=_count(after)))
    return tuple(found)


def _count(rows: Sequence[ProbeRow]) -> str | None:
    return f"{len(rows)} of it" if rows else None


def _row_differences(before: ProbeRow, after: ProbeRow) -> list[RowDifference]:
    return [
        RowDifference(
            probe=before.probe,
            field=item.name,
            recorded=_shown(getattr(before, item.name)),
            replayed=_shown(getattr(after, item.name)),
        )
        for item in fields(before)
        if item.name not in _OF_THE_RUN and getattr(before, item.name) != getattr(after, item.name)
    ]


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
