"""Many programs, a few workers: each judges on a line of its own; what could not be judged is tried again, alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import anyio

from harness.errors import Blamed
from harness.ports import RoomOpener
from harness.tasks.task import OpenHalf, SealedHalf, Task
from harness.tree import Exhibit, Tree
from harness.values import Standing, Verdict

__all__ = ["Job", "Judge", "Line", "Shift", "judge_jobs"]

MOST_VOIDS_IN_A_ROW = 5
"""After so many that could not be judged, one right after the other on one line, the machine is at fault: stop."""


class Line(Protocol):
    """Judges one exhibit after the other, in rooms that it keeps."""

    async def judge(self, exhibit: Exhibit, task: OpenHalf, sealed: SealedHalf) -> Verdict: ...  # noqa: D102 - the class says it


Lined = AbstractAsyncContextManager[Line]


class Judge(Protocol):
    """A referee that has lines."""

    options: Any
    classes: Mapping[str, Standing]

    def suite(self, sealed: SealedHalf) -> Any: ...  # noqa: D102 - as a referee's
    def line(self, rooms: RoomOpener, *, cache: Any = None, image: str = "") -> Lined: ...  # noqa: D102 - as a referee's
    def cache_at(self, folder: Path, *, damaged: Callable[[Path], None]) -> Any: ...  # noqa: D102 - for its lines
    def weight(self, sealed: SealedHalf) -> float: ...  # noqa: D102 - seconds that a task's reference took, 0 if unknown


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One program for one task, whose name is `task_id`; `source` is its text as it is judged."""

    task_id: str
    source: bytes


Told = Callable[[Job, "Verdict | Blamed"], Awaitable[None]]
"""Is told what became of a job: its verdict, or why there is none yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shift:
    """How it went: the jobs that could not be judged, with why; and what made every line stop, where something did."""

    void: tuple[tuple[Job, Blamed], ...]
    stopped: Blamed | None


async def judge_jobs(
    jobs: Iterable[Job],
    *,
    judge: Judge,
    task: Callable[[str], Task],
    opened: Callable[[], Lined],
    workers: int,
    told: Told,
) -> Shift:
    """
    Judge `jobs` in their order with at most so many workers, each on a line that it has `opened`. What could not be
    judged is tried once more at the end, alone: a machine that is too small for several programs at once says nothing
    of any.

    Where jobs fail one right after the other, all lines stop, and what is left has no fate.
    """
    waiting = deque(jobs)
    failed: list[tuple[Job, Blamed]] = []
    stopped: list[Blamed] = []

    async def work() -> None:
        in_a_row = 0
        async with opened() as line:
            while waiting:
                job = waiting.popleft()
                fate = await _judged(line, job, judge=judge, task=task)
                await told(job, fate)
                if isinstance(fate, Blamed):
                    failed.append((job, fate))
                in_a_row = in_a_row + 1 if isinstance(fate, Blamed) else 0
                if in_a_row == MOST_VOIDS_IN_A_ROW:
                    stopped.append(failed[-1][1])
                    waiting.clear()

    async with anyio.create_task_group() as tasks:
        for _ in range(min(workers, len(waiting))):
            tasks.start_soon(work)
    void = failed if stopped else await _alone(failed, judge=judge, task=task, opened=opened, told=told)
    return Shift(void=tuple(void), stopped=stopped[0] if stopped else None)


async def _alone(
    failed: Iterable[tuple[Job, Blamed]],
    *,
    judge: Judge,
    task: Callable[[str], Task],
    opened: Callable[[], Lined],
    told: Told,
) -> list[tuple[Job, Blamed]]:
    """Each of these jobs once more, and nothing beside it; those that still have no verdict."""
    void: list[tuple[Job, Blamed]] = []
    for job, _ in failed:
        async with opened() as line:
            fate = await _judged(line, job, judge=judge, task=task)
        await told(job, fate)
        if isinstance(fate, Blamed):
            void.append((job, fate))
    return void


async def _judged(line: Line, job: Job, *, judge: Judge, task: Callable[[str], Task]) -> Verdict | Blamed:
    """The verdict, or what kept the referee from one."""
    given = task(job.task_id)
    exhibit = Exhibit(tree=Tree.of({judge.options.file: job.source}))
    try:
        return await line.judge(exhibit, given.open, given.sealed)
    except Blamed as error:
        return error
