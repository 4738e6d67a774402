"""A referee's own failure is never a rejection, nor a yes: the reference is judged in rooms that break."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.conformance.rows import Row, row
from harness.conformance.tapped import Gone, Tap, tapped
from harness.conformance.trial import Trial
from harness.errors import WorkspaceError
from harness.walls import ExecResult

__all__ = ["own_failure", "vouched"]

_GARBAGE = b"\x00\xff}{ 0 0 0 garbage \x1b[2J\n" * 40


class _NoRoom(Tap):
    """The opening number `at` fails, and no other."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def opening(self) -> None:
        super().opening()
        if self.rooms == self.at:
            raise WorkspaceError("no room could be opened: the engine said no")


class _Dies(Tap):
    """At call number `at` the room dies for good; with `engine`, so does every other, and no more can be opened."""

    def __init__(self, at: int, *, engine: bool) -> None:
        super().__init__()
        self.at, self.engine, self.dead = at, engine, 0

    def opening(self) -> None:
        super().opening()
        if self.dead and self.engine:
            raise WorkspaceError("the engine is gone")

    def call(self, room: int, data: bytes) -> None:
        super().call(room, data)
        self.dead = self.dead or (room if self.calls >= self.at else 0)
        if self.dead and (self.engine or room == self.dead):
            raise Gone("it ended from outside")


class _Unknown(Tap):
    """From the program number `at` on, what it did could not be known."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def result(self, result: ExecResult) -> ExecResult:
        super().result(result)
        if self.programs < self.at:
            return result
        return replace(result, stdout=b"", stderr=b"", status=None)


class _Garbage(Tap):
    """Every program ends well and has said nothing that makes sense."""

    def result(self, result: ExecResult) -> ExecResult:
        return replace(result, stdout=_GARBAGE, stderr=_GARBAGE, status=0, timed_out=False)

    def received(self, data: bytes) -> bytes:
        return (_GARBAGE * (len(data) // len(_GARBAGE) + 1))[: len(data)]


def _breaks(counted: Tap) -> Iterator[tuple[str, Tap]]:
    """Ways for rooms to break, at places spread over a judgement that opened and asked as much as was counted."""
    for at in sorted({1, counted.rooms}):
        yield f"opening {at} of {counted.rooms} fails", _NoRoom(at)
    for at in sorted({1, (counted.calls + 1) // 2, counted.calls}):
        yield f"the engine dies at call {at} of {counted.calls}", _Dies(at, engine=True)
    for at in sorted({2, (2 * counted.calls + 2) // 3}):
        yield f"a room dies at call {at} of {counted.calls}", _Dies(at, engine=False)
    for at in sorted({1, counted.programs}) if counted.programs else ():
        yield f"what became of program {at} of {counted.programs} is unknown", _Unknown(at)


async def own_failure(trial: Trial) -> Row:
    """The reference in each kind of broken rooms: an error that takes the blame, unscorable, or accepted after all."""
    reference = trial.referee.reference(trial.task.sealed)
    expected = "RefereeError, WorkspaceError or unscorable, never rejected"
    counted = Tap()
    await trial.judge(reference, rooms=tapped(trial.rooms, counted))
    if not counted.rooms:
        return Row(rule="own failure", held=None, seen="it opens no room that could break", expected=expected)
    faults, said = [], []
    for name, tap in _breaks(counted):
        answer = await trial.judge(reference, rooms=tapped(trial.rooms, tap))
        said.append(f"{name}: {answer.said.partition(':')[0]}")
        if answer.standing == "rejected" or answer.kind in {"raised", "late"}:
            faults.append(f"{name}, and the reference was {answer}")
    return row("own failure", faults, expected=expected, seen="; ".join(said))


async def vouched(trial: Trial) -> Row:
    """Where every program ends well and says nothing that makes sense, nothing was learned: no yes may come of it."""
    garbage = _Garbage()
    answer = await trial.judge(trial.referee.reference(trial.task.sealed), rooms=tapped(trial.rooms, garbage))
    faults = [f"with garbage from every room the reference was {answer}"] * (answer.standing == "accepted")
    faults += [f"it ended as {answer}"] * (answer.kind in {"late", "raised"})
    seen = f"{answer.said[:60]}, after {garbage.calls} calls"
    return row("garbage", faults, expected="nothing that makes sense is never accepted", seen=seen)
