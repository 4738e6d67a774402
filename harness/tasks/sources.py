"""Where tasks come from, by the form of a `source`: a folder, or a data set in EvalPlus's schema."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import TaskError, unknown_name
from harness.seeds import draw_order
from harness.tasks.task import Task

if TYPE_CHECKING:
    from harness.experiment import TaskEntry

__all__ = ["load_tasks"]


def load_tasks(entry: TaskEntry, folder: Path) -> list[Task]:
    """
    The tasks of one entry of an experiment file; paths are relative to `folder`.

    Raises `TaskError` when the source's form is unknown, or its tasks can't be used.
    """
    kind, colon, place = entry.source.partition(":")
    if kind == "evalplus" and place:
        return _from_evalplus(entry, place, folder)
    if kind == "folder" and place:
        if entry.profile is not None:
            raise TaskError(f"task source {entry.source!r}: a profile ({entry.profile!r}) is of an `evalplus:` source")
        return _from_folders(entry, folder / place)
    raise TaskError(
        f"task source {entry.source!r}: expected 'folder:PATH', 'evalplus:humaneval', 'evalplus:mbpp' or "
        f"'evalplus:FILE.jsonl'{'' if colon else ' (the part before the colon is missing)'}"
    )


def _from_evalplus(entry: TaskEntry, place: str, folder: Path) -> list[Task]:
    from harness.tasks.evalplus import load_evalplus

    source = place if place in {"humaneval", "mbpp"} else folder / place
    return load_evalplus(
        source,
        ids=entry.ids or None,
        draw=None if entry.draw is None else entry.draw.model_dump(),
        cap=entry.cap,
        benchmark=entry.benchmark,
        profile=entry.profile,
    )


def _from_folders(entry: TaskEntry, place: Path) -> list[Task]:
    """One task folder, or every task folder directly below `place`, in the order of their names."""
    from harness.tasks.folder import load_folders

    by_name = {task.open.name: task for task in load_folders(place)}
    for name in entry.ids:
        if name not in by_name:
            raise TaskError(f"{place}: {unknown_name('task', name, by_name)}")
    names = entry.ids or list(by_name)
    if entry.draw is not None:
        if entry.draw.n > len(names):
            raise TaskError(f"{place}: a draw of {entry.draw.n} from {len(names)} tasks: expected at most as many")
        names = draw_order(names, entry.draw.seed)[: entry.draw.n]
    chosen = [by_name[name] for name in names[: entry.cap]]
    if entry.benchmark is not None:
        chosen = [replace(task, open=replace(task.open, benchmark=entry.benchmark)) for task in chosen]
    return chosen
