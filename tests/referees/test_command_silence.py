"""
A room of the command referee that does not answer: silent it is lost, and nobody's; one that says that it goes on, and
is not done when all its time is over, had too busy a machine.
"""

from __future__ import annotations

import signal
from dataclasses import replace

import anyio
import pytest

from harness.errors import RefereeError
from harness.tree import Exhibit
from harness.values import Verdict
from referees import command_subject_line
from referees.command import CommandReferee
from referees.command_subject_line import Bounds, Fault, SubjectLine
from referees.command_wire import packed
from referees.pytest_wire import BEAT
from tests.referees.test_command_lost import Doomed
from tests.referees.test_command_referee import RIGHT, task, tree

pytestmark = pytest.mark.anyio

BOUNDS = Bounds(
    cpu_s=1, wall_s=1.0, memory_bytes=1, build_s=1.0, calls=9, output_bytes=99, answer_bytes=99, judge_s=1.0,
    report_bytes=9,
)  # fmt: skip
END = {"status": 0, "signal": None, "over": None, "failed": None, "cpu_s": 0.0, "blocked_s": 0.0}


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here."""
    return "asyncio"


class Far:
    """A room that says that it goes on, every so often, `beats` times; then it answers, or says nothing more."""

    def __init__(self, beats: int, every_s: float, *, answers: bool) -> None:
        self.beats, self.every_s, self.answers = beats, every_s, answers

    async def send(self, data: bytes) -> None:
        """It takes what it is sent."""

    async def receive(self, limit: int) -> tuple[bytes, bytes]:
        """The next frame."""
        del limit
        await anyio.sleep(self.every_s)
        self.beats -= 1
        if self.beats >= 0:
            return BEAT, b""
        if not self.answers:
            await anyio.sleep_forever()
        return b"R", packed(END, b"out", b"")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """All times a hundredth."""
    monkeypatch.setattr(command_subject_line, "PATIENCE", 0.1)
    monkeypatch.setattr(command_subject_line, "SILENCE_S", 0.15)
    monkeypatch.setattr(command_subject_line, "QUIET_S", 0.1)


async def asked(far: Far, *, confined: bool = True, patience: float = 1.0) -> object:
    """What a call comes to."""
    line = SubjectLine(far, replace(BOUNDS, wall_s=10.0 * patience))  # type: ignore[arg-type]  # what it uses of a line
    line.confined = confined
    try:
        return (await line.ask(["x"], {}, b""))[1]
    except Fault as fault:
        return fault.reading, fault.sure


async def test_a_room_that_goes_on_is_waited_for() -> None:
    """Longer than a silent one, by its beats; and its answer is the answer."""
    assert await asked(Far(8, 0.05, answers=True)) == b"out"


@pytest.mark.parametrize("beats", [0, 3])
async def test_a_room_that_is_silent_is_lost(beats: int) -> None:
    """From the beginning, or from some time on: that is of the room, and no reading of any exhibit."""
    with pytest.raises(RefereeError, match="said nothing for"):
        await asked(Far(beats, 0.02, answers=False))


async def test_a_room_that_goes_on_past_all_its_time_decides_nothing() -> None:
    """Nobody was over a limit, and the clock has run out all the same: UNSCORABLE."""
    assert await asked(Far(10**6, 0.02, answers=True), patience=0.2) == ("UNSCORABLE", True)


@pytest.mark.parametrize("beats", [0, 10**6])
async def test_where_a_program_can_stop_its_server_it_may_have(beats: int) -> None:
    """On a machine whose system calls the filter does not know: heard again, and a TIMEOUT if that is so again."""
    assert await asked(Far(beats, 0.02, answers=False), confined=False, patience=0.2) == ("TIMEOUT", False)


async def heard(rooms: Doomed, monkeypatch: pytest.MonkeyPatch) -> Verdict:
    """The verdict on a right program that takes its time, by real rooms, where three seconds of silence are too many."""
    monkeypatch.setattr(command_subject_line, "PATIENCE", 10)
    monkeypatch.setattr(command_subject_line, "SILENCE_S", 3.0)
    monkeypatch.setattr(command_subject_line, "QUIET_S", 2.0)
    made, slow = task(), tree(RIGHT.replace("exit 2", "{ sleep 4; exit 2; }"))
    return await CommandReferee(wall_s=30.0).judge(Exhibit(tree=slow), made.open, made.sealed, rooms)


@pytest.mark.live
@pytest.mark.timeout(60)
async def test_a_real_room_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that runs for longer than a room may be silent passes; stopped with its room it is nobody's fault."""
    assert (await heard(Doomed(alone=False), monkeypatch)).reading == "PASS"
    rooms = Doomed(1, alone=False, by=signal.SIGSTOP)
    with pytest.raises(RefereeError, match="said nothing for"):
        await heard(rooms, monkeypatch)
    assert rooms.struck
