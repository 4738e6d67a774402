"""`proctor import` writes rows that a declaration takes as they are, and says what became what."""

import json

import pytest
from typer.testing import CliRunner

from cells.cli import app
from cells.declared.declaration import load_declaration
from cells.declared.opening import open_cells, read_declared
from harness.errors import DeclarationError, UsageError
from tests.cells.imports.foreign_writers import eval_log, header, job, sample, trial

LIMIT = {"type": "token", "limit": 60.0}
BROKE = {"message": "RuntimeError('planted')"}


def call(*arguments):
    """A command's exit code and output; an error of ours comes out as it is."""
    result = CliRunner().invoke(app, [*map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def log(path, arm, scores, **more):
    """A log of one arm with a sample a score; None is one that broke."""
    head = header([f"s{number}" for number, _ in enumerate(scores)], eval_id=f"eval-{arm}", **more)
    head["eval"]["eval_id"], head["eval"]["task_args"] = f"eval-{arm}", {"arm": arm}
    samples = [
        sample(
            f"s{number}",
            score=score.strip("!") if score else None,
            uuid=f"{arm}-{number}",
            limit=LIMIT if score and score.endswith("!") else None,
            error=None if score else BROKE,
        )
        for number, score in enumerate(scores)
    ]
    return eval_log(path, head, samples)


def two_logs(tmp_path):
    """Two arms over five tasks: one halt on either side, one void."""
    return (
        log(tmp_path / "a.eval", "A", ["C", "C", "C", "I!", "C"]),
        log(tmp_path / "b.eval", "B", ["I", "I", "C", "C", None]),
    )


CONTRAST = """
[[analysis.contrasts]]
name = "C1"
treatment = "A"
control = "B"
"""


def pairs_of(board):
    """The counts of the one contrast."""
    (contrast,) = board.contrasts
    pairs = contrast.pairs
    return pairs.treatment_only, pairs.control_only, pairs.both, pairs.halted, pairs.without_verdict


def test_logs_are_imported_declared_and_scored(tmp_path):
    """From Inspect's logs to a contrast: halts and voids make no pair discordant."""
    cells, declaration = tmp_path / "cells.jsonl", tmp_path / "d.toml"
    code, output = call("import", "inspect", *two_logs(tmp_path), "--out", cells, "--place", "arm=eval.task_args.arm")
    assert code == 0
    assert "10 of 10 planned results, in 10 rows" in output
    assert "1  HALT(tokens)" in output
    assert "unknown: RuntimeError 1" in output
    code, output = call("declare", cells, declaration)
    assert [line for line in output.splitlines() if line.startswith("to be said")] == ["to be said: question"]
    declaration.write_text(declaration.read_text().replace('"?"', '"Does it help?"') + CONTRAST)
    found = read_declared(declaration)
    assert found.final
    assert pairs_of(found.readings[0].board) == (2, 0, 1, 1, 1)


def test_a_declaration_reads_logs_itself(tmp_path):
    """With the same figures as through the file; the logs' digests are told, and can be pinned."""
    logs = two_logs(tmp_path)
    names = [f"eval-{arm}/s{number}_epoch_1" for arm in "AB" for number in range(5)]
    text = f"""
question = "Does it help?"
[[imports]]
importer = "inspect"
paths = {[each.name for each in logs]}
[imports.options.places]
arm = "eval.task_args.arm"
{CONTRAST}
[[readings]]
name = "all"
cells = {names}
"""
    path = tmp_path / "d.toml"
    path.write_text(text)
    found = read_declared(path)
    assert found.final
    assert pairs_of(found.readings[0].board) == (2, 0, 1, 1, 1)
    assert set(found.sources) == {str(each) for each in logs}
    digests = [found.sources[str(each)] for each in logs]
    path.write_text(text.replace('importer = "inspect"', f'importer = "inspect"\nsha256 = {digests}'))
    assert read_declared(path).final
    path.write_text(text.replace('importer = "inspect"', f'importer = "inspect"\nsha256 = {digests[::-1]}'))
    with pytest.raises(DeclarationError, match="is not the file that was declared"):
        read_declared(path)


def test_the_file_says_what_the_import_said(tmp_path):
    """Every cell of a job and of a log, read back from the rows, is the cell: but for the words on its end."""
    folder = job(
        tmp_path / "j", [trial("a__a"), trial("b__b", reward=0, raised="AgentTimeoutError"), trial("c__c", reward=0)]
    )
    cells, declaration = tmp_path / "cells.jsonl", tmp_path / "d.toml"
    assert call("import", "harbor", folder, "--out", cells)[0] == 0
    call("declare", cells, declaration)
    declaration.write_text(declaration.read_text().replace('"?"', '"Is it the same?"'))
    found, _ = load_declaration(declaration)
    back = {cell.cell.id: cell for cell in open_cells(found, tmp_path).cells}
    assert {name: cell.outcome_class for name, cell in back.items()} == {"a__a": "PASS", "b__b": "HALT", "c__c": "FAIL"}
    assert back["b__b"].would_be.reading == "FAIL"
    assert [cell.spend.price.kind for cell in back.values()] == ["exact", "lower_bound", "exact"]
    assert {cell.spend.tokens for cell in back.values()} == {120}


def test_what_was_planned_and_left_nothing_ends_with_1(tmp_path):
    """The cells are written; what is absent is named, and the JSON has all of the census."""
    path = log(tmp_path / "a.eval", "A", ["C", "I"], total=4)
    code, output = call("import", "inspect", path, "--out", tmp_path / "cells.jsonl", "--json")
    census = json.loads(output)
    assert (code, census["planned"], census["results"], census["absent"]) == (1, 4, 2, 2)
    assert len((tmp_path / "cells.jsonl").read_text().splitlines()) == 2
    code, output = call("import", "inspect", path, "--out", tmp_path / "more.jsonl")
    assert (code, "2 planned and without a result" in output) == (1, True)


def test_nothing_is_written_of_what_is_refused(tmp_path):
    """Nor is a file overwritten."""
    folder = job(tmp_path / "j", [trial("a__a"), trial("b__b", reward=0.5)])
    out = tmp_path / "cells.jsonl"
    with pytest.raises(DeclarationError, match="option at_least"):
        call("import", "harbor", folder, "--out", out)
    assert [path.name for path in tmp_path.iterdir()] == ["j"]
    assert call("import", "harbor", folder, "--out", out, "--at-least", "0.5")[0] == 0
    before = out.read_bytes()
    with pytest.raises(DeclarationError, match="is there already"):
        call("import", "harbor", folder, "--out", out, "--at-least", "0.5")
    assert before == out.read_bytes()


def test_options_come_from_a_file_and_the_command_line_goes_before(tmp_path):
    """Table by table; what is neither is refused by name."""
    options = tmp_path / "options.toml"
    options.write_text('at_least = 0.9\n[constants]\narm = "X"\nmodel = "m"\n[ends]\nOdd = "VOID(harness)"\n')
    folder = job(tmp_path / "j", [trial("a__a", reward=0.5), trial("b__b", raised="Odd")])
    out = tmp_path / "cells.jsonl"
    given = ("--options", options, "--constant", "arm=Y", "--at-least", "0.5", "--end", "Else=HALT(wall)")
    assert call("import", "harbor", folder, "--out", out, *given)[0] == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["arm"], row["model"], row["end"], row["reading"]) for row in rows] == [
        ("Y", "m", "DECLARED", "PASS"),
        ("Y", "m", "VOID(harness)", None),
    ]
    options.write_text("at_least = 0.9\nscorer = 'x'\n")
    with pytest.raises(DeclarationError, match="unknown key 'scorer'"):
        call("import", "harbor", folder, "--out", tmp_path / "2.jsonl", "--options", options)
    options.write_text("at_least = \n")
    with pytest.raises(DeclarationError, match="can't be read as TOML"):
        call("import", "harbor", folder, "--out", tmp_path / "2.jsonl", "--options", options)
    with pytest.raises(UsageError, match="constant 'arm': expected a name, an equals sign and a value"):
        call("import", "harbor", folder, "--out", tmp_path / "2.jsonl", "--constant", "arm")
