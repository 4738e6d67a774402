"""How long the judge waits for the zygote: a word of it starts the time anew, but not for ever."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import anyio
import pytest

from harness.errors import WorkspaceError
from referees import evalplus_cell
from referees.evalplus_cell import Cell, Ending, Job, packed

pytestmark = pytest.mark.anyio

JOB = Job(code=b"", entry="f", prelude="", inputs=packed([]), calls=0, build=1, least=1, budget=1, memory=1)
END = b"Z" + struct.pack("<Q", 5) + b"done"


class Zygote:
    """Says its lines, each after a pause, under the nonce of the job that it was sent; then nothing."""

    def __init__(self, lines: Iterator[tuple[float, bytes]], *, takes: bool = True) -> None:
        self.lines, self.takes, self.nonce = lines, takes, b""

    async def send(self, data: bytes) -> None:
        """Take a job."""
        if not self.takes:
            await anyio.sleep_forever()
        self.nonce = data[-16:]

    async def receive(self) -> bytes:
        """The next line."""
        for pause, line in self.lines:
            await anyio.sleep(pause)
            return struct.pack("<I", 16 + len(line)) + self.nonce + line
        return await anyio.sleep_forever()


def cell(*lines: tuple[float, bytes], **how: Any) -> Cell:
    """A cell with such a zygote."""
    return Cell(Zygote(iter(lines), **how))  # type: ignore[arg-type]  # what of a stream a cell uses


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A little patience."""
    monkeypatch.setattr(evalplus_cell, "SILENCE_S", 0.3)
    monkeypatch.setattr(evalplus_cell, "START_S", 0.3)
    monkeypatch.setattr(Job, "wall", 0.5)


async def nothing(piece: bytes) -> None:
    """Listens, and says nothing."""


async def test_a_room_that_says_nothing_is_lost() -> None:
    """At its start, in a job, and when it takes no job."""
    with pytest.raises(WorkspaceError, match=r"no word from the room for 0\.3 s"):
        await cell().greet()
    for silent in (cell(), cell((0, b"H")), cell(takes=False)):
        with pytest.raises(WorkspaceError, match=r"neither took nor said anything for 0\.3 s"):
            await silent.run(JOB, nothing)
        assert not silent.usable


async def test_each_word_starts_the_time_anew() -> None:
    """Until the whole job has taken longer than it may."""
    slow = cell((0.2, b"H"), (0.2, b"H"), (0.2, END))
    assert await slow.run(JOB, nothing) == Ending(word="done", cpu_s=5e-9)
    assert slow.usable
    endless = Cell(Zygote(repeat((0.1, b"H"))))  # type: ignore[arg-type]  # as above
    began = time.monotonic()
    with pytest.raises(WorkspaceError, match=r"did not end a job in 0\.8 s"):
        await endless.run(JOB, nothing)
    assert time.monotonic() - began < 2


async def test_the_judge_s_own_time_is_no_silence() -> None:
    """What it makes of a large value may take longer."""

    async def slow(piece: bytes) -> None:
        await anyio.sleep(0.5)

    assert (await cell((0, b"S"), (0, END)).run(JOB, slow)).word == "done"
