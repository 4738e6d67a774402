"""
SQL over the tables of runs: a DuckDB in memory that holds the tables and can reach nothing else.

A run may come from anybody, and so may a query: no file, no address, no extension and no variable of this process can
be reached from the SQL, and the settings that say so are locked before it is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cells.table_schema import SCHEMA, Kind, Row
from harness.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duckdb import DuckDBPyConnection

__all__ = ["Answer", "ask", "opened"]

TYPES: Mapping[Kind, str] = {"text": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "flag": "BOOLEAN"}

CHUNK = 20_000
"""So many rows are handed over at once."""

LOCKED = (
    "SET temp_directory = ''",
    "SET memory_limit = '2GiB'",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
"""Said to the database before any SQL of somebody else's. The last one makes the others final."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a query answered. `not_finite` counts the figures that were no numbers, or infinite: they are None."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    not_finite: int


@contextmanager
def opened(tables: Mapping[str, Iterable[Row]]) -> Iterator[DuckDBPyConnection]:
    """A database in memory that holds the tables. Raises `UsageError` where the extra `query` is not installed."""
    try:
        import duckdb
    except ImportError:
        raise UsageError("this needs duckdb: install it with `pip install 'proctor[query]'`") from None
    connection = duckdb.connect(":memory:")
    try:
        for name, rows in tables.items():
            _load(connection, name, list(rows))
        yield connection
    finally:
        connection.close()


def _load(connection: DuckDBPyConnection, name: str, rows: list[Row]) -> None:
    """Make a table of the schema, whose names are our own, and hand its rows over as data."""
    kinds = SCHEMA[name]
    columns = ", ".join(f'"{column}" {TYPES[kind]}' for column, kind in kinds.items())
    connection.execute(f'CREATE TABLE "{name}" ({columns})')
    shape = json.dumps([{column: TYPES[kind] for column, kind in kinds.items()}])
    insert = f'INSERT INTO "{name}" SELECT r.* FROM (SELECT unnest(from_json(?::JSON, ?)) AS r)'  # noqa: S608
    for at in range(0, len(rows), CHUNK):
        connection.execute(insert, [json.dumps(rows[at : at + CHUNK], allow_nan=False), shape])


def ask(tables: Mapping[str, Iterable[Row]], sql: str) -> Answer:
    """
    Answer one SELECT over the tables. Raises `UsageError` for anything else, with the tables and columns there are.
    """
    import duckdb

    with opened(tables) as connection:
        for setting in LOCKED:
            connection.execute(setting)
        try:
            _one_select(connection, sql)
            found = connection.execute(sql)
            columns = tuple(str(column[0]) for column in found.description or ())
            rows = found.fetchall()
        except duckdb.Error as error:
            said = str(error).strip().partition("\n")[0]
            raise UsageError(f"{said}\n{_known()}") from None
        except RuntimeError as error:
            if "interrupted" not in str(error):
                raise
            raise KeyboardInterrupt from None  # what the database makes of a Ctrl-C
    spoilt = [0]
    plain = tuple(tuple(_plain(value, spoilt) for value in row) for row in rows)
    return Answer(columns=columns, rows=plain, not_finite=spoilt[0])


def _one_select(connection: DuckDBPyConnection, sql: str) -> None:
    import duckdb

    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        kinds = ", ".join(statement.type.name for statement in statements) or "nothing"
        raise UsageError(f"{sql!r} is {kinds}: expected one SELECT\n{_known()}")


def _known() -> str:
    return "The tables and their columns:\n" + "\n".join(
        f"  {name}: {', '.join(kinds)}" for name, kinds in SCHEMA.items()
    )


def _plain(value: Any, spoilt: list[int]) -> Any:
    """A value as JSON has it: a figure that is no number is None, and whatever JSON has no word for is its text."""
    match value:
        case float():
            if math.isfinite(value):
                return value
            spoilt[0] += 1
            return None
        case None | bool() | int() | str():
            return value
        case Decimal():
            return _plain(float(value), spoilt)
        case list() | tuple():
            return [_plain(item, spoilt) for item in value]
        case dict():
            return {str(name): _plain(item, spoilt) for name, item in value.items()}
        case bytes():
            return value.hex()
        case _:
            return str(value)
