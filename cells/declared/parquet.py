"""Rows of a Parquet file, by DuckDB (the extra `tables`), a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.errors import DeclarationError, unknown_name

__all__ = ["parquet_columns", "parquet_rows"]

BATCH = 4096
"""Rows that are in memory at once, before they are cells."""


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, str]]:
    """A connection, and the file's name as DuckDB takes it. Raises `DeclarationError` for what is no such file."""
    try:
        import duckdb
    except ImportError:
        raise DeclarationError(f"{path}: Parquet needs the extra `tables`: pip install 'proctor[tables]'") from None
    if not path.is_file():
        raise DeclarationError(f"{path} does not exist: expected a file of cells")
    # A name with wildcards would be taken for many files.
    name = "".join(f"[{ch}]" if ch in "*?[" else ch for ch in str(path))
    try:
        with duckdb.connect(config={"threads": 1}) as base:
            # What takes long would else draw a bar on standard output, into the middle of the JSON.
            base.execute("SET enable_progress_bar = false")
            yield base, name
    except duckdb.Error as error:
        raise DeclarationError(f"{path} is no Parquet file that can be read: {str(error).splitlines()[0]}") from None


def _columns(base: Any, name: str) -> list[str]:
    return [column[0] for column in base.execute("SELECT * FROM read_parquet(?) LIMIT 0", [name]).description]


def parquet_columns(path: Path) -> list[str]:
    """The names of the columns. Raises `DeclarationError` for what is no Parquet file."""
    with _opened(path) as (base, name):
        return _columns(base, name)


def parquet_rows(path: Path, wanted: Sequence[str]) -> Iterator[tuple[int, Sequence[Any]]]:
    """The rows with the `wanted` columns, numbered from 1. Raises `DeclarationError` for what is no such file."""
    with _opened(path) as (base, name):
        known = _columns(base, name)
        for column in wanted:
            if column not in known:
                raise DeclarationError(f"{path}: {unknown_name('column', column, known)}")
        columns = ", ".join('"' + column.replace('"', '""') + '"' for column in wanted)
        found = base.execute(f"SELECT {columns} FROM read_parquet(?)", [name])  # noqa: S608 - quoted above
        number = 0
        while batch := found.fetchmany(BATCH):
            for row in batch:
                number += 1
                yield number, row
