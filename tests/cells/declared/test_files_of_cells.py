"""CSV, JSON Lines and Parquet give the same cells; what can't be read as it was said to be is told with its place."""

import csv
import json

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cells.declared.making import cells_of
from cells.declared.source import Source
from harness.errors import DeclarationError
from harness.values import Declared, ExactPrice, Halt, LowerBoundPrice, VoidPrice

FIELDS = (
    "id",
    "run",
    "task",
    "arm",
    "end",
    "reading",
    "usd",
    "lower_bound",
    "tokens",
    "wall_s",
    "attempt",
    "replicate",
)
ROW = ("c1", "r", "LRU", "plain", "LANDED", "PASS", "1.5", "False", "10", "2.5", "1", "1")


def source(**changes):
    """A source whose columns are called as the fields are."""
    return Source.model_validate(
        {
            "columns": {name: name for name in FIELDS},
            "constants": {"benchmark": "made", "extras": "none", "model": "m"},
            "ends": {"LANDED": "DECLARED", "CAP": "HALT(usd)", "BOOT": "FAILED_BOOT", "LOST": "VOID(network)"},
            "verdicts": {"PASS": "accepted", "FAIL": "rejected", "?!": {"reading": "ODD", "standing": "unscorable"}},
        }
        | changes
    )


def read(tmp_path, data, name="cells.csv", **changes):
    """The cells of a file with this text or these bytes."""
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return list(cells_of(path, source(**changes)))


def table(*rows, header=FIELDS):
    """CSV text of a header and rows."""
    return "".join(",".join(row) + "\n" for row in (header, *rows))


def row(**values):
    """The usual row with some of its values changed."""
    return tuple(values.get(name, usual) for name, usual in zip(FIELDS, ROW, strict=True))


def test_a_row_is_a_cell(tmp_path):
    """Every column ends up in its field."""
    (cell,) = read(tmp_path, table(row(lower_bound="True")))
    assert str(cell.cell) == "r/c1"
    assert cell.cell.condition == ("made", "LRU", "plain", "none", "m")
    assert (cell.end, cell.outcome_class, cell.passed) == (Declared(), "PASS", True)
    assert cell.spend.price == LowerBoundPrice(usd=1.5, reason="the source says so")
    assert (cell.spend.tokens, cell.spend.calls, cell.spend.wall_s, cell.cell.replicate) == (10, None, 2.5, 1)


def test_what_is_not_said_is_unknown_and_never_zero(tmp_path):
    """Empty figures are None, an empty price is void, an empty replicate is none; an empty attempt is the first."""
    (cell,) = read(tmp_path, table(row(usd="", lower_bound="", tokens="", wall_s="", attempt="", replicate="")))
    assert isinstance(cell.spend.price, VoidPrice)
    assert (cell.spend.tokens, cell.spend.wall_s, cell.cell.replicate, cell.attempt) == (None, None, None, 1)
    (cell,) = read(tmp_path, table(row(usd="n/a")), missing=["n/a"])
    assert isinstance(cell.spend.price, VoidPrice)


def test_the_end_decides_before_the_verdict(tmp_path):
    """A failed boot has no verdict whatever the suite said, a halt's is what would have been; 0 beside a boot is void."""
    boot, halt, void = read(
        tmp_path,
        table(
            row(end="BOOT", reading="FAIL", usd="0.00"), row(id="c2", end="CAP"), row(id="c3", end="LOST", reading="x")
        ),
    )
    assert (boot.outcome_class, boot.verdict, boot.would_be) == ("FAILED_BOOT", None, None)
    assert isinstance(boot.spend.price, VoidPrice)
    assert isinstance(halt.end, Halt)
    assert (halt.end.limit, halt.end.bound, halt.would_be.reading, halt.passed) == ("usd", None, "PASS", None)
    assert (void.outcome_class, void.end.cause, void.end.detail) == ("VOID", "network", "LOST")


def test_one_column_may_say_end_and_verdict(tmp_path):
    """A table with one word a cell: PASS ends by itself and passes, CAP halts, and its word is no verdict."""
    columns = {name: name for name in FIELDS} | {"reading": "end"}
    ends = {"PASS": "DECLARED", "CAP": "HALT(tokens)"}
    text = table(row(end="PASS"), row(id="c2", end="CAP"))
    done, halted = read(tmp_path, text, columns=columns, ends=ends)
    assert (done.passed, halted.would_be) == (True, None)


def test_cents_are_a_registered_rounding(tmp_path):
    """The same column raw, and in whole cents with a half to the even one."""
    text = table(row(usd="5.358154900000001"), row(id="c2", usd="0.125"), row(id="c3", usd="0.135"))
    assert [cell.spend.price.usd for cell in read(tmp_path, text)] == [5.358154900000001, 0.125, 0.135]
    assert [cell.spend.price.usd for cell in read(tmp_path, text, rounding="cents")] == [5.36, 0.12, 0.14]


def test_spellings_of_other_tables(tmp_path):
    """Semicolons, decimal commas, other words for yes; a byte-order mark, CRLF, CR, quoted newlines, empty lines."""
    text = (
        table(row(usd="1,5", wall_s="2,5", lower_bound="ja"))
        .replace(",", ";")
        .replace("1;5", "1,5")
        .replace("2;5", "2,5")
    )
    (cell,) = read(tmp_path, text, delimiter=";", decimal=",", yes=["ja"], no=["nein"])
    assert cell.spend.price == LowerBoundPrice(usd=1.5, reason="the source says so")
    plain = read(tmp_path, table(ROW))
    for changed in (
        "﻿" + table(ROW),
        table(ROW).replace("\n", "\r\n"),
        table(ROW).replace("\n", "\r"),
        table(ROW) + "\n\n",
    ):
        assert read(tmp_path, changed) == plain
    (cell,) = read(tmp_path, table((*ROW, '"two\nlines"'), header=(*FIELDS, "note")), labels={"why": "note"})
    assert cell.labels == {"why": "two\nlines"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty: expected a header"),
        (b"\xff\xfei\x00d\x00", "is not UTF-8 text, at byte 0"),
        (table(ROW, header=("id", "id", *FIELDS[2:])), "the column 'id' is there more than once"),
        (table(ROW, header=("id", "runs", *FIELDS[2:])), "unknown column 'run'. Did you mean 'runs'?"),
        (table(ROW[:-1]), "line 2: 11 fields: expected 12, as in the header"),
        (table((*ROW, "x")), "line 2: 13 fields: expected 12"),
        (table(row(task='"a\nb'), ROW), "no CSV: unexpected end of data"),
        (
            table(ROW, row(end="ODD")),
            "line 3, column 'end': 'ODD' stands in no line of `ends`: expected one of 'LANDED'",
        ),
        (table(ROW, row(end="landed")), "'landed' stands in no line of `ends`"),
        (table(row(reading="pass")), "line 2, column 'reading': 'pass' stands in no line of `verdicts`"),
        (table(row(reading="")), "column 'reading': nothing: expected the reading of every row"),
        (table(row(id="")), "column 'id': nothing: expected the id of every row"),
        (table(row(arm="")), "column 'arm': nothing: expected the arm of every row"),
        (table(row(task="a|b")), "column 'task': task is 'a|b'"),
        (table(row(task='"a\nb"')), "column 'task': task is 'a\\nb'"),
        (table(row(id='"a\nb"')), "column 'id': id is 'a\\nb': expected a name that prints on one line"),
        (table(row(usd="cheap")), "line 2, column 'usd': 'cheap': expected a number such as 12.5"),
        (table(row(usd="NaN")), "column 'usd': 'NaN': expected a number"),
        (table(row(usd="inf")), "column 'usd': 'inf': expected a number"),
        (table(row(usd="-1")), "column 'usd': '-1': expected 0 or more"),
        (table(row(usd="1e999")), "column 'usd': '1e999': expected a finite number"),
        (table(row(usd="1e308")), "column 'usd': '1e308': expected 0, or a number from 1e-18 to 1e+18"),
        (table(row(wall_s="1e-300")), "column 'wall_s': '1e-300': expected 0, or a number from 1e-18 to 1e+18"),
        (table(row(usd="1e-999")), "column 'usd': '1e-999': expected 0, or a number from 1e-18 to 1e+18"),
        (table(row(task="a\x00b")), "column 'task': task is 'a\\x00b': expected a name that prints on one line"),
        (table(row(arm="\x1b[31mB")), "column 'arm': arm is '\\x1b[31mB': expected a name that prints on one line"),
        (table(row(usd="1_000")), "column 'usd': '1_000': expected a number"),
        (table(row(usd="$1")), "column 'usd': '$1': expected a number"),
        (table(row(lower_bound="maybe")), "column 'lower_bound': 'maybe': expected yes or no, as one of 'True'"),
        (table(row(tokens="1.5")), "column 'tokens': '1.5': expected a whole number"),
        (table(row(tokens="9" * 30)), "column 'tokens'"),
        (table(row(replicate="0")), "column 'replicate': '0': expected a whole number of 1 or more"),
        (table(row(attempt="0")), "column 'attempt': '0': expected a whole number of 1 or more"),
    ],
)
def test_a_csv_file_that_is_not_what_was_said_is_refused_with_its_place(tmp_path, data, said):
    """File, line and column stand in the message, with the value and what was expected."""
    with pytest.raises(DeclarationError) as caught:
        read(tmp_path, data)
    assert str(tmp_path / "cells.csv") in str(caught.value)
    assert said in str(caught.value)


def test_a_place_is_a_line_of_the_file_even_after_a_quoted_newline(tmp_path):
    """The bad row starts on line 4, since the one before it takes two."""
    text = table((*ROW, '"two\nlines"'), (*row(usd="x"), "one"), header=(*FIELDS, "note"))
    with pytest.raises(DeclarationError, match="line 4, column 'usd'"):
        read(tmp_path, text)


def test_the_first_twenty_bad_rows_are_named(tmp_path):
    """A column that is wrong throughout is told in a few lines, and no cell comes after a bad one."""
    with pytest.raises(DeclarationError) as caught:
        read(tmp_path, table(*(row(id=f"c{number}", usd="x") for number in range(100))))
    assert len(str(caught.value).splitlines()) == 21
    cells = cells_of(tmp_path / "cells.csv", source())
    with pytest.raises(DeclarationError):
        next(cells)


def jsonl(*rows):
    """JSON Lines of dicts."""
    return "".join(json.dumps(item) + "\n" for item in rows)


DICT = dict(zip(FIELDS, ("c1", "r", "LRU", "plain", "LANDED", "PASS", 1.5, False, 10, 2.5, 1, 1), strict=True))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("[1]\n", "line 1: [1]: expected a JSON object"),
        ("{}}\n", "line 1: no JSON object of a row"),
        ('{"id": 1, "id": 2}\n', "line 1: no JSON object of a row: the key 'id' is there more than once"),
        (jsonl(DICT) + '{"usd": NaN}\n', "line 2: no JSON object of a row: NaN is no number"),
        (jsonl(DICT | {"usd": "x"}), "line 1, column 'usd': 'x': expected a number"),
        (jsonl(DICT | {"usd": True}), "column 'usd': True: expected a number"),
        (jsonl(DICT).replace("1.5", "1e999"), "column 'usd': inf: expected a finite number"),
        (jsonl(DICT | {"id": ["c"]}), "column 'id': ['c']: expected text"),
        (jsonl(DICT | {"usd": "", "tokens": [1]}), "column 'tokens': [1]: expected a number"),
        (jsonl(DICT | {"arm": None}), "column 'arm': nothing"),
        (jsonl(DICT | {"arm": {"a": 1}}), "column 'arm': {'a': 1}: expected text"),
        (jsonl({name: value for name, value in DICT.items() if name != "usd"}), "unknown column 'usd'"),
        ("[" * 100_000, "line 1: no JSON object of a row: nested too deeply"),
        (jsonl(DICT).replace("1.5", "1e-999"), "line 1: no JSON object of a row: 1e-999 is too small to tell from 0"),
        (jsonl(DICT).replace("1.5", "9" * 5000), "line 1: no JSON object of a row: a whole number of too many digits"),
        (jsonl(DICT | {"task": "\ud800"}), r"line 1: no JSON object of a row: \ud800 is half a character"),
        (jsonl(DICT | {"note": {"\udfff": 1}}), r"line 1: no JSON object of a row: \udfff is half a character"),
    ],
)
def test_json_lines_that_are_not_what_was_said_are_refused(tmp_path, data, said):
    """As with CSV; a key that no line has is a wrong name."""
    with pytest.raises(DeclarationError) as caught:
        read(tmp_path, data, name="cells.jsonl")
    assert said in str(caught.value)


def test_a_pair_of_halves_is_a_character_and_a_small_number_is_one(tmp_path):
    """What JSON writes as two escapes is one character, and what is written as text is no escape; -0 is 0."""
    text = jsonl(DICT | {"task": "\U0001f600", "arm": "\\ud800", "usd": -0.0, "wall_s": 1e-18})
    (cell,) = read(tmp_path, text, name="cells.jsonl")
    assert (cell.cell.task, cell.cell.arm, cell.spend.wall_s) == ("\U0001f600", "\\ud800", 1e-18)
    assert str(cell.spend.price.usd) == "0.0"
    (cell,) = read(tmp_path, table(row(usd="-0.00e9")))
    assert str(cell.spend.price.usd) == "0.0"


def test_words_may_be_numbers_and_equal_ones_of_two_types_are_not_one(tmp_path):
    """1 and true are equal in Python; here they are two words."""
    words = {"verdicts": {"1": "accepted", "true": {"reading": "TRUE", "standing": "rejected"}}}
    cells = read(tmp_path, jsonl(DICT | {"reading": 1}, DICT | {"id": "c2", "reading": True}), name="c.jsonl", **words)
    assert [cell.passed for cell in cells] == [True, False]


def parquet(path, select):
    """A Parquet file of what a query gives."""
    with duckdb.connect() as base:
        base.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")


SELECT = (
    "SELECT 'c1' AS id, 'r' AS run, 'LRU' AS task, 'plain' AS arm, 'LANDED' AS end, 'PASS' AS reading, {usd} AS usd, "
    "false AS lower_bound, 10.0 AS tokens, 2.5 AS wall_s, 1 AS attempt, 1 AS replicate"
)


def test_parquet_with_its_own_types(tmp_path):
    """Doubles, decimals, and whole numbers that a table with gaps keeps as doubles."""
    for usd in ("1.5::double", "1.5::decimal(9,2)", "1.5::float"):
        parquet(tmp_path / "a [1].parquet", SELECT.format(usd=usd))
        (cell,) = cells_of(tmp_path / "a [1].parquet", source())
        assert (cell.spend.price, cell.spend.tokens) == (ExactPrice(usd=1.5), 10)


@pytest.mark.parametrize(
    ("select", "said"),
    [
        (SELECT.format(usd="'nan'::double"), "row 1, column 'usd': nan: expected a finite number"),
        (SELECT.format(usd="-1.0::double"), "row 1, column 'usd': -1.0: expected 0 or more"),
        (SELECT.format(usd="[1.0::double]"), "row 1, column 'usd': [1.0]: expected a number"),
        (SELECT.format(usd="1.0").replace(" AS id", " AS cell"), "unknown column 'id'"),
    ],
)
def test_parquet_that_is_not_what_was_said_is_refused(tmp_path, select, said):
    """With the row, counted from 1."""
    parquet(tmp_path / "cells.parquet", select)
    with pytest.raises(DeclarationError) as caught:
        list(cells_of(tmp_path / "cells.parquet", source()))
    assert said in str(caught.value)


def test_files_that_are_none(tmp_path):
    """A file that is not there, one of an unknown kind, and one that is no Parquet."""
    for name in ("gone.csv", "gone.parquet"):
        with pytest.raises(DeclarationError, match="does not exist"):
            list(cells_of(tmp_path / name, source()))
    with pytest.raises(DeclarationError, match=r"its name ends in '.xls': expected one of .csv"):
        read(tmp_path, "x", name="cells.xls")
    with pytest.raises(DeclarationError, match="is no Parquet file that can be read"):
        read(tmp_path, "x" * 100, name="cells.parquet")


WORDS = st.text("ab1 äλ漢🙂-_.,;:\"'\\/%#=+@?*[", min_size=1, max_size=6).filter(lambda text: text == text.strip())
NUMBERS = st.none() | st.just(0.0) | st.floats(1e-18, 1e6)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "id": WORDS,
            "run": WORDS,
            "task": WORDS,
            "arm": WORDS,
            "end": st.sampled_from(["LANDED", "CAP", "BOOT", "LOST"]),
            "reading": st.sampled_from(["PASS", "FAIL", "?!"]),
            "usd": NUMBERS,
            "lower_bound": st.none() | st.booleans(),
            "tokens": st.none() | st.integers(0, 2**53),
            "wall_s": NUMBERS,
            "attempt": st.integers(1, 9),
            "replicate": st.none() | st.integers(1, 99),
        }
    ),
    min_size=1,
    max_size=6,
)


TYPED = (
    'id VARCHAR, run VARCHAR, task VARCHAR, arm VARCHAR, "end" VARCHAR, reading VARCHAR, usd DOUBLE, '
    "lower_bound BOOLEAN, tokens BIGINT, wall_s DOUBLE, attempt BIGINT, replicate BIGINT"
)
ROW_OF = f"({', '.join('?' * len(FIELDS))})"


@pytest.fixture(scope="module")
def base():
    """One database in memory, with a table as wide as the fields."""
    with duckdb.connect(config={"threads": 1}) as base:
        base.execute(f"CREATE TABLE t ({TYPED})")
        yield base


@settings(max_examples=15, deadline=None)
@given(records=RECORDS)
def test_the_three_formats_give_the_same_cells(tmp_path_factory, base, records):
    """Whatever the names and figures, a CSV file, JSON Lines and Parquet of one table are the same cells in its order."""
    folder = tmp_path_factory.mktemp("formats")
    with (folder / "c.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(records)
    (folder / "c.jsonl").write_text(jsonl(*records), "utf-8")
    base.execute("DELETE FROM t")
    marks = ", ".join([ROW_OF] * len(records))
    base.execute(f"INSERT INTO t VALUES {marks}", [item[name] for item in records for name in FIELDS])  # noqa: S608
    base.execute(f"COPY t TO '{folder / 'c.parquet'}' (FORMAT parquet)")
    one, two, three = (list(cells_of(folder / f"c.{kind}", source())) for kind in ("csv", "jsonl", "parquet"))
    assert one == two
    assert one == three
    assert [cell.cell.id for cell in one] == [record["id"] for record in records]
