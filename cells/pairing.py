"""Which cells are compared with which: by unit (never by bare task), extras and replicate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from cells.readable import Cell
from harness.values import Unit

if TYPE_CHECKING:
    from harness.analysis import Contrast, Ratio

__all__ = ["CellPair", "complaint", "pair_up", "sides", "units"]

CellPair: TypeAlias = tuple[Cell, Cell]
"""A treatment cell and the control cell it is compared with."""

Cells: TypeAlias = list[Cell]

Key: TypeAlias = tuple[str, str, str, int | None]
"""A unit's parts and a replicate: what the two cells of a pair have in common."""

_pair: Callable[[Cell], Key] = attrgetter("benchmark", "model", "task", "replicate")


def _side(item: Contrast | Ratio, arm: str, declared: Iterable[Cell]) -> list[Cell]:
    return [
        cell for cell in declared if cell.arm == arm and cell.extras == item.extras and item.model in {None, cell.model}
    ]


def _unlike(item: Contrast | Ratio, treatment: Mapping[Any, object], control: Mapping[Any, object]) -> str | None:
    """What is wrong with two sides that should be about the same things; None if they are."""
    if treatment.keys() != control.keys():
        named = {_text(key): key for key in treatment.keys() ^ control.keys()}
        odd = sorted(named)
        arm = item.treatment if named[odd[0]] in treatment else item.control
        return (
            f"{item.name}: unlike task sets: {len(odd)} declared on one side only, the first is {odd[0]} of arm {arm!r}"
        )
    return None if treatment else f"{item.name}: no cell of {item.treatment!r} and {item.control!r} is declared"


def _text(key: Unit | Key) -> str:
    return "|".join(map(str, key)) if isinstance(key, tuple) else str(key)


def pair_up(item: Contrast, declared: Sequence[Cell]) -> tuple[list[CellPair], str | None]:
    """
    The declared pairs of a contrast, and what is wrong with the two sets if they are not alike.

    There is no pair at all where a side has several cells that nothing tells apart: any choice among them would be one
    that nobody registered.
    """
    sides: list[dict[Key, Cell]] = []
    for arm in (item.treatment, item.control):
        by_pair: dict[Key, Cell] = {}
        for cell in _side(item, arm, declared):
            first = by_pair.setdefault(_pair(cell), cell)
            if first is not cell:
                return [], _ambiguous(item, first, cell)
        sides.append(by_pair)
    treatment, control = sides
    pairs = [(cell, control[key]) for key, cell in treatment.items() if key in control]
    return pairs, _unlike(item, treatment, control)


def _ambiguous(item: Contrast, first: Cell, second: Cell) -> str:
    replicate = "without a replicate" if first.replicate is None else f"with replicate {first.replicate}"
    return (
        f"{item.name}: cells {first} and {second} are both {first.unit} of arm {first.arm!r} {replicate}: nothing says "
        "which of them makes a pair. Number the cells of a condition, or name one cell a side"
    )


def sides(item: Contrast, declared: Sequence[Cell]) -> tuple[Cells, Cells]:
    """The declared cells of both arms, as they are and without pairs."""
    return _side(item, item.treatment, declared), _side(item, item.control, declared)


def complaint(item: Contrast, declared: Sequence[Cell]) -> str | None:
    """What is wrong with the declared cells of a contrast: with its pairs, or, for a test without, an empty arm."""
    if item.test != "fisher":
        return pair_up(item, declared)[1]
    empty = [arm for arm, cells in zip((item.treatment, item.control), sides(item, declared), strict=True) if not cells]
    return f"{item.name}: no cell of {empty[0]!r} is declared" if empty else None


def units(item: Ratio, declared: Sequence[Cell]) -> tuple[dict[Unit, tuple[Cells, Cells]], str | None]:
    """The declared cells of both arms by unit, as many as each has, and what is wrong if their units are not alike."""
    treatment, control = (_by_unit(_side(item, arm, declared)) for arm in (item.treatment, item.control))
    both = {unit: (cells, control[unit]) for unit, cells in treatment.items() if unit in control}
    return both, _unlike(item, treatment, control)


def _by_unit(cells: Iterable[Cell]) -> dict[Unit, Cells]:
    found: dict[tuple[str, str, str], Cells] = {}
    for cell in cells:
        found.setdefault((cell.benchmark, cell.model, cell.task), []).append(cell)
    return {members[0].unit: members for members in found.values()}
