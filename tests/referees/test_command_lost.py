"""Whose doing it is when a room of the command referee is lost, or the referee's own program in it alone."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest

from harness.errors import RefereeError
from harness.tree import Exhibit
from harness.values import Verdict
from referees.command import CommandReferee
from tests.referees.folder_room import FolderRoom, folder_rooms
from tests.referees.test_command_referee import RIGHT, SUITE, task, tree

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(60)]

WAITS = SUITE + '[ "$(subject often </dev/null 2>&1)" = wait ] && sleep 20; exit 0\n'
SLOW = {1: RIGHT.replace("exit 2", "sleep 20"), 2: RIGHT.replace("exit 2", "{ echo wait; exit 2; }")}
"""By the room of a hearing that is kept busy: the exhibit's own, or the suite's, by what it is answered."""


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here."""
    return "asyncio"


def referees_own(room: FolderRoom) -> list[int]:
    """The processes of the referee's program in a room: the first, and those that it began."""
    named = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(room.folder).encode() in (place / "cmdline").read_bytes().split(b"\0"):
                named[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
    return sorted(named, key=lambda pid: named[pid] in named)


def sleeps_in(room: FolderRoom) -> bool:
    """Whether something in a room sleeps by now: so it was called, however busy the machine is."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            asleep = (place / "cmdline").read_bytes().startswith(b"sleep\0")
            if asleep and str((place / "cwd").readlink()).startswith(str(room.folder)):
                return True
    return False


class Doomed:
    """
    Rooms of which those of the numbers in `doomed` have all of the referee's processes, or, with `alone`, all but the
    first, sent a signal while something in them sleeps. A room that is lost whole loses its programs by that too.
    """

    def __init__(self, *doomed: int, alone: bool, by: signal.Signals = signal.SIGKILL) -> None:
        self.doomed, self.alone, self.by, self.opened, self.struck = doomed, alone, by, 0, 0

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[FolderRoom]:
        """One more room, and its end."""
        self.opened += 1
        async with folder_rooms() as room, anyio.create_task_group() as tasks:
            if self.opened in self.doomed:
                tasks.start_soon(self._end, room)
            yield room
            tasks.cancel_scope.cancel()

    async def _end(self, room: FolderRoom) -> None:
        while not sleeps_in(room):  # noqa: ASYNC110 - another process sets no event here
            await anyio.sleep(0.1)
        for pid in referees_own(room)[1 if self.alone else 0 :]:
            self.struck += 1
            os.kill(pid, self.by)


async def heard(rooms: Doomed) -> Verdict:
    """The verdict on a program that keeps the room busy that is doomed, under a suite that the reference passes."""
    made, slow = task(WAITS), tree(SLOW[rooms.doomed[0]])
    return await CommandReferee(wall_s=30.0).judge(Exhibit(tree=slow), made.open, made.sealed, rooms)


@pytest.mark.parametrize("doomed", [1, 2])
async def test_a_room_that_is_lost_is_nobodys_crash(doomed: int) -> None:
    """The exhibit's or the suite's: no program can end all of a room, so nothing is said of it, and nothing is scored."""
    rooms = Doomed(doomed, alone=False)
    with pytest.raises(RefereeError, match="room was lost"):
        await heard(rooms)
    assert rooms.struck


@pytest.mark.parametrize("doomed", [(1, 5), (2, 6)])
async def test_what_is_lost_alone_twice_is_the_exhibits_crash(doomed: tuple[int, int]) -> None:
    """Its room goes on and says so, and the reference passes in between."""
    rooms = Doomed(*doomed, alone=True)
    verdict = await heard(rooms)
    assert (verdict.reading, verdict.standing) == ("CRASH", "rejected")
    assert "not with the reference in between" in verdict.detail
    assert rooms.struck == len(doomed)
