"""A room with less memory than a referee promises its candidates is refused by name; an ample one, or a silent one, not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from harness.errors import RefereeError
from referees.evalplus import EvalPlusReferee
from referees.room_memory import OWN_BYTES, ample
from tests.referees.evalplus_own import exhibit, own_home, quick  # noqa: F401 - a fixture is used by its name
from tests.referees.local_room import LocalRoom

GIB = 1 << 30


class SizedRooms:
    """Rooms that say so much of their memory; `opened` counts them."""

    def __init__(self, **facts: Any) -> None:
        self.facts, self.opened = facts, 0

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[LocalRoom]:
        """One more room."""
        rooms = self

        class Sized(LocalRoom):
            async def facts(self) -> Mapping[str, Any]:
                return rooms.facts

        self.opened += 1
        yield Sized()


@pytest.mark.anyio
@pytest.mark.parametrize("facts", [{"memory_bytes": GIB}, {"memory_bytes": 2 * GIB}, {}, {"memory_bytes": None}])
async def test_an_ample_room_is_given(facts: dict[str, Any]) -> None:
    """As much as is needed, more, or a backend that does not tell."""
    async with ample(SizedRooms(**facts), least=GIB, option="memory_bytes")() as room:
        assert await room.facts() == facts


@pytest.mark.anyio
async def test_a_small_one_is_refused() -> None:
    """A byte too little, with both figures, and what to change."""
    said = f"has {GIB - 1} bytes of memory: expected {GIB} or more, for `held_bytes` .* raise memory_bytes of .*limits"
    with pytest.raises(RefereeError, match=said):
        async with ample(SizedRooms(memory_bytes=GIB - 1), least=GIB, option="held_bytes")():
            raise AssertionError("nothing may run in it")


@pytest.mark.anyio
async def test_evalplus_judges_in_no_room_that_would_be_the_limit() -> None:
    """The kernel would kill a candidate that holds what it may, which read as MEMORY, a rejection."""
    [task] = quick("0")
    referee, code = EvalPlusReferee(memory_bytes=GIB), exhibit("def double(number):\n    return 2 * number\n")
    assert referee.room_bytes(task.sealed) == GIB + OWN_BYTES
    rooms = SizedRooms(memory_bytes=GIB + OWN_BYTES - 1)
    with pytest.raises(RefereeError, match=f"expected {GIB + OWN_BYTES} or more, for `memory_bytes`"):
        await referee.judge(code, task.open, task.sealed, rooms)
    assert rooms.opened
    with pytest.raises(RefereeError, match="or lower `memory_bytes`"):
        async with referee.public_check(task.open, task.sealed, rooms):
            raise AssertionError("no seat may begin")
