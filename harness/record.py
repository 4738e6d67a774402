"""
The record of a run: append-only, hash-chained, one writer, each outcome on the disk before anything follows from it.

A line is the canonical JSON (RFC 8785) of `{at, body, kind, prev, seq, sha256}`. `sha256` is the digest of the same
object without that key, which sorts last, so a reader checks a line on its raw bytes: cut the `sha256` member off,
close the brace, hash. `prev` is the `sha256` of the line before; on the first line it is the registration's digest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from harness.canonical import Json, canonical_bytes, digest_bytes
from harness.clock import Clock, SystemClock, now_text
from harness.errors import IntegrityError, StorageError
from harness.lock import RunLock

__all__ = ["Entry", "Head", "Record", "decode_line", "encode_line", "read_entries"]

_TAIL = b',"sha256":"'
_KEYS = frozenset({"at", "body", "kind", "prev", "seq"})
_TAIL_LENGTH = len(_TAIL) + 64 + len(b'"}')


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One line of a record."""

    seq: int
    at: str
    kind: str
    body: Any
    prev: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Head:
    """Which line was the last one, for a witness outside the record: `SEQ:SHA256` as text."""

    seq: int
    sha256: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.sha256}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read `SEQ:SHA256`. Raises `ValueError` that says what was expected."""
        seq, colon, sha256 = text.strip().partition(":")
        if not (colon and seq.isdecimal() and len(sha256) == 64 and set(sha256) <= set("0123456789abcdef")):
            raise ValueError(f"{text!r} is no head: expected SEQ:SHA256, as `proctor status` and every report print it")
        return cls(int(seq), sha256)


def encode_line(*, seq: int, at: str, kind: str, body: Json, prev: str) -> tuple[bytes, str]:
    """The bytes of a line (without its newline) and their `sha256`."""
    core = canonical_bytes({"at": at, "body": body, "kind": kind, "prev": prev, "seq": seq})
    sha256 = digest_bytes(core)
    return core[:-1] + _TAIL + sha256.encode() + b'"}', sha256


def decode_line(line: bytes) -> Entry:
    """The entry that a line holds. Raises `ValueError` when its bytes are not what its digest says."""
    core, tail = line[:-_TAIL_LENGTH] + b"}", line[-_TAIL_LENGTH:]
    if not (tail.startswith(_TAIL) and tail.endswith(b'"}')):
        raise ValueError("not a line of a record (it does not end in its sha256)")
    sha256 = tail[len(_TAIL) : -2].decode("ascii", "replace")
    if digest_bytes(core) != sha256:
        raise ValueError("its bytes are not the ones that its sha256 was taken over")
    data = _reader()(core)
    if not isinstance(data, dict) or data.keys() != _KEYS:
        raise ValueError("it is not an object of at, body, kind, prev, seq and sha256")
    return Entry(sha256=sha256, **data)


@cache
def _reader() -> Callable[[bytes], Any]:
    """A parser of JSON that takes half the time of the standard library's: a record may have a million lines."""
    from pydantic_core import from_json

    return from_json


def read_entries(path: Path) -> Iterator[Entry]:
    """
    The entries of a record in order, each checked against its digest and its place in the chain.

    A torn last line (no newline at its end) is left out: a writer repairs it. Anything else that is wrong raises
    `IntegrityError` with the line's number. Memory is flat in the length of the record.
    """
    prev: str | None = None
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                entry = decode_line(line[:-1])
            except ValueError as error:
                raise IntegrityError(f"{path}, line {number}: {error}") from None
            if entry.seq != number - 1 or (prev is not None and entry.prev != prev):
                raise IntegrityError(f"{path}, line {number}: it does not follow the line before it")
            prev = entry.sha256
            yield entry


class Record:
    """
    The one writer of a run's record; use it as a context manager.

    Opening takes the run's lock (`BusyError` if another process has it), checks every line (`IntegrityError` for a
    damaged one), and cuts off a torn last line, which it keeps in an entry `record.repaired`.
    """

    def __init__(self, folder: Path, *, registration_digest: str, clock: Clock | None = None) -> None:
        self.path = folder / "record.jsonl"
        self._head_path = folder / "head"
        self._lock = RunLock(folder / "record.lock")
        self._genesis = registration_digest
        self._clock = clock or SystemClock()
        self._file: IO[bytes] | None = None
        self._size = 0
        self.head: Head | None = None

    def __enter__(self) -> Record:  # noqa: PYI034 - a final class in all but name
        self._lock.acquire()
        try:
            torn = self._load()
            self._file = self.path.open("ab")
            if torn:
                self.append("record.repaired", {"torn_bytes": len(torn), "torn_sha256": digest_bytes(torn)})
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._lock.release()

    def _load(self) -> bytes:
        """Find the head and the end of the last whole line; cut off and return what follows it."""
        last: Entry | None = None
        if self.path.exists():
            for entry in read_entries(self.path):
                if entry.seq == 0 and entry.prev != self._genesis:
                    raise IntegrityError(f"{self.path}, line 1: it does not belong to this run's registration")
                last = entry
            self._check_local_head(last)
            data_end = self._end_of_last_line()
            with self.path.open("r+b") as file:
                file.seek(data_end)
                torn = file.read()
                if torn:
                    file.truncate(data_end)
                    os.fsync(file.fileno())
            self._size = data_end
        else:
            self._check_local_head(None)
            torn = b""
        self.head = None if last is None else Head(last.seq, last.sha256)
        return torn

    def _check_local_head(self, last: Entry | None) -> None:
        """Refuse to append to a record that is shorter than its own head says: a later line would hide the cut."""
        if not self._head_path.exists():
            return
        head = Head.parse(self._head_path.read_text("ascii"))
        have = -1 if last is None else last.seq
        if have < head.seq:
            raise IntegrityError(f"{self.path}: lines {have + 2} to {head.seq + 1} are missing; its head is {head}")

    def _end_of_last_line(self) -> int:
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            position = size
            while position > 0:
                start = max(0, position - 65536)
                file.seek(start)
                found = file.read(position - start).rfind(b"\n")
                if found >= 0:
                    return start + found + 1
                position = start
        return 0

    def append(self, kind: str, body: Json) -> Entry:
        """
        Write one entry; it is on the disk when this returns. Raises `StorageError` when the disk does not take it:
        then nothing of it stays.
        """
        assert self._file is not None, "the record is not open"
        seq = 0 if self.head is None else self.head.seq + 1
        prev = self._genesis if self.head is None else self.head.sha256
        at = now_text(self._clock)
        line, sha256 = encode_line(seq=seq, at=at, kind=kind, body=body, prev=prev)
        try:
            self._file.write(line + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            os.ftruncate(self._file.fileno(), self._size)
            raise StorageError(f"{self.path} could not be written: {error}. Make room, then run again.") from error
        self._size += len(line) + 1
        self.head = Head(seq, sha256)
        self._write_head()
        return Entry(seq=seq, at=at, kind=kind, body=body, prev=prev, sha256=sha256)

    def _write_head(self) -> None:
        scratch = self._head_path.with_suffix(".new")
        try:
            scratch.write_text(f"{self.head}\n", "ascii")
            scratch.replace(self._head_path)
        except OSError as error:
            raise StorageError(
                f"{self._head_path} could not be written: {error}. Make room, then run again."
            ) from error
