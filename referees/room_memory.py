"""Rooms with the memory that a referee promises its candidates: in a smaller one, the room's own limit would judge."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harness.errors import RefereeError
from harness.ports import RoomOpener, Workspace

__all__ = ["OWN_BYTES", "ample"]

OWN_BYTES = 64 << 20
"""What a referee's own processes take in a room, beside a candidate that holds all that it may."""


def ample(rooms: RoomOpener, *, least: int, option: str) -> RoomOpener:
    """
    `rooms`, of which each must have `least` bytes of memory, as far as it tells how many it has. One with less raises
    `RefereeError` that names both, and the referee's `option`, before anything runs in it.
    """

    @asynccontextmanager
    async def opened() -> AsyncIterator[Workspace]:
        async with rooms() as room:
            allowed = (await room.facts()).get("memory_bytes")
            if isinstance(allowed, int) and 0 < allowed < least:
                raise RefereeError(
                    f"the room has {allowed} bytes of memory: expected {least} or more, for `{option}` and what the "
                    f"referee needs itself; raise memory_bytes of [referee.limits], or lower `{option}`"
                )
            yield room

    return opened
