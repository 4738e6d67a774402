"""Exported tables: both forms give back what was written, what is missing stays missing, and no name is a formula."""

import csv
import math
import re

import pytest

from cells.cell_lines import CellLine
from cells.csv_tables import read_csv_table
from cells.export import read_exported, write_tables
from cells.table_rows import tables_of
from cells.table_schema import SCHEMA
from harness.errors import UsageError
from tests.cells.table_cases import FORMULAS, final_tables, full_tables, hostile_tables
from tests.pages import ROOT

TABLES = {"full": full_tables, "hostile": hostile_tables, "none": lambda: tables_of([])}


@pytest.mark.parametrize("case", TABLES)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_reading_gives_back_what_was_written(tmp_path, form, case):
    """Every value of every table with its type, and the same from both forms."""
    tables = TABLES[case]()
    paths = write_tables(tables, tmp_path, form)
    assert set(paths) == set(SCHEMA) == set(tables)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{name}.{form}" for name in SCHEMA)
    assert read_exported(tmp_path, form) == tables


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_same_tables_are_the_same_bytes(tmp_path, form):
    """Also when they take the place of older ones."""
    first = {name: path.read_bytes() for name, path in write_tables(full_tables(), tmp_path, form).items()}
    again = {name: path.read_bytes() for name, path in write_tables(full_tables(), tmp_path, form).items()}
    assert first == again


def test_rows_are_of_the_schema():
    """Each row has the columns of its table in their order, each value is of its column's kind, and finite."""
    kinds = {"text": str, "integer": int, "number": float, "flag": bool}
    assert all(final_tables().values())
    for tables in (full_tables(), final_tables(), hostile_tables()):
        for name, rows in tables.items():
            for row in rows:
                assert list(row) == list(SCHEMA[name])
                for column, value in row.items():
                    assert value is None or type(value) is kinds[SCHEMA[name][column]]
                    assert value != ""
                    assert not isinstance(value, float) or math.isfinite(value)


def test_every_column_is_filled_from_somewhere():
    """No column of a table of cells has a name that nothing gives it."""
    named = {"class" if name == "outcome_class" else name for name in CellLine.__dataclass_fields__}
    assert set(SCHEMA["cells"]) - {"source", "reading"} == named
    somewhere = {
        (name, column)
        for tables in (full_tables(), final_tables())
        for name, rows in tables.items()
        for row in rows
        for column in row
        if row[column] is not None
    }
    empty = {(name, column) for name, kinds in SCHEMA.items() for column in kinds} - somewhere
    # What no cell of the made-up run has: an id of another harness, a served model, a load, what a record keeps.
    cells = ("id", "gate", "would_be", "served_models", "load_1m", "cells_under_way", "exhibit", "transcript")
    expected = {(table, column) for table in ("cells", "tries") for column in cells}
    expected |= {("contrasts", "model"), ("ratios", "model"), ("probes", "evidence_down"), ("probes", "ms")}
    assert empty == expected | {("strata", column) for column in SCHEMA["strata"]} & empty


def test_what_is_missing_is_empty_and_never_0(tmp_path):
    """A cell without an outcome has its key alone; unknown tokens and no price are empty, a call count of 0 is 0."""
    write_tables(full_tables(), tmp_path, "csv")
    with (tmp_path / "cells.csv").open(encoding="utf-8", newline="") as file:
        missing, unknown, retried, *_ = csv.DictReader(file)
    assert (missing["class"], missing["passed"], missing["tokens"], missing["usd"]) == ("MISSING", "", "", "")
    assert (missing["tries"], missing["attempt"]) == ("0", "")
    assert (unknown["tokens"], unknown["usd"], unknown["price"], unknown["calls"]) == ("", "", "void", "0")
    assert (retried["class"], retried["attempt"], retried["tries"], retried["usd"]) == ("PASS", "2", "2", "0.5")


def test_a_void_has_no_number_and_its_try_keeps_its_spend():
    """So that no mean over cells takes it in, and nothing that was paid is lost."""
    tables = full_tables()
    voids = [row for row in tables["cells"] if row["class"] == "VOID"]
    assert voids
    assert all(row[name] is None for row in voids for name in ("passed", "tokens", "usd", "calls", "wall_s", "price"))
    tries = [row for row in tables["tries"] if row["class"] == "VOID"]
    assert all(row["usd"] is not None for row in tries)
    assert len(tries) == len(voids) + 1


def test_no_text_is_a_formula(tmp_path):
    """Whatever a spreadsheet would run begins with an apostrophe, and a figure, also one below 0, with none."""
    write_tables(hostile_tables(), tmp_path, "csv")
    for path in tmp_path.iterdir():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                assert not [cell for cell in row if cell.startswith(("=", "+", "@", "\t", "\r"))]
                assert not [cell for cell in row if cell.startswith("-") and not re.fullmatch(r"-[0-9.e-]+", cell)]
    tasks = {row["task"] for row in read_csv_table(tmp_path / "cells.csv", "cells")}
    assert tasks == set(FORMULAS)


def test_text_is_as_it_is_printed():
    """Line breaks, escape sequences and marks that turn the direction stand as a report prints them."""
    (probe,) = hostile_tables()["probes"]
    assert probe["evidence_up"] == "a =b \\x1b[2J\\u202e"
    assert probe["expected"] == "DENIED; ABSENT"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("source,reading", "source,other", "has the columns source, other"),
        ("\n", ",1\n", "has the columns"),
        ("true", "yes", "'yes' is no flag: expected true or false"),
        (",false,", ",,,", "cells, expected"),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_refused(tmp_path, old, new, said):
    """Another header, a row of another length, a word that is no flag: each by file and row."""
    path = write_tables(full_tables(), tmp_path, "csv")["cells"]
    path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")
    with pytest.raises(UsageError, match=re.escape(said)):
        read_csv_table(path, "cells")


def test_a_folder_that_can_not_be_written_is_told(tmp_path):
    """With the next step."""
    (tmp_path / "file").write_text("x", "utf-8")
    for form in ("csv", "parquet"):
        with pytest.raises(UsageError, match="name another folder by --to"):
            write_tables(full_tables(), tmp_path / "file", form)


def schema_faults(text: str) -> list[str]:
    """Tables and columns that a page does not have, and those that it has too much."""
    found: dict[str, set[tuple[str, str]]] = {}
    for section in text.partition("## SQL")[0].split("\n### ")[1:]:
        rows = re.findall(r"^\| (`.*?`) \| (\w+) \|", section, re.MULTILINE)
        name = section.partition("\n")[0].strip("`")
        found[name] = {(column, kind) for names, kind in rows for column in re.findall(r"`(\w+)`", names)}
    apart = {name: found.get(name, set()) ^ set(kinds.items()) for name, kinds in SCHEMA.items()}
    return [f"{name}: {sorted(columns)}" for name, columns in apart.items() if columns] + sorted(
        set(found) - set(SCHEMA)
    )


def test_the_schema_is_documented():
    """Every table and column with its kind, and none that there is not."""
    text = (ROOT / "docs/reference/tables.md").read_text("utf-8")
    assert schema_faults(text) == []


def test_a_column_that_is_not_documented_is_found():
    """One that is gone, and one of another kind."""
    text = (ROOT / "docs/reference/tables.md").read_text("utf-8")
    assert len(schema_faults(text.replace("`would_be`", "would_be", 1))) == 1
    assert len(schema_faults(text.replace("| `passed` | flag |", "| `passed` | text |", 1))) == 1
