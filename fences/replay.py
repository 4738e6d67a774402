"""An auditor's run of the same probes, compared with the recorded one row by row, and what explains each difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from fences.receipt import Receipt
from fences.rows import ProbeRow

__all__ = ["FINDINGS", "ReceiptDifference", "RowDifference", "compare_receipts", "compare_rows", "explained"]

_OF_THE_RUN = frozenset({"ms"})
"""What may differ between two runs that agree."""

FINDINGS = frozenset({"rows", "finding_up", "finding_down", "holds"})
"""What is compared where another machine is expected: what was found, and not in which words its engine said no."""

_BY_THE_PROBE = ("probes", "code")
_BY_ANYTHING = ("image", "engine", "guarantees", "node", "policy", "walls", "probes", "code")
_EXPLAINED_BY: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("rows", "language", "kind", "expected", "weakening"), _BY_THE_PROBE),
    **dict.fromkeys(("finding_up", "evidence_up", "finding_down", "evidence_down", "holds"), _BY_ANYTHING),
}
"""Which parts of a receipt can make a field of a row another one; a control's name is the probe's own doing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceiptDifference:
    """A condition that is not the same, as `part` or `part.key`; None stands for one that a side does not have."""

    part: str
    recorded: str | None
    replayed: str | None

    def __str__(self) -> str:
        return f"{self.part}: recorded {self.recorded!r}, here {self.replayed!r}"


@dataclass(frozen=True, kw_only=True, slots=True)
class RowDifference:
    """
    A field of a probe's row that is not the same; `None` stands for a row that one side does not have. `explained_by`
    are the differing conditions that can account for it; where there is none, nothing known does.
    """

    probe: str
    field: str
    recorded: str | None
    replayed: str | None
    explained_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        why = f"explained by: {', '.join(self.explained_by)}" if self.explained_by else "unexplained"
        return f"{self.probe}: {self.field}: recorded {self.recorded!r}, replayed {self.replayed!r} ({why})"

    def to_json(self) -> dict[str, Any]:
        """The difference as JSON data; `explained_by` is `["unexplained"]` where nothing does."""
        return {**asdict(self), "explained_by": list(self.explained_by) or ["unexplained"]}


def compare_receipts(recorded: Receipt, now: Receipt) -> tuple[ReceiptDifference, ...]:
    """Every condition that is not the same; of an engine and of its guarantees each fact by itself."""
    before, after = _flat(recorded), _flat(now)
    return tuple(
        ReceiptDifference(part=part, recorded=before.get(part), replayed=after.get(part))
        for part in sorted({*before, *after})
        if before.get(part) != after.get(part)
    )


def _flat(receipt: Receipt) -> dict[str, str]:
    found: dict[str, str] = {}
    for part, value in receipt.to_json().items():
        if isinstance(value, dict):
            found |= {f"{part}.{key}": "enforced" if item is None else str(item) for key, item in value.items()}
        else:
            found[part] = str(value)
    return found


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


def explained(
    differences: Iterable[RowDifference], conditions: Sequence[ReceiptDifference]
) -> tuple[RowDifference, ...]:
    """The differences, each with the differing conditions that can account for it."""
    return tuple(
        RowDifference(
            probe=item.probe,
            field=item.field,
            recorded=item.recorded,
            replayed=item.replayed,
            explained_by=tuple(
                each.part for each in conditions if each.part.partition(".")[0] in _EXPLAINED_BY[item.field]
            ),
        )
        for item in differences
    )


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
