"""The cells of the sources, held against the declared sets: what is there, missing, doubled, changed, undeclared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from cells.declared.naming import DeclaredSet
from cells.declared.pinning import row_digest
from cells.declared.rows import ForeignCell, ForeignKey, Name, name_text

__all__ = ["Found", "Gathered", "gather", "hold"]

ENOUGH = 2
"""So many different rows of one try show that they can't all be true; a file with thousands shows nothing more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gathered:
    """
    The rows of the declared cells by name, in order, without those that say again exactly what another says (`again`,
    with how often); and the cells that no reading names.
    """

    rows: Mapping[Name, Sequence[ForeignCell]]
    again: Mapping[Name, int]
    strangers: Mapping[Name, ForeignKey]


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """
    What the sources hold of one declared set. `outcomes` are of the cells that are there and say one thing.

    `missing` cells have no row; `conflicting` ones rows that can't all be true, each with what differs; `changed` ones
    a row that is not the one that was declared; `undeclared` ones no reading, though one of its conditions has cells
    of this set. Each refuses the comparison. `again` counts equal rows, which count once.
    """

    outcomes: tuple[ForeignCell, ...]
    missing: tuple[Name, ...] = ()
    conflicting: Mapping[Name, str] = field(default_factory=dict)
    changed: tuple[Name, ...] = ()
    undeclared: tuple[Name, ...] = ()
    again: Mapping[Name, int] = field(default_factory=dict)

    @property
    def cells(self) -> tuple[ForeignKey, ...]:
        """The cells that are there, in the order declared."""
        return tuple(dict.fromkeys(outcome.cell for outcome in self.outcomes))

    @property
    def faults(self) -> Iterator[str]:
        """Everything that refuses the comparison, a sentence each."""
        for name in self.missing:
            yield f"missing cell {name_text(name)}: declared, and no row of the sources is of it"
        for name, why in self.conflicting.items():
            yield f"conflicting cell {name_text(name)}: {why}"
        for name in self.changed:
            yield f"changed cell {name_text(name)}: what its rows say is not what was declared"
        for name in self.undeclared:
            yield (
                f"undeclared cell {name_text(name)}: one of a condition that this reading has cells of, and in no "
                "reading: declare it, or name it in `left_out` with why"
            )


def gather(cells: Iterable[ForeignCell], sets: Iterable[DeclaredSet], left_out: Mapping[Name, str]) -> Gathered:
    """Sort the cells of all sources, in one pass: of one that is in no reading, name and condition are kept alone."""
    rows: dict[Name, list[ForeignCell]] = {name: [] for each in sets for name in each.cells}
    further: dict[Name, dict[int, list[ForeignCell]]] = {}
    again: Counter[Name] = Counter()
    strangers: dict[Name, ForeignKey] = {}
    for cell in cells:
        name = cell.cell.name
        of_cell = rows.get(name)
        if of_cell is None:
            if name not in left_out:
                strangers[name] = cell.cell
        elif not of_cell:
            of_cell.append(cell)
        else:
            tries = further.setdefault(name, {of_cell[0].attempt: [of_cell[0]]})
            alike = tries.setdefault(cell.attempt, [])
            if cell in alike:
                again[name] += 1
            elif len(alike) < ENOUGH:
                alike.append(cell)
                of_cell.append(cell)
    return Gathered(rows=rows, again=again, strangers=strangers)


def hold(declared: DeclaredSet, gathered: Gathered) -> Found:
    """What was gathered of one declared set."""
    conflicting: dict[Name, str] = {}
    outcomes: list[ForeignCell] = []
    changed: list[Name] = []
    for name in declared.cells:
        rows = gathered.rows[name]
        if (why := _conflict(rows)) is not None:
            conflicting[name] = why
            continue
        if rows and name in declared.pins and row_digest(rows) != declared.pins[name]:
            changed.append(name)
        outcomes.extend(rows)
    conditions = {outcome.cell.condition for outcome in outcomes}
    return Found(
        outcomes=tuple(outcomes),
        missing=tuple(name for name in declared.cells if not gathered.rows[name]),
        conflicting=conflicting,
        changed=tuple(changed),
        undeclared=tuple(sorted(name for name, key in gathered.strangers.items() if key.condition in conditions)),
        again={name: gathered.again[name] for name in declared.cells if name in gathered.again},
    )


def _conflict(rows: Sequence[ForeignCell]) -> str | None:
    """Why the rows of one cell can't all be true: two conditions, or two rows of one try; None where they can."""
    if len(rows) <= 1:
        return None
    by_attempt: dict[int, ForeignCell] = {}
    for row in rows:
        if row.cell != rows[0].cell:
            return f"its rows differ in {_differing(rows[0].cell._asdict(), row.cell._asdict())}"
        first = by_attempt.setdefault(row.attempt, row)
        if first is not row:
            return f"the rows of try {row.attempt} differ in {_differing(first, row)}"
    return None


def _differing(one: Any, other: Any) -> str:
    """The fields that two values of a kind differ in, with both values."""
    return ", ".join(_differences(one, other, ""))


def _differences(one: Any, other: Any, where: str) -> Iterator[str]:
    if type(one) is type(other) and is_dataclass(one):
        for item in fields(one):
            yield from _differences(getattr(one, item.name), getattr(other, item.name), f"{where}.{item.name}")
    elif isinstance(one, dict):
        for key in one:
            yield from _differences(one[key], other.get(key), f"{where}.{key}")
    elif one != other:
        yield f"{where.removeprefix('.')} {one!r} and {other!r}"
