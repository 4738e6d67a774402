"""The classes of a whole set of cells: the END decides first, and every class is there, at zero too."""

from __future__ import annotations

from collections import Counter

from cells.conditions import CLASSES
from cells.readings import Scoreboard

__all__ = ["class_counts"]


def class_counts(board: Scoreboard) -> dict[str, int]:
    """How many cells of the set are of each class, over all arms: those that every census prints, then finer ones."""
    total: Counter[str] = Counter()
    for arm in board.arms:
        total.update(arm.classes)
    return {name: total[name] for name in (*CLASSES, *sorted(total.keys() - set(CLASSES)))}
