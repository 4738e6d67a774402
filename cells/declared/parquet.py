"""Rows of a Parquet file, by DuckDB (the extra `tables`), a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.errors import DeclarationError, unknown_name

__all__ = ["parquet_rows"]

BATCH = 4096
"""Rows that are in memory at once, before they are cells."""


def parquet_rows(path: Path, wanted: Sequence[str]) -> Iterator[tuple[int, Sequence[Any]]]:
    """The rows with the `wanted` columns, numbered from 1. Raises `DeclarationError` for what is no such file."""
    try:
        import duckdb
    except ImportError:
        raise DeclarationError(
            f"{path}: reading Parquet needs the extra `tables`: pip install 'proctor[tables]'"
        ) from None
    if not path.is_file():
        raise DeclarationError(f"{path} does not exist: expected a file of cells")
    # An empty list of glob characters: the name is taken as it stands.
    name = "".join(f"[{ch}]" if ch in "*?[" else ch for ch in str(path))
    with duckdb.connect(config={"threads": 1}) as base:
        try:
            known = [column[0] for column in base.execute("SELECT * FROM read_parquet(?) LIMIT 0", [name]).description]
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
        except duckdb.Error as error:
            raise DeclarationError(
                f"{path} is no Parquet file that can be read: {str(error).splitlines()[0]}"
            ) from None
