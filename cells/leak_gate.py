"""The gate against leaks: nothing is launched whose open half, or image, gives away what is sealed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

import anyio.to_thread

from cells.journal import Journal
from cells.parts import Parts
from harness.errors import GateRefused
from harness.tasks.image_leaks import scan_image
from harness.tasks.leaks import Leak, scan_open_half
from harness.tasks.task import Task

__all__ = ["refuse_leaking_tasks", "search_the_image"]

_SHOWN = 20


def refuse_leaking_tasks(tasks: Iterable[Task]) -> None:
    """Search what seats are shown of each task. Raises `GateRefused` that names every leak, and where it is."""
    found = [f"{task.key}: {leak}" for task in tasks for leak in scan_open_half(task).leaks]
    _refuse(found, "take it out of the task, or list in proctor.leaks.shared what the seat is shown on purpose")


async def search_the_image(parts: Parts, journal: Journal, *, run: str) -> None:
    """
    Search the image of a run for what its tasks seal, in a room without a seat, and record what could not be looked at,
    in the tasks' own open halves too.

    Raises `GateRefused` that names every leak.
    """
    async with parts.backend.open(parts.fence.walls, run=run) as room:
        report = await scan_image(room, list(parts.tasks.values()))
    unread = [*report.unread, *await anyio.to_thread.run_sync(_unread, list(parts.tasks.values()))]
    await journal.add(
        "leaks.searched",
        {
            "image": parts.experiment.workspace.image,
            "files": report.files,
            "leaks": [asdict(leak) for leak in report.leaks],
            "not_looked_into": [asdict(item) for item in unread],
            "too_short_to_find": list(report.too_short),
        },
    )
    _refuse([str(leak) for leak in report.leaks], "build the image without it")


def _unread(tasks: Iterable[Task]) -> list[Leak]:
    """What of the tasks' open halves could not be looked into."""
    return [
        Leak(where=f"{task.key}: {item.where}", what=item.what)
        for task in tasks
        for item in scan_open_half(task).unread
    ]


def _refuse(found: list[str], advice: str) -> None:
    if not found:
        return
    more = f"\n  and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    shown = "\n  ".join(found[:_SHOWN])
    raise GateRefused("leaks", f"the seat would be shown what is sealed:\n  {shown}{more}\nNext: {advice}")
