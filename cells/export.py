"""Tables as files: one file a table, as CSV or as Parquet; both hold the same, and reading either gives it back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from cells.csv_tables import read_csv_table, write_csv_table
from cells.query import opened
from cells.table_schema import SCHEMA, Row
from harness.errors import UsageError

__all__ = ["Format", "read_exported", "write_tables"]

Format: TypeAlias = Literal["csv", "parquet"]
"""CSV needs nothing more; Parquet needs the extra `query`."""


def write_tables(tables: Mapping[str, Iterable[Row]], folder: Path, form: Format) -> dict[str, Path]:
    """
    Write every table into `folder` and return the files by table; what is there under these names is replaced.

    Raises `UsageError` where the folder can't be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths = {name: folder / f"{name}.{form}" for name in tables}
        if form == "csv":
            for name, rows in tables.items():
                with _scratch(paths[name]).open("w", encoding="utf-8", newline="") as file:
                    write_csv_table(file, name, rows)
        else:
            _write_parquet(tables, {name: _scratch(path) for name, path in paths.items()})
        for path in paths.values():
            _scratch(path).replace(path)
    except OSError as error:
        raise UsageError(f"{folder} can't take the tables: {error}; name another folder by --to") from None
    return paths


def _scratch(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def _write_parquet(tables: Mapping[str, Iterable[Row]], paths: Mapping[str, Path]) -> None:
    import duckdb

    with opened(tables) as connection:
        connection.execute("SET threads = 1")  # the order of rows, and so the bytes, are the same each time
        for name, path in paths.items():
            try:
                connection.table(name).write_parquet(str(path))
            except duckdb.IOException as error:
                raise OSError(str(error)) from None


def read_exported(folder: Path, form: Format) -> dict[str, list[Row]]:
    """Read all tables back from the files that `write_tables` wrote."""
    if form == "csv":
        return {name: read_csv_table(folder / f"{name}.csv", name) for name in SCHEMA}
    import duckdb

    tables: dict[str, list[Row]] = {}
    for name, kinds in SCHEMA.items():
        rows = duckdb.read_parquet(str(folder / f"{name}.parquet")).fetchall()
        tables[name] = [dict(zip(kinds, row, strict=True)) for row in rows]
    return tables
