"""Which cells are compared with which: by unit (never by bare task), extras and replicate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from harness.values import CellKey, Unit

if TYPE_CHECKING:
    from harness.analysis import Contrast, Ratio

__all__ = ["CellPair", "pair_up", "units"]

CellPair: TypeAlias = tuple[CellKey, CellKey]
"""A treatment cell and the control cell it is compared with."""

Cells: TypeAlias = list[CellKey]


def _side(item: Contrast | Ratio, arm: str, declared: Iterable[CellKey]) -> list[CellKey]:
    return [
        cell for cell in declared if cell.arm == arm and cell.extras == item.extras and item.model in {None, cell.model}
    ]


def _unlike(item: Contrast | Ratio, treatment: Collection[object], control: Collection[object]) -> str | None:
    """What is wrong with two sides that should be about the same things; None if they are."""
    odd = sorted({*treatment} ^ {*control}, key=str)
    if odd:
        arm = item.treatment if odd[0] in treatment else item.control
        return (
            f"{item.name}: unlike task sets: {len(odd)} declared on one side only, the first is {odd[0]} of arm {arm!r}"
        )
    return None if treatment else f"{item.name}: no cell of {item.treatment!r} and {item.control!r} is declared"


def pair_up(item: Contrast, declared: Sequence[CellKey]) -> tuple[list[CellPair], str | None]:
    """The declared pairs of a contrast, and what is wrong with the two sets if they are not alike."""
    treatment, control = (
        {f"{cell.unit}|{cell.replicate}": cell for cell in _side(item, arm, declared)}
        for arm in (item.treatment, item.control)
    )
    pairs = [(cell, control[key]) for key, cell in treatment.items() if key in control]
    return pairs, _unlike(item, treatment, control)


def units(item: Ratio, declared: Sequence[CellKey]) -> tuple[dict[Unit, tuple[Cells, Cells]], str | None]:
    """The declared cells of both arms by unit, as many as each has, and what is wrong if their units are not alike."""
    treatment, control = (_by_unit(_side(item, arm, declared)) for arm in (item.treatment, item.control))
    both = {unit: (cells, control[unit]) for unit, cells in treatment.items() if unit in control}
    return both, _unlike(item, treatment, control)


def _by_unit(cells: Iterable[CellKey]) -> dict[Unit, Cells]:
    found: dict[Unit, Cells] = {}
    for cell in cells:
        found.setdefault(cell.unit, []).append(cell)
    return found
