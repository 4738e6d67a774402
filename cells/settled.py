"""What a record says of each declared cell: the one outcome that counts, and every irregularity by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
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
    counted: dict[Cell, Outcome] = {}
    tried: dict[Cell, tuple[Outcome, ...]] = {}
    kept, left = frozenset(unfired), list[Cell]()
    missing: list[Cell] = []
    doubled: list[Cell] = []
    for cell in cells:
        of_cell = ordered.pop(cell, None)
        if of_cell is None:
            (left if cell in kept else missing).append(cell)
            continue
        tried[cell] = tuple(of_cell)
        if _disagree(of_cell):
            doubled.append(cell)
        else:
            counted[cell] = of_cell[-1]
    return Settled(
        declared=cells,
        outcomes=counted,
        tries=tried,
        missing=tuple(missing),
        doubled=tuple(doubled),
        undeclared=tuple(sorted(ordered, key=str)),
        repeated=repeated,
        unfired=frozenset(left),
    )


def _tries(outcomes: Iterable[Outcome]) -> tuple[dict[Cell, list[Outcome]], int]:
    """The different outcomes of each cell by attempt, and how many only said again what another says."""
    tries: dict[Cell, list[Outcome]] = {}
    # An outcome as a whole has no hash. By what has one, the equal ones are found without comparing all with all.
    alike: dict[Cell, dict[Hashable, list[Outcome]]] = {}
    repeated = 0
    for outcome in outcomes:
        of_cell = tries.setdefault(outcome.cell, [])
        if of_cell:
            kinds = alike.setdefault(outcome.cell, {_kind(of_cell[0]): of_cell[:1]})
            candidates = kinds.setdefault(_kind(outcome), [])
            if outcome in candidates:
                repeated += 1
                continue
            candidates.append(outcome)
        of_cell.append(outcome)
    for cell in alike:
        tries[cell].sort(key=lambda item: item.attempt)
    return tries, repeated


def _kind(outcome: Outcome) -> Hashable:
    return outcome.attempt, outcome.end, outcome.spend


def _disagree(tries: Sequence[Outcome]) -> bool:
    """Whether a cell was tried again after it was done with: only a VOID may be."""
    return any(outcome.is_final for outcome in tries[:-1])
