"""SQL over the tables: the answers are right, and nothing but the tables can be reached, changed or brought out."""

import json

import pytest

from cells.answer_view import answer_csv, answer_json, answer_text
from cells.query import ask
from harness.errors import UsageError
from tests.cells.table_cases import full_tables, hostile_tables


def test_an_answer_is_of_the_tables():
    """Counts and sums are those of the rows themselves; unknown is null and in no sum."""
    rows = full_tables()["cells"]
    answer = ask(full_tables(), "SELECT count(*), count(usd), sum(usd), count(*) FILTER (passed) AS passed FROM cells")
    assert answer.columns[-1] == "passed"
    ((cells, priced, usd, passed),) = answer.rows
    known = [row["usd"] for row in rows if row["usd"] is not None]
    assert (cells, priced) == (len(rows), len(known))
    assert usd == pytest.approx(sum(known))
    assert passed == sum(row["passed"] is True for row in rows)


def test_every_table_can_be_joined():
    """By source, reading and the parts of a condition."""
    answer = ask(
        full_tables(),
        "SELECT c.arm, any_value(n.planned), count(*) FROM cells c JOIN census n ON n.scope = 'arm' AND n.arm = c.arm"
        " AND n.reading = c.reading AND n.source = c.source GROUP BY ALL ORDER BY 1",
    )
    assert answer.rows == (("plain", 30, 30), ("treated", 30, 30))


SECRET = "the-secret-of-this-test"
CELLS = {"cells": full_tables()["cells"]}
"""The one table that the refusals name: to fill all of them for each takes most of a test's time."""


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM read_blob('{file}')",
        "SELECT * FROM read_json('{file}')",
        "SELECT * FROM read_parquet('{file}')",
        "SELECT * FROM sniff_csv('{file}')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM read_csv('http://127.0.0.1:9/x')",
        "SELECT * FROM 'https://127.0.0.1:9/x.parquet'",
        "SELECT getenv('HOME')",
        "SELECT * FROM secret_rows",
        "COPY cells TO '{folder}/out.csv'",
        "COPY (SELECT 1) TO '{folder}/out.parquet'",
        "EXPORT DATABASE '{folder}/out'",
        "IMPORT DATABASE '{folder}'",
        "ATTACH '{folder}/other.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "LOAD '{file}'",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "PRAGMA enable_external_access",
        "CREATE TABLE mine AS SELECT 1",
        "INSERT INTO cells SELECT * FROM cells",
        "DELETE FROM cells",
        "DROP TABLE cells",
        "UPDATE cells SET usd = 0",
        "SELECT 1; DROP TABLE cells",
        "SELECT 1; SELECT 2",
        "CALL pragma_version()",
        "CHECKPOINT",
        "",
        "-- nothing",
        "SELEC 1",
    ],
)
def test_nothing_else_can_be_reached_or_changed(tmp_path, sql):
    """No file, folder, address, variable, extension or setting; one SELECT, and nothing that writes."""
    secret_rows = [SECRET]  # a variable of this process by that name
    file = tmp_path / "secret.csv"
    file.write_text(f"a,b\n{SECRET},1\n", "utf-8")
    with pytest.raises(UsageError) as refused:
        ask(CELLS, sql.format(file=file, folder=tmp_path))
    assert SECRET not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]
    assert secret_rows == [SECRET]


def test_the_file_can_be_read_where_nothing_is_locked(tmp_path):
    """The refusals are refusals: the same database without the locks reads the very file."""
    import duckdb

    file = tmp_path / "secret.csv"
    file.write_text(f"a,b\n{SECRET},1\n", "utf-8")
    assert duckdb.connect(":memory:").read_csv(str(file)).fetchall() == [(SECRET, 1)]


@pytest.mark.parametrize("sql", ["SELECT nope FROM cells", "SELECT * FROM nope", "SELECT cells.nope FROM cells"])
def test_an_error_names_what_there_is(sql):
    """The tables with their columns."""
    with pytest.raises(UsageError, match="nope") as refused:
        ask(CELLS, sql)
    assert "  contrasts: source, reading, name, test" in str(refused.value)
    assert "  probes: source, probe, language" in str(refused.value)


def test_no_figure_is_no_number():
    """What SQL makes infinite, or no number, is missing, and is counted; nested ones too."""
    answer = ask(CELLS, "SELECT 'nan'::DOUBLE, '-inf'::DOUBLE, ['inf'::DOUBLE, 1.5], {'a': 'nan'::DOUBLE}, 2.5")
    assert answer.rows == ((None, None, [None, 1.5], {"a": None}, 2.5),)
    assert answer.not_finite == 4
    assert answer_text(answer).splitlines()[1].split() == ["-", "-", "[null,", "1.5]", '{"a":', "null}", "2.5"]
    assert answer_csv(answer).splitlines()[1] == ',,"[null, 1.5]","{""a"": null}",2.5'
    json.dumps(answer_json(answer), allow_nan=False)


def test_values_of_every_type_can_be_printed():
    """Dates and bytes are words, decimals and big numbers are numbers; JSON takes them all."""
    answer = ask(CELLS, "SELECT DATE '2026-12-01', 1.50::DECIMAL(4,2), '\\xAA'::BLOB, 12345678901234567890::HUGEINT")
    assert answer.rows == (("2026-12-01", 1.5, "aa", 12345678901234567890),)
    json.dumps(answer_json(answer), allow_nan=False)


def test_an_answer_as_text():
    """Columns are aligned, figures to the right; what is missing is a dash, and no name does anything."""
    answer = ask(CELLS, "SELECT arm, count(*) AS n, NULL AS x FROM cells GROUP BY arm ORDER BY arm")
    assert answer_text(answer) == "arm       n  x\nplain    30  -\ntreated  30  -\n(2 rows)"
    assert "\\x1b" in answer_text(ask(CELLS, "SELECT chr(27) || '[2J' AS a"))
    assert answer_text(ask(CELLS, "SELECT 1 AS a WHERE false")) == "a\n(0 rows)"


def test_an_answer_as_csv_has_no_formula():
    """Names of tasks, and of columns that the SQL chose."""
    answer = ask(hostile_tables(), """SELECT task AS "=task", NULL AS none FROM cells WHERE task LIKE '=1%' LIMIT 1""")
    assert answer_csv(answer) == "'=task,none\n'=1+1,\n"
