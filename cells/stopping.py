"""Where a run looks at its stop rules, and what it writes down when one is met."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import anyio

from cells.figure_reading import FigureValue
from cells.plan import declared
from cells.registered import StopReading
from cells.stop_rules import StopRules
from harness.values import CellKey

if TYPE_CHECKING:
    from cells.house import House
    from cells.journal import Journal
    from cells.plan import Progress

__all__ = ["stop_if_met", "stop_line", "stop_of"]


async def stop_if_met(house: House, journal: Journal) -> None:
    """Record the first stop rule that is met, once; whoever starts cells looks at the progress and starts no more."""
    experiment, progress = house.parts.experiment, journal.progress
    if not experiment.stops or progress.stopped is not None:
        return
    cells = declared(house.registration, progress).cells
    rules = StopRules(rules=experiment.stops, cells=cells, analysis=experiment.analysis)
    found = await anyio.to_thread.run_sync(rules.met, progress.outcomes())
    if found is None or journal.progress.stopped is not None:
        return
    rule, value = found
    tried = sum(cell in progress.tries for cell in cells)
    body = {
        "rule": rule.name,
        "figure": rule.ref.model_dump(exclude_none=True),
        "condition": str(rule),
        "value": value.value,
        "bound": value.bound,
        "cells": {"tried": tried, "under_way": len(progress.started), "declared": len(cells)},
    }
    await journal.add("run.stopped", body)
    journal.watcher.note(stop_line(body))


def stop_line(body: Mapping[str, Any]) -> str:
    """A met stop rule in a sentence."""
    value = FigureValue(value=body["value"], bound=body["bound"])
    return (
        f"stopped by the registered rule {body['rule']!r}: {body['condition']}; it is {value}. No further cell starts."
    )


def stop_of(progress: Progress, cells: Iterable[CellKey]) -> StopReading | None:
    """The stop rule that ended a run, with the cells that it kept from being fired; None if none was met."""
    body = progress.stopped
    if body is None:
        return None
    return StopReading(
        rule=body["rule"],
        condition=body["condition"],
        figure=str(FigureValue(value=body["value"], bound=body["bound"])),
        unfired=tuple(str(cell) for cell in cells if cell not in progress.tries and cell not in progress.started),
    )
