"""Files of rows, read as a stream: CSV, JSON Lines and Parquet give the same values in the same order."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from cells.declared.parquet import parquet_columns, parquet_rows
from cells.declared.reading_values import IN_REACH, is_zero
from harness.errors import DeclarationError, unknown_name

__all__ = ["Row", "header_of", "rows_of"]

Row: TypeAlias = tuple[int, Sequence[Any]]
"""Where a row stands (a line of a text file, a row of a Parquet file, from 1), and the wanted columns' values."""


class _Reader(Protocol):
    def __call__(self, path: Path, wanted: Sequence[str], delimiter: str) -> Iterator[Row]: ...


def header_of(path: Path, *, kind: str | None = None, delimiter: str = ",") -> list[str]:
    """The names of all columns; of JSON Lines, every key that some line has."""
    kind = _kind(path, kind)
    if kind == "parquet":
        return parquet_columns(path)
    if kind == "csv":
        with _reading(path), path.open(encoding="utf-8-sig", newline="") as file:
            return next(csv.reader(file, delimiter=delimiter, strict=True), [])
    seen: dict[str, None] = {}
    for _line, record in _records(path):
        seen.update(dict.fromkeys(record))
    return list(seen)


def rows_of(
    path: Path, wanted: Sequence[str], *, kind: str | None = None, delimiter: str = ","
) -> tuple[str, Iterator[Row]]:
    """
    What a place in the file is called (`line` or `row`), and its rows with the `wanted` columns, two or more, in order.

    Nothing is read before the first row is asked for. Raises `DeclarationError` for a file that is not what its format
    says, for a column that is not there or there twice, and for a row that does not fit its header.
    """
    readers: dict[str, tuple[str, _Reader]] = {
        "csv": ("line", _csv_rows),
        "jsonl": ("line", _jsonl_rows),
        "parquet": ("row", _parquet_rows),
    }
    unit, reader = readers[_kind(path, kind)]
    return unit, reader(path, wanted, delimiter)


_KINDS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


def _kind(path: Path, said: str | None) -> str:
    """The format that was said, or that the name ends in."""
    kind = said or _KINDS.get(path.suffix.lower())
    if kind is None:
        known = ", ".join(_KINDS)
        raise DeclarationError(
            f"{path}: its name ends in {path.suffix!r}: expected one of {known}, or a declaration with `format`"
        )
    return kind


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise DeclarationError(f"{path} does not exist: expected a file of cells") from None
    except UnicodeDecodeError as error:
        raise DeclarationError(f"{path} is not UTF-8 text, at byte {error.start}: save it as UTF-8") from None
    except OSError as error:
        raise DeclarationError(f"{path} can't be read: {error}") from None


def _csv_rows(path: Path, wanted: Sequence[str], delimiter: str) -> Iterator[Row]:
    with _reading(path), path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            header = next(reader, None)
            if header is None:
                raise DeclarationError(f"{path} is empty: expected a header and a line for each cell")
            pick, width, line = _picker(path, header, wanted), len(header), reader.line_num
            for row in reader:
                start, line = line + 1, reader.line_num
                if len(row) != width:
                    if not row:
                        continue  # a line with nothing on it is no row
                    raise DeclarationError(
                        f"{path}, line {start}: {len(row)} fields: expected {width}, as in the header"
                    )
                yield start, pick(row)
        except csv.Error as error:
            raise DeclarationError(f"{path}, line {reader.line_num}: no CSV: {error}") from None


def _picker(path: Path, header: Sequence[str], wanted: Sequence[str]) -> itemgetter[Any]:
    if twice := [name for name, times in Counter(header).items() if times > 1]:
        raise DeclarationError(f"{path}: the column {twice[0]!r} is there more than once: expected each name once")
    _refuse_missing(path, header, wanted)
    at = {name: number for number, name in enumerate(header)}
    return itemgetter(*(at[name] for name in wanted))


def _refuse_missing(path: Path, header: Iterable[str], wanted: Iterable[str]) -> None:
    """Raise `DeclarationError` for the first wanted column that the header has not."""
    names = list(header)
    known = set(names)
    for name in wanted:
        if name not in known:
            raise DeclarationError(f"{path}: {unknown_name('column', name, names)}")


def _jsonl_rows(path: Path, wanted: Sequence[str], delimiter: str) -> Iterator[Row]:
    del delimiter  # every value says its own type
    seen: set[str] = set()
    for line, record in _records(path):
        seen.update(record)
        yield line, [record.get(name) for name in wanted]
    # A key may be left out of a line where nothing is to be said; one that no line has is a wrong name.
    if seen:
        _refuse_missing(path, seen, wanted)


_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")


class _NoRow(ValueError):  # noqa: N818 - it is the row that is bad, and the caller adds the place
    """What is wrong with a line in words of ours; those of the JSON decoder may be of Python's own making."""


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number, parse_float=_decimal)
    with _reading(path), path.open(encoding="utf-8-sig", newline="\n") as file:
        for line, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                record = decoder.decode(text)
                if _ESCAPED_HALF.search(text):
                    _refuse_halves(record)
            except (ValueError, RecursionError) as error:
                raise DeclarationError(f"{path}, line {line}: no JSON object of a row: {_told(error)}") from None
            if not isinstance(record, dict):
                raise DeclarationError(f"{path}, line {line}: {_short(record)}: expected a JSON object")
            yield line, record


def _parquet_rows(path: Path, wanted: Sequence[str], delimiter: str) -> Iterator[Row]:
    del delimiter  # every value says its own type
    return parquet_rows(path, wanted)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        (name, _times), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise _NoRow(f"the key {name!r} is there more than once")
    return found


def _no_number(text: str) -> Any:
    raise _NoRow(f"{text} is no number: leave out what is unknown, or write null")


def _decimal(text: str) -> float:
    number = float(text)
    if number == 0 and not is_zero(text):
        raise _NoRow(f"{text[:60]} is too small to tell from 0: expected {IN_REACH}")
    return number


def _refuse_halves(record: Any) -> None:
    """Raise for a text with half a surrogate pair: it is no text that could be written to a file or digested."""
    if found := _HALF.search(json.dumps(record, ensure_ascii=False)):
        raise _NoRow(f"\\u{ord(found[0]):04x} is half a character: expected both halves, or the character")


def _told(error: Exception) -> str:
    match error:
        case RecursionError():
            return "nested too deeply"
        case _NoRow() | json.JSONDecodeError():
            return str(error)
        case _:
            return "a whole number of too many digits"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
