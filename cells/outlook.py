"""What can be computed before the first call: how many cells can be built, and the best p-value a test can reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cells.stats import best_attainable_p
from harness.analysis import Alternative, Analysis, Contrast, Ratio
from harness.values import CellKey

__all__ = ["outlook"]


def outlook(cells: Sequence[CellKey], refused: Sequence[Mapping[str, str]], analysis: Analysis) -> dict[str, Any]:
    """
    Counts of cells, and for each registered test the number of pairs or tasks it can have at most, with the p-value
    it would give if every one of them went the registered way. O(cells x tests).
    """
    gates: dict[str, int] = {}
    for row in refused:
        gates[row["gate"]] = gates.get(row["gate"], 0) + 1
    tests = [
        {"name": test.name, "test": "exact McNemar", **_best(len(_pairs(cells, test)), test.alternative)}
        for test in analysis.contrasts
    ]
    tests += [
        {"name": test.name, "test": "sign test over tasks", **_best(len(_tasks(cells, test)), test.alternative)}
        for test in analysis.ratios
    ]
    return {
        "cells": {"declared": len(cells) + len(refused), "buildable": len(cells), "refused_by_gate": gates},
        "tests": tests,
    }


def _best(n: int, alternative: Alternative) -> dict[str, Any]:
    best = best_attainable_p(n, alternative=alternative) if n else None
    return {"n": n, "alternative": alternative, "best_attainable_p": best}


def _pairs(cells: Sequence[CellKey], test: Contrast | Ratio) -> set[tuple[str, int]]:
    """The units and replicates that both arms have a cell for."""
    sides: dict[str, set[tuple[str, int]]] = {test.treatment: set(), test.control: set()}
    for cell in cells:
        if cell.arm in sides and cell.extras == test.extras and test.model in {None, cell.model}:
            sides[cell.arm].add((str(cell.unit), cell.replicate))
    return sides[test.treatment] & sides[test.control]


def _tasks(cells: Sequence[CellKey], test: Ratio) -> set[str]:
    return {unit for unit, _replicate in _pairs(cells, test)}
