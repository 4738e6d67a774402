"""
Tables as CSV, and back again.

A spreadsheet runs a cell that begins with one of `= + - @` as a formula, and names in a table are other people's. So a
text that begins with one of those, or with an apostrophe, has an apostrophe put before it, which reading takes away.
Figures have none: they are figures. An empty cell is what is missing, and there is no empty text.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TextIO

from cells.table_schema import SCHEMA, Kind, Row
from harness.errors import UsageError

__all__ = ["csv_text", "read_csv_table", "write_csv_table"]

STARTS = ("=", "+", "-", "@", "'", "\t", "\r")
"""What a text may not begin with in a spreadsheet."""


def write_csv_table(file: TextIO, name: str, rows: Iterable[Row]) -> None:
    """Write a table with its header: commas, quotes where needed, one line feed a row, `true` and `false`."""
    kinds = SCHEMA[name]
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(kinds)
    for row in rows:
        writer.writerow([csv_text(row[column]) for column in kinds])


def csv_text(value: str | float | bool | None) -> str:  # noqa: FBT001 - a flag among other values
    """A value as a cell of CSV: text that no spreadsheet takes for a formula, nothing for what is not there."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return f"'{value}" if value.startswith(STARTS) else value
        case _:
            return repr(value)


def read_csv_table(path: Path, name: str) -> list[Row]:
    """Read a table that was written by `write_csv_table`. Raises `UsageError` that names what is not as it must be."""
    kinds = SCHEMA[name]
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        header = next(lines, [])
        if header != list(kinds):
            raise UsageError(f"{path} has the columns {', '.join(header) or 'none'}: expected {', '.join(kinds)}")
        return [_row(path, at, kinds, line) for at, line in enumerate(lines, start=2)]


def _row(path: Path, at: int, kinds: Mapping[str, Kind], line: list[str]) -> Row:
    if len(line) != len(kinds):
        raise UsageError(f"{path}, row {at}: {len(line)} cells, expected {len(kinds)}")
    try:
        return {name: _read(kind, text) for (name, kind), text in zip(kinds.items(), line, strict=True)}
    except ValueError as error:
        raise UsageError(f"{path}, row {at}: {error}") from None


def _read(kind: Kind, text: str) -> str | int | float | bool | None:
    if not text:
        return None
    match kind:
        case "text":
            return text.removeprefix("'") if text.startswith("'") else text
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "flag":
            if text not in {"true", "false"}:
                raise ValueError(f"{text!r} is no flag: expected true or false")
            return text == "true"
