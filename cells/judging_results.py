"""
The file of results: a JSON line a sample, written as it is judged, so that whatever ends a judge loses no verdict.

A line says all that its verdict depends on. An earlier line counts again only for the very same source, suite, referee,
image and walls; a file that holds anything else is set aside whole, and never mixed with what is judged now.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

from harness.canonical import plain
from harness.errors import BusyError, StorageError, UsageError
from harness.values import STRICT, Standing, TierReading, Verdict

__all__ = ["Basis", "Result", "ResultFile", "result_of"]

_WRONG_PLACE = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR}
"""What a place says that takes no file of ours however much room there is: another must be named."""
_BEGINS = b'{"basis": {"backend": "'
"""How every line begins: what tells a first line that was cut off from a file of somebody else's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Basis:
    """
    What a verdict depends on, by SHA-256: the program's source, the task's suite (tests, rules and options), the
    referee's own source, the image and the walls of its rooms; and which backend made them.
    """

    __pydantic_config__ = STRICT
    task_id: str
    source: str
    suite: str
    referee: str
    image: str
    walls: str
    backend: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """One sample's line. `copy_of` is the number of an earlier sample of the task with the same source, judged once."""

    __pydantic_config__ = STRICT
    task_id: str
    sample: int
    where: str
    reading: str
    standing: Standing
    tiers: tuple[TierReading, ...]
    detail: str
    seconds: float | None
    cpu_s: float | None
    copy_of: int | None
    basis: Basis

    def __post_init__(self) -> None:
        """Refuse what no judge writes: figures out of range, an acceptance that its own tiers do not bear out."""
        if self.sample < 0 or min(self.seconds or 0.0, self.cpu_s or 0.0) < 0:
            raise ValueError("a sample's number or a time is below 0")
        if self.task_id != self.basis.task_id:
            raise ValueError(f"it is of {self.task_id!r}, and its basis of {self.basis.task_id!r}")
        for tier in self.tiers:
            if tier.passed is not None and not 0 <= tier.passed <= (tier.total or 0):
                raise ValueError(f"{tier.passed} of {tier.total} tests of the {tier.tier} tier are said to have passed")
        passed = bool(self.tiers) and all(tier.reading == "PASS" for tier in self.tiers if tier.ran)
        if (self.standing == "accepted") != (self.reading == "PASS" and passed):
            raise ValueError(f"{self.reading!r} is said to be {self.standing}, which its tiers do not bear out")

    @property
    def base(self) -> bool:
        """Whether the public tier was passed."""
        return bool(self.tiers) and self.tiers[0].reading == "PASS"

    @property
    def plus(self) -> bool:
        """Whether both tiers were."""
        return self.standing == "accepted"

    def for_sample(self, *, sample: int, where: str, copy_of: int | None) -> Result:
        """The same verdict, for a sample with the same source."""
        return replace(self, sample=sample, where=where, copy_of=copy_of)

    def line(self) -> bytes:
        """The result as a line of the file."""
        return json.dumps(plain(asdict(self)), sort_keys=True, allow_nan=False).encode() + b"\n"


def result_of(verdict: Verdict, basis: Basis, *, sample: int, where: str) -> Result:
    """What a verdict makes of a sample."""
    return Result(
        task_id=basis.task_id,
        sample=sample,
        where=where,
        reading=verdict.reading,
        standing=verdict.standing,
        tiers=verdict.tiers,
        detail=verdict.detail,
        seconds=verdict.seconds,
        cpu_s=verdict.cpu_s,
        copy_of=None,
        basis=basis,
    )


class ResultFile:
    """
    The one writer of a file of results; use it as a context manager. `earlier` are the results that it held, `torn` how
    many bytes of a last line that was never finished.

    Opening raises `BusyError` when another process has it, `StorageError` when the disk does not take it, and
    `UsageError` for a place that can hold no file of ours, and when it holds a line that is no result: it may be a file
    of somebody else's.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.earlier: list[Result] = []
        self.torn = 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> ResultFile:  # noqa: PYI034 - a final class in all but name
        self._file = _locked(self.path)
        try:
            self.earlier, self.torn = _read(self.path)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def begin(self, kept: Sequence[Result]) -> Path | None:
        """
        Go on from the `kept` results. If the file holds exactly them, its torn end is cut off and that is all. If not,
        it is moved to a name beside it, which is returned, and a new one begins with them.
        """
        file = self._opened()
        if set(kept) == set(self.earlier):
            try:
                file.truncate(file.seek(0, os.SEEK_END) - self.torn)
            except OSError as error:
                raise _full(self.path, error) from error
            return None
        draft = _draft(self.path.with_name(f"{self.path.name}.new"))
        aside = _free_name(self.path)
        try:
            draft.truncate(0)
            _put(draft, b"".join(result.line() for result in kept), self.path)
            self.path.rename(aside)
            Path(draft.name).rename(self.path)
        except (OSError, StorageError) as error:
            draft.close()
            raise error if isinstance(error, StorageError) else _full(self.path, error) from error
        file.close()
        self._file = draft
        return aside

    def add(self, results: Iterable[Result]) -> None:
        """Write results; they outlive this process from then on. Raises `StorageError` when the disk is full."""
        _put(self._opened(), b"".join(result.line() for result in results), self.path)

    def _opened(self) -> IO[bytes]:
        assert self._file is not None, "the file of results is not open"
        return self._file


def _locked(path: Path) -> IO[bytes]:
    """The file, made if need be, to be written by this process alone."""
    try:
        if os.path.lexists(path) and not path.is_file():
            raise UsageError(f"{path} is no regular file: results are read again, so name one with --out")
        file = path.open("ab", buffering=0)
    except ValueError as error:  # a name with a NUL
        raise UsageError(f"{str(path)!r} is no file's name: {error}. Name another file with --out") from error
    except OSError as error:
        if error.errno in _WRONG_PLACE:
            raise UsageError(f"{path} can't be written: {error.strerror}. Name another file with --out") from error
        raise StorageError(f"{path} can't be written: {error}. Name another file with --out") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise BusyError(f"another judge writes {path}: wait for it, or name another file with --out") from None
    return file


def _draft(path: Path) -> IO[bytes]:
    """A file to begin anew with. What an ended judge may have left of one is overwritten, and nothing else is."""
    if path.is_symlink():
        raise UsageError(f"{path} is a link, and would be written over: move it away, or name another file with --out")
    draft = _locked(path)
    try:
        _read(path)
    except BaseException:
        draft.close()
        raise
    return draft


def _put(file: IO[bytes], data: bytes, path: Path) -> None:
    """Append all of `data`, or nothing."""
    size = file.seek(0, os.SEEK_END)
    view = memoryview(data)
    try:
        while view:
            view = view[file.write(view) :]
    except OSError as error:
        file.truncate(size)
        raise _full(path, error) from error


def _full(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path} could not be written: {error}. Make room, then judge again: what is written is kept")


def _free_name(path: Path) -> Path:
    number = 1
    while (found := path.with_name(f"{path.name}.before-{number}")).exists():
        number += 1
    return found


def _read(path: Path) -> tuple[list[Result], int]:
    """The results of a file, and the bytes behind its last whole line."""
    data = path.read_bytes()
    if not data:
        return [], 0
    from pydantic import TypeAdapter, ValidationError

    *whole, torn = data.split(b"\n")
    adapter: TypeAdapter[Result] = TypeAdapter(Result)
    results: list[Result] = []
    for number, line in enumerate(whole, 1):
        try:
            results.append(adapter.validate_json(line))
        except ValidationError as error:
            raise _foreign(path, f"line {number}", error.errors()[0]) from None
    if torn[: len(_BEGINS)] != _BEGINS[: len(torn)]:
        where = f"line {len(whole) + 1}" if whole else "its only line"
        raise _foreign(path, where, {"msg": "it has no end"})
    return results, len(torn)


def _foreign(path: Path, where: str, fault: Any) -> UsageError:
    place = ".".join(map(str, fault.get("loc", ())))
    return UsageError(
        f"{path}, {where} is no result of `proctor judge` ({f'{place}: ' if place else ''}{fault['msg']}): "
        "name another file with --out, or move this one away"
    )
