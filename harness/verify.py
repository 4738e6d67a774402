"""Verification of a run from its files alone: the chain, its head, its blobs and its transcripts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.blobs import BlobStore
from harness.canonical import digest_bytes
from harness.errors import IntegrityError
from harness.record import Entry, Head, decode_line

__all__ = ["ChainReading", "Problem", "verify_chain", "verify_files"]

_BESIDE = frozenset({"record.repaired", "run.rescored", "suite.characterised"})
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


def verify_chain(path: Path, *, genesis: str, witness: Head | None = None) -> tuple[ChainReading, list[Entry]]:
    """
    Check every line of the record at `path`, and its end against `witness`, a head kept outside.

    Returns the reading and the entries that name files (the outcomes), so that memory grows with those
    alone. Stops at the first line that does not verify: what follows it hangs on nothing. O(bytes).
    """
    reading, named = ChainReading(), list[Entry]()
    prev, at_witness = genesis, None
    if not path.exists():
        reading.problems.append(Problem(where=path.name, what="the file is missing"))
        return reading, named
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                reading.torn = True
                break
            entry = _checked(line[:-1], number, prev, reading)
            if entry is None:
                break
            prev = entry.sha256
            reading.entries, reading.head = number, Head(entry.seq, entry.sha256)
            reading.sessions += entry.kind == "session.started"
            if entry.kind not in _BESIDE:
                reading.closed = entry.kind == "session.closed"
            if witness is not None and entry.seq == witness.seq:
                at_witness = entry.sha256
            if entry.kind == "cell.ended":
                named.append(entry)
    _judge_end(reading, witness, at_witness)
    return reading, named


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


def verify_files(folder: Path, entries: list[Entry]) -> tuple[list[Problem], dict[str, int]]:
    """
    Check every blob of the run against its name, and every transcript and exhibit that an outcome names.

    Returns the problems and what was looked at, by kind.
    """
    problems: list[Problem] = []
    store = BlobStore(folder / "blobs")
    names = list(store)
    for name in names:
        _try_blob(store, name, problems)
    transcripts = {digest_bytes(path.read_bytes()): path for path in sorted((folder / "transcripts").rglob("*.jsonl"))}
    for entry in entries:
        _check_outcome(entry.body, f"line {entry.seq + 1}", store, transcripts, problems)
    return problems, {"blobs": len(names), "transcripts": len(transcripts), "outcomes": len(entries)}


def _try_blob(store: BlobStore, name: str, problems: list[Problem]) -> None:
    try:
        store.get(name)
    except IntegrityError as error:
        problems.append(Problem(where=f"blobs/{name}", what=str(error)))


def _check_outcome(
    body: Any, where: str, store: BlobStore, transcripts: dict[str, Path], problems: list[Problem]
) -> None:
    exhibit, transcript = body.get("exhibit"), body.get("transcript")
    if exhibit is not None:
        try:
            store.get_tree(exhibit)
        except IntegrityError as error:
            problems.append(Problem(where=where, what=f"exhibit: {error}"))
    if transcript is not None and transcript not in transcripts:
        problems.append(Problem(where=where, what=f"no transcript has the SHA-256 that it names ({transcript})"))
