"""Characterising an experiment's tasks before anybody relies on them: reference, degenerate battery, mutants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cells.controls import judge_controls, judge_mutants
from cells.freeze import Frozen, settle_for_judging
from cells.house import House
from harness.clock import Clock

__all__ = ["check_tasks"]


async def check_tasks(source: Path, *, clock: Clock, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """
    Judge the reference, every degenerate exhibit and every mutant of each task of an experiment file.

    Returns a row each: task, name, reading, standing, held. Raises `Blamed` when the referee could not work.
    """
    frozen: Frozen = await settle_for_judging(source, clock=clock, say=say)
    house = House.of(frozen, clock=clock)
    rows: list[dict[str, Any]] = []
    for key, task in frozen.parts.tasks.items():
        say(f"{key}: judging its controls")
        found = [*await judge_controls(house, task, battery=None), *await judge_mutants(house, task)]
        rows.extend({"task": key, **asdict(row)} for row in found)
    return rows
