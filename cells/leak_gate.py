"""The gate against leaks: nothing is launched whose open half, or image, gives away what is sealed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from cells.journal import Journal
from cells.parts import Parts
from harness.errors import GateRefused
from harness.tasks.image_leaks import scan_image
from harness.tasks.leaks import scan_open_half
from harness.tasks.task import Task

__all__ = ["refuse_leaking_tasks", "search_the_image"]

_SHOWN = 20


def refuse_leaking_tasks(tasks: Iterable[Task]) -> None:
    """Search what seats are shown of each task. Raises `GateRefused` that names every leak, and where it is."""
    found = [f"{task.key}: {leak}" for task in tasks for leak in scan_open_half(task).leaks]
    _refuse(found, "take it out of the task, or list in proctor.leaks.shared what the seat is shown on purpose")


async def search_the_image(parts: Parts, journal: Journal, *, run: str) -> None:
    """
    Search the image of a run for what its tasks seal, in a room without a seat, and record what could not be looked at.

    Raises `GateRefused` that names every leak.
    """
    async with parts.backend.open(parts.fence.walls, run=run) as room:
        report = await scan_image(room, list(parts.tasks.values()))
    await journal.add(
        "leaks.searched",
        {
            "image": parts.experiment.workspace.image,
            "files": report.files,
            "leaks": [asdict(leak) for leak in report.leaks],
            "not_looked_into": [asdict(item) for item in report.unread],
            "too_short_to_find": list(report.too_short),
        },
    )
    _refuse([str(leak) for leak in report.leaks], "build the image without it")


def _refuse(found: list[str], advice: str) -> None:
    if not found:
        return
    more = f"\n  and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    shown = "\n  ".join(found[:_SHOWN])
    raise GateRefused("leaks", f"the seat would be shown what is sealed:\n  {shown}{more}\nNext: {advice}")
