"""`proctor report`, `export` and `query` on a finished run, by their exit codes, paths and words."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.run import run
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run
from tests.cells.test_cli import proctor

__all__ = ["proctor"]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on fakes, which no test here changes."""
    folder = tmp_path_factory.mktemp("played")

    async def make() -> Path:
        with pytest.MonkeyPatch.context() as patch, fakes(patch, fake_backend(folder)):
            frozen = await frozen_run(folder)
            await run(frozen.folder, watcher=Quiet())
        return frozen.folder

    return anyio.run(make)


def test_a_report_is_two_files(proctor: Any, played: Path, tmp_path: Path) -> None:
    """Markdown and page; made again they are the same bytes."""
    report = proctor("report", played, "--out", tmp_path / "there", "--json")
    assert report.code == 0
    assert {name: Path(path).name for name, path in report.json.items()} == {"md": "report.md", "html": "report.html"}
    page = Path(report.json["html"]).read_bytes()
    assert b"<h1>Report: fake</h1>" in page
    assert proctor("report", played, "--out", tmp_path / "there").out.splitlines() == list(report.json.values())[::-1]
    assert Path(report.json["html"]).read_bytes() == page


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_tables_are_ten_files(proctor: Any, played: Path, tmp_path: Path, form: str) -> None:
    """With as many rows as are said."""
    ended = proctor("export", played, "--to", tmp_path, "--format", form, "--json")
    assert ended.code == 0
    assert len(list(tmp_path.iterdir())) == len(ended.json) == 10
    assert ended.json["cells"] == {"path": str(tmp_path / f"cells.{form}"), "rows": 6}
    if form == "csv":
        with (tmp_path / "cells.csv").open(encoding="utf-8", newline="") as file:
            assert [row["class"] for row in csv.DictReader(file)] == ["PASS"] * 6


SQL = "SELECT arm, count(*) AS n FROM cells GROUP BY arm ORDER BY arm"


@pytest.mark.parametrize(
    ("form", "out"), [((), "arm  n\nB    3\nP    3\n(2 rows)\n"), (("--csv",), "arm,n\nB,3\nP,3\n")]
)
def test_an_answer_is_printed(proctor: Any, played: Path, form: tuple[str, ...], out: str) -> None:
    """As a table and as CSV; standard output is the answer alone."""
    assert proctor("query", played, SQL, *form).out == out


def test_what_is_no_number_is_said(proctor: Any, played: Path) -> None:
    """On standard error, so that a script reads the JSON alone."""
    ended = proctor("query", played, "SELECT 'nan'::DOUBLE AS x", "--json")
    assert ended.json == {"columns": ["x"], "rows": [[None]], "not_finite": 1}
    assert ended.err == "1 figures were infinite or no numbers: they are shown as missing\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("export", "RUN", "--to", "TMP", "--format", "xlsx"), "format 'xlsx': expected csv or parquet"),
        (("export", "--to", "TMP"), "no run was named"),
        (("query", "SELECT 1"), "no run was named"),
        (("query", "RUN", "RUN", "SELECT 1"), "is named twice: its cells would be counted twice"),
        (("query", "RUN", "COPY", "SELECT 1"), "is named twice"),
        (("query", "RUN", "SELECT 1", "--cells", "x.csv"), "--cells x.csv without --declaration"),
        (("query", "RUN", "SELECT 1", "--csv", "--json"), "--csv and --json: expected one of them"),
        (("query", "RUN", "SELECT nope FROM cells"), "The tables and their columns:"),
        (("query", "RUN", "DROP TABLE cells"), "expected one SELECT"),
        (("report", "RUN", "--out", "TMP/file"), "name another folder by --out"),
    ],
)
def test_what_can_not_be_asked_is_told(
    proctor: Any, played: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """With what was expected, and code 2. A copy of a run is the same run: nothing tells their cells apart."""
    (tmp_path / "file").write_text("x", "utf-8")
    if "COPY" in words:
        shutil.copytree(played, tmp_path / "copy")
    places = {"RUN": played, "COPY": tmp_path / "copy", "TMP": tmp_path, "TMP/file": tmp_path / "file"}
    ended = proctor(*(places.get(word, word) for word in words))
    assert (ended.code, said in ended.err) == (2, True), ended.err


def test_json_of_an_empty_answer(proctor: Any, played: Path) -> None:
    """No row is an empty list."""
    ended = proctor("query", played, "SELECT task FROM cells WHERE false", "--json")
    assert json.loads(ended.out)["rows"] == []
