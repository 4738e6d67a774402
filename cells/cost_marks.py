"""What each cell cost against how it ended: the cells that a figure of it draws, row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cells.cell_lines import CellLine

__all__ = ["CostMarks", "arm_label", "cost_marks"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CostMarks:
    """
    The cells with a known figure of `quantity`, by class and arm: passes first, halts last. A VOID has no figure of any
    kind; `unknown` counts the cells without one.
    """

    quantity: Literal["usd", "tokens"]
    rows: Mapping[tuple[str, str], tuple[CellLine, ...]]
    unknown: int

    def figure(self, cell: CellLine) -> float:
        """What a drawn cell cost."""
        value = cell.usd if self.quantity == "usd" else cell.tokens
        assert value is not None  # it is drawn
        return value


def arm_label(cell: CellLine) -> str:
    """A cell's arm, with its extras if it has any."""
    return cell.arm if cell.extras == "none" else f"{cell.arm}, {cell.extras}"


def cost_marks(cells: Sequence[CellLine]) -> CostMarks:
    """The cells of a set by what they cost: in US dollars if any of them has a price, else in tokens."""
    quantity: Literal["usd", "tokens"] = "usd" if any(cell.usd is not None for cell in cells) else "tokens"
    rows: dict[tuple[str, str], list[CellLine]] = {}
    for cell in cells:
        if getattr(cell, quantity) is not None:
            rows.setdefault((cell.outcome_class, arm_label(cell)), []).append(cell)
    arms = list(dict.fromkeys(map(arm_label, cells)))
    order = sorted(rows, key=lambda row: (row[0] != "PASS", row[0] == "HALT", row[0], arms.index(row[1])))
    drawn = {row: tuple(rows[row]) for row in order}
    return CostMarks(quantity=quantity, rows=drawn, unknown=len(cells) - sum(map(len, drawn.values())))
