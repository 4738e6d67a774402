"""What an import yields: the cells, and beside them everything that is no cell, so that nothing is dropped unsaid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from cells.declared.rows import ForeignCell
from harness.values import Halt, LowerBoundPrice, Void, VoidPrice

__all__ = ["Counted", "ImportCensus", "Seen", "label_of"]

MOST_NAMED = 20
"""Absent cells that are named; the rest are counted."""


def label_of(cell: ForeignCell) -> str:
    """The class with its limit or cause: `PASS`, `HALT(wall)`, `VOID(interrupted)`."""
    match cell.end:
        case Halt(limit=limit):
            return f"HALT({limit})"
        case Void(cause=cause):
            return f"VOID({cause})"
        case _:
            return cell.outcome_class


@dataclass(kw_only=True, slots=True)
class Seen:
    """
    What an importer notes of one log or job. `results` counts the trials or samples that it holds, `planned` is how
    many were to be, None where it does not say; `absent` names those without a result, as far as it names them.
    `remarks` are sentences that a reader of the cells must have seen.
    """

    log: str
    results: int = 0
    planned: int | None = None
    absent: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def absences(self) -> int:
        """How many were planned and left no result."""
        return max(len(self.absent), 0 if self.planned is None else self.planned - self.results)


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportCensus:
    """
    What became what. `results` are trials or samples, `tries` the rows that they became: a try that was made again is a
    row of its own. `classes` and `causes` are of the last try of each, `made_again` of those before.

    `planned` is None where a log does not say; `absent` are planned and left no result.
    """

    logs: int
    results: int
    tries: int
    planned: int | None
    absent: int
    absent_named: tuple[str, ...]
    classes: dict[str, int]
    made_again: dict[str, int]
    causes: dict[str, int]
    halted_would_be: dict[str, int]
    lower_bounds: int
    without_price: int
    without_tokens: int
    remarks: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether everything that was planned left a result."""
        return not self.absent

    def to_json(self) -> dict[str, Any]:
        """The census as JSON data."""
        return asdict(self)


class Counted:
    """Counts cells as they pass."""

    def __init__(self) -> None:
        self._tries: Counter[str] = Counter()
        self._last: dict[tuple[str, str], tuple[str, str | None]] = {}
        self._would_be: Counter[str] = Counter()
        self._prices: Counter[type] = Counter()
        self._no_tokens = 0

    def add(self, cell: ForeignCell) -> None:
        """One more row."""
        self._tries[label_of(cell)] += 1
        cause = f"{cell.end.cause}: {cell.labels.get('exception', 'no exception')}" if cell.end.kind == "VOID" else None
        self._last[cell.cell.name] = (label_of(cell), cause)
        if isinstance(cell.end, Halt):
            self._would_be[cell.would_be.reading if cell.would_be is not None else "not read"] += 1
        self._prices[type(cell.spend.price)] += 1
        self._no_tokens += cell.spend.tokens is None

    def each(self, cells: Iterable[ForeignCell]) -> Iterator[ForeignCell]:
        """The cells, counted as they pass."""
        for cell in cells:
            self.add(cell)
            yield cell

    def census(self, seen: Iterable[Seen]) -> ImportCensus:
        """All that was counted, with what the importers noted."""
        notes = list(seen)
        classes = Counter(label for label, _ in self._last.values())
        plans = [note.planned for note in notes if note.planned is not None]
        return ImportCensus(
            logs=len(notes),
            results=sum(note.results for note in notes),
            tries=self._tries.total(),
            planned=sum(plans) if len(plans) == len(notes) else None,
            absent=sum(note.absences for note in notes),
            absent_named=tuple(islice((name for note in notes for name in note.absent), MOST_NAMED)),
            classes=dict(sorted(classes.items())),
            made_again=dict(sorted((self._tries - classes).items())),
            causes=dict(sorted(Counter(cause for _, cause in self._last.values() if cause).items())),
            halted_would_be=dict(sorted(self._would_be.items())),
            lower_bounds=self._prices[LowerBoundPrice],
            without_price=self._prices[VoidPrice],
            without_tokens=self._no_tokens,
            remarks=tuple(f"{note.log}: {remark}" for note in notes for remark in note.remarks),
        )
