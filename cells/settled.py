"""What a record says of each declared cell: the one outcome that counts, and every irregularity by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.errors import IntegrityError
from harness.outcome import CellOutcome
from harness.values import CellKey, Halt, Void

__all__ = ["Settled", "class_label", "settle"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """
    The outcomes of a declared set of cells.

    `outcomes` holds the outcome that counts of each cell that has one: the final one, else its last VOID. `tries` holds
    every try in order. A `missing` cell has no outcome, a `doubled` one has several that disagree and so counts as
    none, an `undeclared` one is no part of the set. `repeated` counts lines that say again exactly what another says.
    """

    declared: tuple[CellKey, ...]
    outcomes: Mapping[CellKey, CellOutcome]
    tries: Mapping[CellKey, tuple[CellOutcome, ...]]
    missing: tuple[CellKey, ...]
    doubled: tuple[CellKey, ...]
    undeclared: tuple[CellKey, ...]
    repeated: int

    def passed(self, cell: CellKey) -> bool | None:
        """True or False for a cell that was judged; None for one that has no number."""
        outcome = self.outcomes.get(cell)
        return None if outcome is None else outcome.passed

    def halted(self, cell: CellKey) -> bool:
        """Whether a limit stopped the cell."""
        outcome = self.outcomes.get(cell)
        return outcome is not None and isinstance(outcome.end, Halt)

    def label(self, cell: CellKey) -> str:
        """The class that a cell is counted under, with its limit or cause; MISSING or DOUBLED for one without any."""
        outcome = self.outcomes.get(cell)
        if outcome is None:
            return "DOUBLED" if cell in self.doubled else "MISSING"
        return class_label(outcome)


def class_label(outcome: CellOutcome) -> str:
    """The class with its limit or cause: `PASS`, `HALT(tokens)`, `VOID(fence)`."""
    match outcome.end:
        case Halt(limit=limit):
            return f"HALT({limit})"
        case Void(cause=cause):
            return f"VOID({cause})"
        case _:
            return outcome.outcome_class


def settle(declared: Iterable[CellKey], outcomes: Iterable[CellOutcome]) -> Settled:
    """
    Sort the outcomes by declared cell. Tries of a cell may come in any order; `attempt` orders them.

    Raises `IntegrityError` if a cell is declared twice: no set of cells has that.
    """
    cells = tuple(declared)
    if len(set(cells)) != len(cells):
        twice = next(cell for cell in cells if cells.count(cell) > 1)
        raise IntegrityError(f"cell {twice} is declared twice: expected each cell of a registration once")

    tries: dict[CellKey, list[CellOutcome]] = {}
    repeated = 0
    for outcome in outcomes:
        of_cell = tries.setdefault(outcome.cell, [])
        if outcome in of_cell:
            repeated += 1
        else:
            of_cell.append(outcome)
    ordered = {cell: tuple(sorted(of_cell, key=lambda item: item.attempt)) for cell, of_cell in tries.items()}

    known = set(cells)
    doubled = tuple(cell for cell in cells if cell in ordered and _disagree(ordered[cell]))
    return Settled(
        declared=cells,
        outcomes={cell: ordered[cell][-1] for cell in cells if cell in ordered and cell not in doubled},
        tries={cell: ordered[cell] for cell in cells if cell in ordered},
        missing=tuple(cell for cell in cells if cell not in ordered),
        doubled=doubled,
        undeclared=tuple(sorted(cell for cell in ordered if cell not in known)),
        repeated=repeated,
    )


def _disagree(tries: tuple[CellOutcome, ...]) -> bool:
    """Whether a cell was tried again after it was done with: only a VOID may be."""
    return any(outcome.is_final for outcome in tries[:-1])
