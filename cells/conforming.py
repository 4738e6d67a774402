"""Holding a registered referee to the conformance suite, on a task folder or on the tasks of an experiment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from cells.backends import usable_backend
from cells.freeze import settle_for_judging
from cells.house import House
from harness import plugins
from harness.clock import Clock
from harness.conformance.rows import Conformance, Row
from harness.conformance.suite import ARMS, RULES, check_referee, refuse_unknown
from harness.errors import UsageError
from harness.experiment import RefereeLimitsEntry
from harness.ports import RoomOpener
from harness.tasks.folder import load_folders
from harness.tasks.task import Task
from harness.tree import Tree
from harness.walls import Caps, Walls

__all__ = ["Asked", "check_registered", "listed"]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """
    What a referee is to be checked on: `place` is a task folder, or, with `is_experiment`, an experiment file, whose
    options, image, limits and arms then hold. `hostile` is a folder of folders, an endless candidate each; `rules` are
    those to show, all where there are none.
    """

    referee: str
    place: Path
    is_experiment: bool
    backend: str
    image: str
    options: Mapping[str, Any] = field(default_factory=dict)
    bound_s: float = 300.0
    hostile: Path | None = None
    rules: tuple[str, ...] = ()


def listed() -> list[dict[str, Any]]:
    """Every registered referee: its name, where it comes from, and its class table."""
    return [
        {
            "name": name,
            "distribution": info.distribution,
            "version": info.version,
            "target": info.target,
            "classes": dict(plugins.load("referees", name)({}).classes),
        }
        for name, info in plugins.table("referees").items()
    ]


async def check_registered(
    asked: Asked, *, clock: Clock, say: Callable[[str], None], seen: Callable[[Row], None]
) -> list[Conformance]:
    """
    What the suite finds, task by task. Raises `UsageError` for what can't be used; hostile candidates run in the rooms.
    """
    make = plugins.load("referees", asked.referee)
    hostile = _hostile(asked.hostile)
    refuse_unknown(asked.rules)
    found = []
    async for task, rooms, options, arms in _cases(asked, clock, say):
        say(f"{asked.referee} on {task.key}")
        found.append(
            await check_referee(
                make,
                task,
                rooms,
                name=asked.referee,
                options={**options, **asked.options},
                arms=arms,
                hostile=hostile,
                bound_s=asked.bound_s,
                rules=asked.rules or tuple(RULES),
                seen=seen,
            )
        )
    return found


def _hostile(folder: Path | None) -> dict[str, Tree]:
    if folder is None:
        return {}
    if not folder.is_dir():
        raise UsageError(
            f"--hostile {folder} is no folder: expected one with a folder for each endless candidate in it"
        )
    trees = {path.name: Tree.from_folder(path) for path in sorted(folder.iterdir()) if path.is_dir()}
    if not trees:
        raise UsageError(f"{folder} holds no folder: expected one for each endless candidate, named by what it does")
    return trees


async def _cases(
    asked: Asked, clock: Clock, say: Callable[[str], None]
) -> AsyncIterator[tuple[Task, RoomOpener, Mapping[str, Any], tuple[str, ...]]]:
    """Each task with its rooms, the referee's options, and the arms to name."""
    if asked.is_experiment:
        frozen = await settle_for_judging(asked.place, clock=clock, say=say)
        if frozen.parts.referee.name != asked.referee:
            raise UsageError(
                f"{asked.place} is judged by {frozen.parts.referee.name!r}, and {asked.referee!r} is to be checked"
            )
        house = House.of(frozen, clock=clock)
        for task in frozen.parts.tasks.values():
            yield task, house.rooms(task), frozen.parts.experiment.referee.options, tuple(frozen.parts.arms)
        return
    for task in load_folders(asked.place):
        image = task.sealed.image or asked.image
        backend = await usable_backend(asked.backend, image)
        walls = Walls(image=image, caps=Caps(**RefereeLimitsEntry().model_dump()))
        yield task, partial(backend.open, walls, run="conformance"), {}, ARMS
