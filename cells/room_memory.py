"""The memory of a referee's rooms, held against what the referee says that it needs, before any seat starts."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from cells.parts import Parts
from harness.errors import ExperimentError
from harness.tasks.task import SealedHalf

__all__ = ["KnowsItsRooms", "refuse_small_rooms"]


@runtime_checkable
class KnowsItsRooms(Protocol):
    """A referee that can say how many bytes of memory a room of a task must have."""

    def room_bytes(self, sealed: SealedHalf) -> int: ...  # noqa: D102 - said above


def refuse_small_rooms(parts: Parts) -> None:
    """
    Raise `ExperimentError` where a referee's room has less memory than it needs for a task: what its candidates may
    hold would be cut by the room, and read as theirs. A referee that does not say passes; its own rooms must tell.
    """
    referee, allowed = parts.referee, parts.experiment.referee.limits.memory_bytes
    if not isinstance(referee, KnowsItsRooms):
        return
    needs = {key: referee.room_bytes(task.sealed) for key, task in parts.tasks.items()}
    short = sorted(key for key, least in needs.items() if least > allowed)
    if short:
        most = max(needs[key] for key in short)
        names = ", ".join(short[:3]) + (f" and {len(short) - 3} more" if len(short) > 3 else "")
        raise ExperimentError(
            f"referee.limits.memory_bytes is {allowed}: referee {referee.name!r} needs rooms of {most} bytes or more "
            f"for {names}. Raise memory_bytes of [referee.limits] to {most}, or lower what its own options allow"
        )
