"""Predictions above a budget: whoever makes one predicts that a limit stops the cells, and is told so at freeze."""

from __future__ import annotations

from typing import Any

from harness.experiment import Budget, Experiment
from harness.figure_refs import FigureRef
from harness.predictions import BandClaim, PointClaim
from harness.regions import exact, shown

__all__ = ["predicted_halts"]


def predicted_halts(experiment: Experiment) -> list[dict[str, Any]]:
    """
    The predictions whose point, or whose band's high end, is above the budget that stops what it is about: a cell's
    for medians, the run's for totals. Each with the budget, and a sentence.
    """
    found = []
    for prediction in experiment.predictions:
        claim = prediction.stretch
        if claim is None:
            continue
        scope, quantity, cap = _cap(claim.of, experiment)
        claimed = claim.value if isinstance(claim, PointClaim) else claim.high
        if cap is None or exact(claimed) <= exact(float(cap)):
            continue
        sentence = (
            f"prediction {prediction.name!r}, {_said(claim)}, is above the {scope}'s budget of "
            f"{shown(exact(float(cap)))} {quantity}: a predicted halt"
        )
        found.append(
            {"prediction": prediction.name, "scope": scope, "limit": quantity, "bound": cap, "sentence": sentence}
        )
    return found


def _cap(ref: FigureRef, experiment: Experiment) -> tuple[str, str, float | None]:
    """The scope, the quantity and the bound that stops what a figure measures; no bound for what none does."""
    quantity = ref.spec.quantity
    if ref.kind == "a task of a ratio" and ref.figure != "ratio":
        quantity = next((item.quantity for item in experiment.analysis.ratios if item.name == ref.ratio), "")
    scope, budget = (
        ("run", experiment.budgets.run) if ref.kind == "the whole set" else ("cell", experiment.budgets.cell)
    )
    return scope, quantity, _bound(budget, quantity)


def _bound(budget: Budget, quantity: str) -> float | None:
    bounds = {"tokens": budget.tokens, "usd": budget.usd, "calls": budget.calls, "wall_s": budget.wall_s}
    return bounds.get(quantity)


def _said(claim: PointClaim | BandClaim) -> str:
    if isinstance(claim, PointClaim):
        return f"{claim.of} = {shown(exact(claim.value))}"
    return f"{claim.of} up to {shown(exact(claim.high))}"
