"""The referee's controls: before any arm is judged, the reference must be accepted and what is degenerate rejected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import anyio

from cells.house import House
from cells.journal import Journal
from cells.verdicts import judge
from harness.errors import unwrapped
from harness.tasks.characterise import counted
from harness.tasks.task import Task
from harness.tree import Exhibit, Tree

__all__ = ["ControlRow", "judge_controls", "run_controls", "withdrawn"]

RUN_BATTERY = ("empty",)
"""The degenerate exhibits that every run judges of every task; `proctor task check` judges the whole battery."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlRow:
    """
    One control: what was judged, what the referee said, and whether that is what it must say. `failed` of `total`
    tests did not pass, where the referee tells.
    """

    name: str
    reading: str
    standing: str
    held: bool
    failed: int | None
    total: int | None


async def judge_controls(house: House, task: Task, *, battery: Iterable[str] | None) -> list[ControlRow]:
    """
    Judge the reference and the degenerate exhibits named in `battery` (None: all that the referee has).

    Raises `Blamed` when the referee could not work.
    """
    referee = house.parts.referee
    degenerate = dict(referee.battery(task.open, task.sealed))
    names = degenerate if battery is None else [name for name in battery if name in degenerate]
    rows = [await _judged(house, task, "reference", referee.reference(task.sealed), accepted=True)]
    rows.extend([await _judged(house, task, name, degenerate[name], accepted=False) for name in names])
    return rows


async def _judged(house: House, task: Task, name: str, tree: Tree, *, accepted: bool) -> ControlRow:
    verdict = await judge(house, task, Exhibit(tree=tree))
    held = (verdict.standing == "accepted") if accepted else (verdict.standing == "rejected")
    failed, total = counted(verdict)
    return ControlRow(
        name=name, reading=verdict.reading, standing=verdict.standing, held=held, failed=failed, total=total
    )


async def run_controls(house: House, journal: Journal, tasks: Iterable[str]) -> None:
    """
    Judge the controls of each task that has none recorded, as many at once as cells may be; each is a line.

    Raises `Blamed` when the referee could not work on one: no arm may be judged by it then.
    """
    limiter = anyio.CapacityLimiter(house.parts.experiment.concurrency)

    async def control(key: str) -> None:
        async with limiter:
            rows = await judge_controls(house, house.parts.tasks[key], battery=RUN_BATTERY)
        await journal.add("control.judged", {"task": key, "rows": [asdict(row) for row in rows]})

    todo = [key for key in tasks if key not in journal.progress.controls]
    try:
        async with anyio.create_task_group() as group:
            for key in todo:
                group.start_soon(control, key)
    except BaseExceptionGroup as group:
        raise unwrapped(group) from group


def withdrawn(journal: Journal) -> dict[str, str]:
    """
    The tasks whose controls do not hold, with what the referee said, and those whose suite was characterised in this
    record and does not hold: they are withdrawn from all arms.
    """
    found = {key: "; ".join(body["why"]) for key, body in journal.progress.suites.items() if not body["holds"]}
    for key, body in journal.progress.controls.items():
        bad = [f"{row['name']} was {row['reading']}" for row in body["rows"] if not row["held"]]
        if bad:
            found[key] = "; ".join(bad)
    return found
