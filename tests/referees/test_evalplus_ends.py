"""
How a judgement ends that did not go as it should: rooms that are lost, calls that are cancelled, chance.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from harness.errors import RefereeError
from referees.evalplus import EvalPlusReferee
from tests.referees.evalplus_own import exhibit, own, own_home, quick, ran_reference, reading  # noqa: F401 - a fixture is used by its name
from tests.referees.local_room import LocalRoom, LocalRooms

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(60)]


class KillingRooms(LocalRooms):
    """Rooms in which all is killed, `kills` times, as soon as a candidate has emptied `mark`."""

    def __init__(self, mark: Path, kills: int) -> None:
        super().__init__()
        self.mark, self.kills = mark, kills
        mark.write_text("x")

    @property
    def slow(self) -> str:
        """A right candidate that empties the mark, and waits until it is filled again. It may make no file of its own."""
        wait = f"while not os.path.getsize({str(self.mark)!r}):\n    time.sleep(0.01)\n"
        put = f"os.close(os.open({str(self.mark)!r}, os.O_WRONLY | os.O_TRUNC))\n"
        return f"import os, time\n{put}{wait}def f(x):\n    return x + 1\n"

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[LocalRoom]:
        """A room, and one who watches it."""
        async with super().__call__() as room, anyio.create_task_group() as group:
            group.start_soon(self._watch, room)
            yield room
            group.cancel_scope.cancel()

    async def _watch(self, room: LocalRoom) -> None:
        while True:
            while self.mark.stat().st_size:  # noqa: ASYNC110 - another process empties it
                await anyio.sleep(0.01)
            if self.kills:
                self.kills -= 1
                await room.kill()
            self.mark.write_text("x")


PATIENT = {"min_time_s": 5.0}


@pytest.mark.parametrize("kills", [0, 1])
async def test_a_lost_room(tmp_path: Path, kills: int) -> None:
    """A room that is lost once is the machine's doing: the candidate is judged in the next."""
    task, referee = own(tmp_path), EvalPlusReferee(PATIENT)
    await ran_reference(task, PATIENT)
    rooms = KillingRooms(tmp_path / "mark", kills)
    verdict = await referee.judge(exhibit(rooms.slow), task.open, task.sealed, rooms)
    assert verdict.reading == "PASS"
    assert len(rooms.opened) == kills + 1


async def test_rounds_go_on_after_a_lost_zygote(tmp_path: Path) -> None:
    """When the kept room's zygote is lost, that call gets a fresh room, which later ones stay in."""
    task, rooms = own(tmp_path), KillingRooms(tmp_path / "mark", 1)
    referee = EvalPlusReferee(PATIENT)
    await ran_reference(task, PATIENT)
    async with referee.public_check(task.open, task.sealed, rooms) as check:
        assert check is not None
        assert (await check(rooms.slow)).reading == "PASS"
        assert (await check("def f(x):\n    return x\n")).reading == "FAIL"
    assert len(rooms.opened) == 2


async def test_a_cancelled_check_does_not_spoil_the_next(tmp_path: Path) -> None:
    """A seat that is cut off in the middle of a check may ask again: the answer is not another candidate's."""
    task = own(tmp_path)
    slow = "import time\ntime.sleep(9)\ndef f(x):\n    return x + 1\n"
    async with EvalPlusReferee({"min_time_s": 5.0}).public_check(task.open, task.sealed, LocalRooms()) as check:
        assert check is not None
        with anyio.move_on_after(0.2) as scope:
            await check(slow)
        assert scope.cancelled_caught
        assert (await check("def f(x):\n    return x\n")).reading == "FAIL"


async def test_a_room_that_is_no_room_is_ours(tmp_path: Path) -> None:
    """A room whose program says nothing, or nonsense, gives RefereeError and never a verdict."""
    task = own(tmp_path)

    class Odd(LocalRooms):
        @asynccontextmanager
        async def __call__(self) -> AsyncIterator[LocalRoom]:
            async with super().__call__() as room:
                stream = room.stream
                room.stream = lambda argv: stream(["sh", "-c", "printf '\\377\\377\\377\\377junkjunkjunkjunk'"])  # type: ignore[method-assign] # a fake of a fake
                yield room

    with pytest.raises(RefereeError, match="no zygote in the room"):
        await EvalPlusReferee().judge(exhibit("f = abs"), task.open, task.sealed, Odd())


async def test_chance_is_the_same_each_time(tmp_path: Path) -> None:
    """A candidate that draws gets the numbers that the reference got, run after run."""
    draws = "    import random\n    return [random.random(), random.choice(range(999))]\n"
    task = own(tmp_path, canonical_solution=draws)
    assert await reading(task, "def f(x):\n" + draws) == ("PASS", "PASS", "PASS")
    assert await reading(task, "import random\nrandom.seed()\ndef f(x):\n" + draws) == ("FAIL", "FAIL", "NOT_RUN")
