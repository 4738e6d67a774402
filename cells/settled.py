"""What a record says of each declared cell: the one outcome that counts, and every irregularity by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from cells.readable import Cell, Outcome
from harness.errors import IntegrityError
from harness.values import Halt, Void

__all__ = ["Settled", "class_label", "settle"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """
    The outcomes of a declared set of cells.

    `outcomes` holds the outcome that counts of each cell that has one: the final one, else its last VOID. `tries` holds
    every try in order. A `missing` cell has no outcome, a `doubled` one has several that disagree and so counts as
    none, an `undeclared` one is no part of the set. An `unfired` cell has none either, and none is missed: a registered
    stop rule ended the run before it. `repeated` counts lines that say again exactly what another says.
    """

    declared: tuple[Cell, ...]
    outcomes: Mapping[Cell, Outcome]
    tries: Mapping[Cell, tuple[Outcome, ...]]
    missing: tuple[Cell, ...]
    doubled: tuple[Cell, ...]
    undeclared: tuple[Cell, ...]
    repeated: int
    unfired: frozenset[Cell] = frozenset()

    def passed(self, cell: Cell) -> bool | None:
        """True or False for a cell that was judged; None for one that has no number."""
        outcome = self.outcomes.get(cell)
        return None if outcome is None else outcome.passed

    def halted(self, cell: Cell) -> bool:
        """Whether a limit stopped the cell."""
        outcome = self.outcomes.get(cell)
        return outcome is not None and isinstance(outcome.end, Halt)

    def label(self, cell: Cell) -> str:
        """
        The class that a cell is counted under, with its limit or cause; one without any is MISSING, DOUBLED, NOT_FIRED.
        """
        outcome = self.outcomes.get(cell)
        if outcome is None:
            return "DOUBLED" if cell in self.tries else "NOT_FIRED" if cell in self.unfired else "MISSING"
        return class_label(outcome)


def class_label(outcome: Outcome) -> str:
    """The class with its limit or cause: `PASS`, `HALT(tokens)`, `VOID(fence)`."""
    match outcome.end:
        case Halt(limit=limit):
            return f"HALT({limit})"
        case Void(cause=cause):
            return f"VOID({cause})"
        case _:
            return outcome.outcome_class


def settle(declared: Iterable[Cell], outcomes: Iterable[Outcome], unfired: Iterable[Cell] = ()) -> Settled:
    """
    Sort the outcomes by declared cell, in linear time. Tries of a cell may come in any order; `attempt` orders them.
    Of the `unfired` cells those count as such that have no outcome.

    Raises `IntegrityError` if a cell is declared twice: no set of cells has that.
    """
    cells = tuple(declared)
    known = set(cells)
    if len(known) != len(cells):
        twice = next(cell for cell, times in Counter(cells).items() if times > 1)
        raise IntegrityError(f"cell {twice} is declared twice: expected each cell of a registration once")

    ordered, repeated = _tries(outcomes)
    without = {cell for cell in cells if cell not in ordered}
    left = frozenset(unfired) & without
    disagreeing = {cell for cell, of_cell in ordered.items() if _disagree(of_cell)}
    return Settled(
        declared=cells,
        outcomes={cell: ordered[cell][-1] for cell in cells if cell in ordered and cell not in disagreeing},
        tries={cell: ordered[cell] for cell in cells if cell in ordered},
        missing=tuple(cell for cell in cells if cell in without and cell not in left),
        doubled=tuple(cell for cell in cells if cell in disagreeing),
        undeclared=tuple(sorted((cell for cell in ordered if cell not in known), key=str)),
        repeated=repeated,
        unfired=left,
    )


def _tries(outcomes: Iterable[Outcome]) -> tuple[dict[Cell, tuple[Outcome, ...]], int]:
    """The different outcomes of each cell by attempt, and how many only said again what another says."""
    tries: dict[Cell, list[Outcome]] = {}
    # An outcome as a whole has no hash. By what has one, the equal ones are found without comparing all with all.
    alike: dict[Hashable, list[Outcome]] = {}
    repeated = 0
    for outcome in outcomes:
        candidates = alike.setdefault((outcome.cell, outcome.attempt, outcome.end, outcome.spend), [])
        if outcome in candidates:
            repeated += 1
        else:
            candidates.append(outcome)
            tries.setdefault(outcome.cell, []).append(outcome)
    return {cell: tuple(sorted(of_cell, key=lambda item: item.attempt)) for cell, of_cell in tries.items()}, repeated


def _disagree(tries: tuple[Outcome, ...]) -> bool:
    """Whether a cell was tried again after it was done with: only a VOID may be."""
    return any(outcome.is_final for outcome in tries[:-1])
