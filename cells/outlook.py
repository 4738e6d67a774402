"""What can be computed before the first call: cells that can be built, the best p-value of a test, predicted halts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cells.pairing import units
from cells.planned import foreseen
from cells.predicted_halts import predicted_halts
from cells.stats import best_attainable_p, holm
from harness.analysis import DESCRIPTIVE, Analysis, Contrast, Ratio
from harness.experiment import Experiment
from harness.values import CellKey

__all__ = ["outlook"]


def outlook(cells: Sequence[CellKey], refused: Sequence[Mapping[str, str]], experiment: Experiment) -> dict[str, Any]:
    """
    Counts of cells; for each registered test the number of pairs or tasks it can have at most, and the p-value it would
    give if every one of them went the registered way, for a contrast also adjusted in its family when all of that does;
    the predictions that are above a budget. O(cells x tests).

    `in_reach` is False for a test that can't get to the analysis's level, and None where it has no p-value.
    """
    gates: dict[str, int] = {}
    for row in refused:
        gates[row["gate"]] = gates.get(row["gate"], 0) + 1
    return {
        "cells": {"declared": len(cells) + len(refused), "buildable": len(cells), "refused_by_gate": gates},
        "tests": [*_contrasts(cells, experiment.analysis), *_ratios(cells, experiment.analysis)],
        "predicted_halts": predicted_halts(experiment),
    }


def _contrasts(cells: Sequence[CellKey], analysis: Analysis) -> list[dict[str, Any]]:
    """Each contrast, with the least p-value that Holm's procedure can give it: when its whole family is at best."""
    rows = {item.name: foreseen(item, cells, analysis) for item in analysis.contrasts}
    adjusted: dict[str, float] = {}
    for family in {analysis.family_of(item) for item in analysis.contrasts} - {DESCRIPTIVE}:
        members = [item.name for item in analysis.contrasts if _is_adjusted(item, family, analysis)]
        best = [rows[name]["best_attainable_p"] for name in members]
        if members and None not in best:
            adjusted |= dict(zip(members, holm(best, names=members), strict=True))
    return [
        {
            **rows[item.name],
            "family": analysis.family_of(item),
            "alpha": analysis.alpha,
            "best_attainable_holm": adjusted.get(item.name),
            "in_reach": adjusted[item.name] <= analysis.alpha if item.name in adjusted else None,
        }
        for item in analysis.contrasts
    ]


def _is_adjusted(item: Contrast, family: str, analysis: Analysis) -> bool:
    return analysis.family_of(item) == family and item.test != "count-rule"


def _ratios(cells: Sequence[CellKey], analysis: Analysis) -> list[dict[str, Any]]:
    return [_ratio(item, len(units(item, cells)[0]), analysis.alpha) for item in analysis.ratios]


def _ratio(item: Ratio, tasks: int, alpha: float) -> dict[str, Any]:
    best = best_attainable_p(tasks, alternative=item.alternative) if tasks else None
    return {
        "name": item.name,
        "test": "sign test over tasks",
        "n": tasks,
        "alternative": item.alternative,
        "best_attainable_p": best,
        "alpha": alpha,
        "in_reach": None if best is None else best <= alpha,
    }
