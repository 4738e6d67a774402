"""
The tasks of a registration as blobs of its run, so that whoever has the run folder can judge again without the sources.

The two halves are two blobs. The sealed one is on the harness's side of the fence; nothing lays it into a workspace but
a referee.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.blobs import BlobStore
from harness.errors import IntegrityError
from harness.tasks.task import OpenHalf, SealedHalf, Task

__all__ = ["TaskPin", "keep_task", "recall_task", "recall_tasks"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskPin:
    """Where a task's halves are kept, and the digests they were frozen with."""

    open_blob: str
    sealed_blob: str
    open: str
    sealed: str


def keep_task(store: BlobStore, task: Task) -> TaskPin:
    """Keep both halves with every file of theirs."""
    half, sealed = task.open, task.sealed
    open_blob = store.put_json(
        {
            "benchmark": half.benchmark,
            "name": half.name,
            "instruction": half.instruction,
            "form": half.form,
            "environment": store.put_tree(half.environment),
            "extras": dict(half.extras),
            "details": dict(half.details),
        }
    )
    trees = {name: store.put_tree(getattr(sealed, name)) for name in ("tests", "solution", "mutants")}
    sealed_blob = store.put_json({**trees, "card": dict(sealed.card)})
    return TaskPin(open_blob=open_blob, sealed_blob=sealed_blob, open=half.digest, sealed=sealed.digest)


def recall_task(store: BlobStore, pin: TaskPin) -> Task:
    """The task that `keep_task` kept. Raises `IntegrityError` when it is not the one that was frozen."""
    half = json.loads(store.get(pin.open_blob))
    sealed = json.loads(store.get(pin.sealed_blob))
    task = Task(
        open=OpenHalf(**{**half, "environment": store.get_tree(half["environment"])}),
        sealed=SealedHalf(
            tests=store.get_tree(sealed["tests"]),
            solution=store.get_tree(sealed["solution"]),
            mutants=store.get_tree(sealed["mutants"]),
            card=sealed["card"],
        ),
    )
    if (task.open.digest, task.sealed.digest) != (pin.open, pin.sealed):
        raise IntegrityError(f"task {task.key} in {store.root} is not the one that was frozen")
    return task


def recall_tasks(store: BlobStore, pins: Mapping[str, Mapping[str, str]], keys: Iterable[str]) -> dict[str, Task]:
    """The tasks named by `keys`, from the `task ...` pins of a registration."""
    fields = ("open_blob", "sealed_blob", "open", "sealed")
    return {
        key: recall_task(store, TaskPin(**{name: pins[f"task {key}"][name] for name in fields}))
        for key in sorted(set(keys))
    }
