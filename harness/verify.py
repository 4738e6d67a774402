"""Verification of a run from its files alone: the chain, its head, its blobs and its transcripts."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.blobs import BlobStore
from harness.errors import IntegrityError
from harness.record import Entry, Head, decode_line
from harness.transcript import transcript_path
from harness.values import CellKey

__all__ = ["ChainReading", "FileCheck", "Problem", "verify_chain"]

_REMEMBERED = 4096
"""So many exhibits that were found whole are not read again when another outcome names them too."""

_BESIDE = frozenset(
    {
        "effect.promoted",
        "record.repaired",
        "registration.amended",
        "run.audited",
        "run.rescored",
        "suite.characterised",
    }
)
"""Entries that are written outside of any session too: they say nothing of whether one is open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Something that does not verify: where (a line's number from 1, a file, a digest) and what is wrong."""

    where: str
    what: str


@dataclass(kw_only=True, slots=True)
class ChainReading:
    """
    What a chain's bytes say. `complete` is True only when a head from outside the record vouches for its end; `closed`
    is whether the last of its `sessions` was.
    """

    entries: int = 0
    head: Head | None = None
    sessions: int = 0
    closed: bool = False
    torn: bool = False
    complete: bool | None = None
    completeness: str = "prefix intact, completeness unknown"
    problems: list[Problem] = field(default_factory=list)


def verify_chain(
    path: Path, *, genesis: str, witness: Head | None = None, saw: Callable[[Entry], None] | None = None
) -> ChainReading:
    """
    Check every line of the record at `path`, and its end against `witness`, a head kept outside.

    `saw` gets each entry that is whole and in its place, in order. Stops at the first line that does not verify: what
    follows it hangs on nothing. O(bytes), with memory flat in the length of the record.
    """
    reading = ChainReading()
    prev, at_witness, last = genesis, None, None
    if not path.exists():
        reading.problems.append(Problem(where=path.name, what="the file is missing"))
        reading.complete, reading.completeness = False, "there is no record"
        return reading
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                reading.torn = True
                break
            entry = _checked(line[:-1], number, prev, reading)
            if entry is None:
                break
            prev, reading.entries, last = entry.sha256, number, entry
            reading.sessions += entry.kind == "session.started"
            if entry.kind not in _BESIDE:
                reading.closed = entry.kind == "session.closed"
            if witness is not None and entry.seq == witness.seq:
                at_witness = entry.sha256
            if saw is not None:
                saw(entry)
    reading.head = None if last is None else Head(last.seq, last.sha256)
    _judge_end(reading, witness, at_witness)
    return reading


def _checked(line: bytes, number: int, prev: str, reading: ChainReading) -> Entry | None:
    try:
        entry = decode_line(line)
    except ValueError as error:
        reading.problems.append(Problem(where=f"line {number}", what=str(error)))
        return None
    if entry.prev != prev:
        what = "it does not belong to this registration" if number == 1 else "it does not follow the line before it"
        reading.problems.append(Problem(where=f"line {number}", what=what))
        return None
    if entry.seq != number - 1:
        reading.problems.append(Problem(where=f"line {number}", what=f"seq is {entry.seq}: expected {number - 1}"))
        return None
    return entry


def _judge_end(reading: ChainReading, witness: Head | None, at_witness: str | None) -> None:
    """Say whether the end is vouched for; a chain that is broken before the witness's line stays broken only."""
    if reading.problems:
        reading.completeness = f"broken at {reading.problems[0].where}"
        reading.complete = False
    elif witness is None:
        if not reading.entries:
            reading.problems.append(Problem(where="line 1", what="the record is empty"))
            reading.complete = False
    elif reading.entries <= witness.seq:
        reading.complete = False
        first, last = reading.entries + 1, witness.seq + 1
        span = f"line {first}" if first == last else f"lines {first} to {last}"
        reading.completeness = f"cut: {span} missing"
        reading.problems.append(Problem(where=span, what="missing: the head names a later line than the last one here"))
    elif at_witness != witness.sha256:
        reading.complete = False
        reading.completeness = "rewritten: a line up to the head's is another one"
        reading.problems.append(
            Problem(where=f"line {witness.seq + 1}", what=f"its sha256 is {at_witness}: the head says {witness.sha256}")
        )
    else:
        reading.complete = True
        after = reading.entries - 1 - witness.seq
        reading.completeness = f"complete up to the head given{f', and {after} lines after it' if after else ''}"


class FileCheck:
    """
    Checks the files that outcomes name, entry by entry, and the run's blobs when the record has ended.

    Memory is flat in the length of the record: of the exhibits that were found whole the last `_REMEMBERED` are known.
    """

    def __init__(self, folder: Path) -> None:
        self.problems: list[Problem] = []
        self.looked_at = {"blobs": 0, "transcripts": 0, "outcomes": 0}
        self._folder = folder
        self._store = BlobStore(folder / "blobs")
        self._whole: OrderedDict[str, None] = OrderedDict()

    def saw(self, entry: Entry) -> None:
        """An entry that is whole: the exhibit and the transcript that it names must be what it says."""
        if entry.kind != "cell.ended":
            return
        self.looked_at["outcomes"] += 1
        where = f"line {entry.seq + 1}"
        try:
            body = entry.body
            cell, attempt, exhibit, transcript = body["cell"], body["attempt"], body["exhibit"], body["transcript"]
            trees = [exhibit, *(one["exhibit"] for one in body.get("candidates", ()))]
            path = None if transcript is None else transcript_path(self._folder, CellKey(**cell), attempt)
        except (KeyError, TypeError, ValueError) as error:
            what = f"it is no outcome of a try: {type(error).__name__}: {error}"
            self.problems.append(Problem(where=where, what=what))
            return
        for tree in dict.fromkeys(trees):
            if tree is not None:
                self._check_exhibit(tree, where)
        if path is not None:
            self._check_transcript(path, transcript, where)

    def ended(self) -> None:
        """The record has no more entries: look at every blob of the run."""
        for name in self._store:
            self.looked_at["blobs"] += 1
            try:
                self._store.get(name)
            except IntegrityError as error:
                self.problems.append(Problem(where=f"blobs/{name}", what=str(error)))

    def _check_exhibit(self, exhibit: str, where: str) -> None:
        if exhibit not in self._whole:
            try:
                self._store.get_tree(exhibit)
            except (IntegrityError, AttributeError, KeyError, TypeError, ValueError) as error:
                self.problems.append(Problem(where=where, what=f"exhibit: {error}"))
                return
        self._whole[exhibit] = None
        self._whole.move_to_end(exhibit)
        if len(self._whole) > _REMEMBERED:
            self._whole.popitem(last=False)

    def _check_transcript(self, path: Path, expected: str, where: str) -> None:
        self.looked_at["transcripts"] += 1
        if not path.is_file():
            self.problems.append(Problem(where=where, what=f"its transcript {path.name} is missing"))
            return
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            what = f"its transcript {path.name} has SHA-256 {found}: the outcome names {expected}"
            self.problems.append(Problem(where=where, what=what))
