"""`proctor score --declaration` and `proctor declare`: what they print, and how they end."""

import json

import anyio
import pytest

from cells.cli import app
from cells.declared.declaration import load_declaration, parse_declaration
from cells.declared.draft import draft
from cells.declared.naming import sets_of
from cells.declared.opening import open_cells, read_declared
from cells.run import run
from harness.errors import DeclarationError, UsageError
from harness.registration import load_registration
from tests.cells.declared.sets import DECLARATION, HEADER, ROWS, written
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run


def proctor(*words):
    """Run a command in this process; its exit code."""
    with pytest.raises(SystemExit) as ended:
        app([*map(str, words)])
    return ended.value.code


def test_the_command_prints_disagreements_first_and_ends_well(tmp_path, capsys):
    """0 where every reading is final, whether or not they agree."""
    assert proctor("score", "--declaration", written(tmp_path)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("the readings disagree")
    assert any(line.startswith("reading first") for line in lines)


def test_json_is_one_document(tmp_path, capsys):
    """For scripts."""
    assert proctor("score", "--declaration", written(tmp_path), "--json") == 0
    assert [reading["name"] for reading in json.loads(capsys.readouterr().out)["readings"]] == ["all", "first"]


def test_a_missing_cell_ends_with_1_and_is_named(tmp_path, capsys):
    """The comparison is refused."""
    path = written(tmp_path, rows=ROWS.rpartition("\n")[0])
    assert proctor("score", "--declaration", path) == 1
    assert "- missing cell r2/a1" in capsys.readouterr().out


def test_files_may_be_given_in_place_of_the_declarations_own(tmp_path, capsys):
    """Two files of one kind hold the set together."""
    path = written(tmp_path, rows="", declaration=DECLARATION.replace('files = ["cells.csv"]\n', ""))
    rows = ROWS.splitlines()
    for name, part in (("one.csv", rows[:3]), ("two.csv", rows[3:])):
        (tmp_path / name).write_text("\n".join([HEADER, *part]), "utf-8")
    cells = ("--cells", tmp_path / "one.csv", "--cells", tmp_path / "two.csv")
    assert proctor("score", *cells, "--declaration", path) == 0
    assert f"source {tmp_path / 'two.csv'}, SHA-256 " in capsys.readouterr().out


def test_cells_need_a_declaration():
    """The message says how to get one."""
    with pytest.raises(UsageError, match=r"--cells c.csv without --declaration: .*`proctor declare c.csv"):
        app(["score", "--cells", "c.csv"], standalone_mode=False)
    with pytest.raises(UsageError, match="0 runs: expected one, or --declaration"):
        app(["score"], standalone_mode=False)


def test_a_declaration_without_cells_is_told(tmp_path):
    """Nothing was named to read."""
    path = written(tmp_path, declaration=DECLARATION.replace('files = ["cells.csv"]\n', ""))
    with pytest.raises(DeclarationError, match="names no cells: expected `sources` with files, `runs` or `imports`"):
        read_declared(path)
    with pytest.raises(DeclarationError, match=r"unknown importer 'harbour'\. Did you mean 'harbor'"):
        read_declared(
            written(tmp_path, declaration=DECLARATION + '\n[[imports]]\nimporter = "harbour"\npaths = ["x"]\n')
        )


def test_a_draft_names_every_cell_and_asks_for_the_rest(tmp_path, capsys):
    """It is refused as it stands, becomes a declaration once it is answered, and overwrites nothing."""
    written(tmp_path)
    out = tmp_path / "draft.toml"
    assert proctor("declare", tmp_path / "cells.csv", out) == 0
    said = capsys.readouterr().out
    assert "draft.toml: 6 cells, in one reading" in said
    assert "to be said: sources.constants.model" in said
    assert "to be said: sources.ends.CAP" in said
    with pytest.raises(DeclarationError, match=r"still has '\?' where something has to be said: question, "):
        load_declaration(out)
    text = out.read_text("utf-8").replace('"LANDED" = "?"', '"LANDED" = "DECLARED"').replace('reading = "end"', "")
    text = text.replace('"CAP" = "?"', '"CAP" = "HALT(usd)"').replace('"BOOT" = "?"', '"BOOT" = "FAILED_BOOT"')
    text = text.replace("[sources.columns]", '[sources.columns]\nreading = "suite"').replace('"?"', '"said"')
    text = text.replace("[sources.verdicts]", '[sources.verdicts]\nPASS = "accepted"\nFAIL = "rejected"')
    declaration = parse_declaration(text)
    (every,) = sets_of(declaration, tmp_path)
    assert sorted(every.cells) == sorted(cell.cell.name for cell in open_cells(declaration, tmp_path).cells)
    with pytest.raises(DeclarationError, match="is there already"):
        app(["declare", str(tmp_path / "cells.csv"), str(out)], standalone_mode=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run on fakes."""
    folder = tmp_path_factory.mktemp("finished")

    async def make():
        with pytest.MonkeyPatch.context() as patch, fakes(patch, fake_backend(folder)):
            frozen = await frozen_run(folder)
            await run(frozen.folder, watcher=Quiet())
        return frozen.folder

    return anyio.run(make)


def test_runs_of_our_own_have_declared_readings(finished, tmp_path, capsys):
    """The cells of a record, by the registration's id and their key, with and without one replicate's."""
    registration = load_registration(finished)
    names = [f"{registration.id}/{cell}" for cell in registration.cells]
    path = tmp_path / "d.toml"
    text = f'question = "As registered?"\n[[readings]]\nname = "all"\ncells = {json.dumps(names)}\n'
    path.write_text(text, "utf-8")
    assert proctor("score", finished, "--declaration", path) == 0
    assert f"{len(names)} declared" in capsys.readouterr().out
    path.write_text(
        text.replace("]\n", ', "elsewhere/x"]\n', 1) if "]\n[[" in text else text[:-2] + ', "elsewhere/x"]\n'
    )
    assert proctor("score", finished, "--declaration", path) == 1
    assert "missing cell elsewhere/x" in capsys.readouterr().out


def test_pins_are_written_and_hold(tmp_path, capsys):
    """The lists are of each reading's cells with a digest each, and need a declaration."""
    assert proctor("score", "--declaration", written(tmp_path), "--pins", tmp_path / "pins") == 0
    assert "written: " in capsys.readouterr().err
    lines = (tmp_path / "pins" / "all.cells.txt").read_text("utf-8").splitlines()
    assert [line.partition("\t")[0] for line in lines] == ["r1/a1", "r1/a2", "r1/a3", "r1/a4", "r1/a5", "r2/a1"]
    assert all(len(line.partition("\t")[2]) == 16 for line in lines)
    with pytest.raises(UsageError, match="--pins x without --declaration"):
        app(["score", "--pins", "x"], standalone_mode=False)


def test_bounds_that_were_told_expire_when_the_set_grows(tmp_path, capsys):
    """--since names each bound of an earlier output that is of another set, and says that all hold where they do."""
    path, stored = written(tmp_path), tmp_path / "stored.json"
    assert proctor("score", "--declaration", path, "--json") == 0
    stored.write_text(capsys.readouterr().out, "utf-8")
    assert proctor("score", "--declaration", path, "--since", stored) == 0
    assert capsys.readouterr().out.startswith(f"every bound of {stored} is of the set as it is\n")
    grown = path.read_text("utf-8").replace('"r1/a5"', '"r1/a5", "r1/a6"', 1)
    assert grown != path.read_text("utf-8")
    written(tmp_path, rows=f"{ROWS}\na6,r1,LZW,plain,LANDED,PASS,4.00,False,100,x", declaration=grown)
    assert proctor("score", "--declaration", path, "--since", stored) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == f"2 bounds of {stored} have expired, and hold for no set of today:"
    assert "- reading all: bounds of the pass rates: expired: taken over SET " in lines[0]
    assert lines[0].endswith("(7 cells)")
    assert proctor("score", "--declaration", path, "--since", stored, "--json") == 0
    assert [line.split(":")[0] for line in json.loads(capsys.readouterr().out)["expired"]] == [
        "reading all",
        "reading first",
    ]
    renamed = grown.replace('"first"', '"second"')
    written(tmp_path, rows=f"{ROWS}\na6,r1,LZW,plain,LANDED,PASS,4.00,False,100,x", declaration=renamed)
    assert proctor("score", "--declaration", path, "--since", stored) == 0
    assert "(5 cells), and it is declared no more" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"readings": [{}]}', '{"readings": 3}', '{"readings": [{"name": "all", "board": {}}]}']
)
def test_what_was_never_stored_is_refused(tmp_path, capsys, text):
    """A file that is no output of the command is named, and nothing is scored."""
    path, stored = written(tmp_path), tmp_path / "stored.json"
    stored.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=r"stored\.json .*expected"):
        app(["score", "--declaration", str(path), "--since", str(stored)])
    assert capsys.readouterr().out == ""


GUARDED = """
[[analysis.contrasts]]
name = "C1"
treatment = "diet"
control = "plain"
[[analysis.guards]]
name = "harm"
kind = "harm-gate"
contrast = "C1"
most = 0.1
"""


def test_a_guard_that_a_reading_can_not_read_is_named(tmp_path, capsys):
    """A reading that leaves out a guard's contrast says so, and does not drop the guard without a word."""
    narrow = DECLARATION.replace('name = "first"', 'name = "first"\ncomparisons = ["premium"]')
    path = written(tmp_path, declaration=narrow + GUARDED)
    proctor("score", "--declaration", path)
    lines = capsys.readouterr().out.splitlines()
    assert lines.count("guards not read, a contrast of theirs is not compared here: harm") == 1
    proctor("score", "--declaration", path, "--json")
    readings = json.loads(capsys.readouterr().out)["readings"]
    assert [reading["unread_guards"] for reading in readings] == [[], ["harm"]]


def test_a_first_declaration_that_can_not_be_written_leaves_nothing(tmp_path):
    """No folder, or a place for one of the two files alone: the message names it, and a next try is free."""
    cells = tmp_path / "cells.csv"
    cells.write_text("id,run,task,arm,end\na,r,t,A,DECLARED\n")
    with pytest.raises(DeclarationError, match=r"nodir/o.cells.txt can't be written: No such file"):
        draft(cells, tmp_path / "nodir" / "o.toml")
    out = tmp_path / "o.toml"
    out.symlink_to(tmp_path / "nodir" / "o.toml")
    with pytest.raises(DeclarationError, match=r"o.toml can't be written: No such file"):
        draft(cells, out)
    assert sorted(tmp_path.iterdir()) == [cells]
