"""What of the sealed material gets into the room in which the exhibit is: told, since looking decides no more."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Iterator

from harness.clock import fresh_token
from harness.conformance.candidates import labelled
from harness.conformance.rows import Row
from harness.conformance.tapped import Tap, tapped
from harness.conformance.trial import Trial

__all__ = ["sealed_in_rooms"]

_LINE = 20
_PART = 20
"""Bytes of a line that are looked for by themselves: a part of twice as many has one whole, wherever it begins."""
_TELLING = 6
"""Different bytes that a part must have to say anything: a row of blanks says nothing."""
_MOST_BYTES = 64 << 20


class _Recorder(Tap):
    """Keeps what went into each room, up to a cap."""

    def __init__(self) -> None:
        super().__init__()
        self.went: dict[int, bytearray] = defaultdict(bytearray)

    def call(self, room: int, data: bytes) -> None:
        super().call(room, data)
        kept = self.went[room]
        kept += data[: max(0, _MOST_BYTES - len(kept))]


async def sealed_in_rooms(trial: Trial) -> Row:
    """
    Which room got the exhibit, by a word that is in no other file, and which lines of the sealed tests went there too,
    whole or in part: what is read from a file of cases goes without the words around it.

    A referee that packs what it sends can't be looked through, and one whose runner needs suite and subject in one
    room may hold them apart by other means: so this is told, and refuses nobody.
    """
    word = f"proctor-conformance-{fresh_token(6)}"
    recorder = _Recorder()
    tree = labelled(trial.referee.reference(trial.task.sealed), word)
    await trial.judge(tree, rooms=tapped(trial.rooms, recorder))
    with_exhibit = {room for room, data in recorder.went.items() if _holds(bytes(data), word.encode())}
    given = _given(trial)
    lines = _lines(trial, given)
    told = []
    for room in sorted(with_exhibit):
        data = bytes(recorder.went[room])
        whole = {line for line in lines if _holds(data, line)}
        parts = sum(any(part in data for part in _parts(line, given)) for line in lines - whole)
        if whole or parts:
            more = f" and parts of {parts} more" if parts else ""
            got = f"{len(whole)} of {len(lines)} lines of the sealed tests{more}"
            told.append(f"room {room} of {recorder.rooms} got the exhibit and {got}")
    seen = "; ".join(told) or f"none in the {len(with_exhibit)} of {recorder.rooms} rooms that got the exhibit"
    if not with_exhibit:
        seen = f"can't be told: in none of {recorder.rooms} rooms the exhibit could be seen"
    return Row(rule="sealed material", held=None, seen=seen, expected="none in the room where the exhibit is")


def _given(trial: Trial) -> bytes:
    """All that the seat or the exhibit has."""
    task = trial.task
    trees = (task.open.environment, task.sealed.solution)
    return task.open.instruction.encode() + b"".join(tree[path] for tree in trees for path in tree)


def _lines(trial: Trial, given: bytes) -> set[bytes]:
    """The lines of the sealed tests that say something, and stand in nothing that was given."""
    tests = trial.task.sealed.tests
    found = {line.strip() for path in tests for line in tests[path].split(b"\n")}
    return {line for line in found if len(line) >= _LINE and line not in given}


def _parts(line: bytes, given: bytes) -> Iterator[bytes]:
    """What stands in a line, end to end, as far as it says something and was not given."""
    for at in range(0, len(line) - _PART + 1, _PART):
        part = line[at : at + _PART]
        if len(set(part)) >= _TELLING and part not in given:
            yield part


def _holds(data: bytes, what: bytes) -> bool:
    """Whether `what` stands in `data` as it is, as hexadecimal, or in base64 at whatever place."""
    if what in data or what.hex().encode() in data:
        return True
    # Of three bytes base64 makes four characters: the ends, which depend on what stands around, are left off.
    return any(base64.b64encode(b"\0" * before + what)[4:-4] in data for before in range(3) if len(what) > 8)
