"""`proctor referee new`, `list` and `check`: what they print, what they refuse, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cells.cli import app
from cells.referee_scaffold import new_referee
from harness import plugins
from harness.conformance.suite import RULES
from harness.errors import UsageError
from tests.cells.houses import fakes, write_experiment
from tests.fake_workspace import FakeBackend
from tests.referees.printed_answers import TASK_FOLDER, PrintedAnswersReferee, read_as_program


def run(*words: str) -> Result:
    """What the command did."""
    return CliRunner().invoke(app, ["referee", *words])


@pytest.mark.parametrize("name", ["", "Answers", "two words", "-x", "x-", "1x", "../x", "x_y", "x" * 41])
def test_a_bad_name_is_refused(tmp_path: Path, name: str) -> None:
    """The message says what a name looks like, and nothing is written."""
    with pytest.raises(UsageError, match="small letters"):
        new_referee(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_taken_name_and_a_folder_that_is_there_are_refused(tmp_path: Path) -> None:
    """Nothing is overwritten, and no name is had twice."""
    with pytest.raises(UsageError, match="is taken by"):
        new_referee("pytest", tmp_path)
    made = run("new", "printed-answers", "--folder", str(tmp_path))
    assert made.exit_code == 0
    assert "proctor referee check printed-answers --task" in made.stdout
    with pytest.raises(UsageError, match="exists"):
        new_referee("printed-answers", tmp_path)


def test_the_list_has_every_referee_with_its_classes() -> None:
    """For people and for scripts."""
    rows = json.loads(run("list", "--json").stdout)
    assert {row["name"] for row in rows} == set(plugins.table("referees"))
    (null,) = (row for row in rows if row["name"] == "null")
    assert (null["classes"], null["distribution"]) == ({"PASS": "accepted", "FAIL": "rejected"}, "proctor")
    assert "null: referees.null:NullReferee (proctor" in run("list").stdout


def test_a_referee_that_judges_nothing_is_refused_with_the_reasons(monkeypatch, tmp_path) -> None:
    """`null` says yes to whatever is there: exit code 3, a row a rule, and what was expected."""
    with fakes(monkeypatch, FakeBackend(name="docker")):
        ended = run("check", "null", "--task", str(TASK_FOLDER), "--backend", "docker")
    assert ended.exit_code == 3
    assert all(rule in ended.stdout for rule in RULES)
    assert "not believed: a candidate that exits with 0 was PASS (accepted)" in ended.stdout
    assert "suite digest tells changes: cases.toml was changed" in ended.stdout


def test_the_scaffolds_own_is_taken(monkeypatch) -> None:
    """Every rule held: exit code 0; its options come by the command line, as TOML."""
    backend = FakeBackend(name="docker", programs={"python3": read_as_program})
    monkeypatch.setitem(dict(plugins.table("referees")), "printed-answers", plugins.table("referees")["null"])
    words = ("printed-answers", "--task", str(TASK_FOLDER), "--backend", "docker", "--option", "wall_s=1.5", "--json")
    with fakes(monkeypatch, backend, **{"referees_printed-answers": PrintedAnswersReferee}):
        ended = run("check", *words)
    assert ended.exit_code == 0, ended.output
    (found,) = json.loads(ended.stdout)
    assert (found["conforms"], found["task"]) == (True, "printed-answers/total")
    assert [row["rule"] for row in found["rows"]] == list(RULES)


def test_what_it_is_checked_on_must_be_one_place(tmp_path) -> None:
    """A task folder or an experiment file: neither, both, and one of another referee are refused; so is no option."""
    for words in ((), ("--task", "a", "--experiment", "b")):
        ended = run("check", "null", *words)
        assert isinstance(ended.exception, UsageError)
    assert "KEY=VALUE" in str(run("check", "null", "--task", "a", "--option", "x").exception)
    twice = run("check", "null", "--task", "a", "--option", "x=1", "--option", "x=2").exception
    assert str(twice) == "--option x is given twice, as '1' and as '2': expected each once"


def test_a_package_goes_only_where_a_folder_can_be_made(tmp_path) -> None:
    """The option and what stands in the way are named."""
    (tmp_path / "file").write_text("x")
    ended = run("new", "mine", "--folder", str(tmp_path / "file"))
    assert isinstance(ended.exception, UsageError)
    assert "file/proctor-referee-mine can't be made: Not a directory. Name another --folder" in str(ended.exception)


def test_an_unknown_rule_is_refused_before_a_room_is_looked_for(monkeypatch) -> None:
    """With the known ones, and nothing said of a task."""
    with fakes(monkeypatch, FakeBackend(name="docker")):
        ended = run("check", "null", "--task", str(TASK_FOLDER), "--backend", "docker", "--rule", "nam")
    assert isinstance(ended.exception, UsageError)
    assert "unknown rule 'nam'. Did you mean 'name'?" in str(ended.exception)
    assert "null on" not in ended.stderr


def test_some_rules_alone_are_no_conformance(monkeypatch) -> None:
    """What was left out is said, for people and for scripts."""
    monkeypatch.setitem(dict(plugins.table("referees")), "printed-answers", plugins.table("referees")["null"])
    words = ("check", "printed-answers", "--task", str(TASK_FOLDER), "--backend", "docker", "--rule", "name")
    with fakes(monkeypatch, FakeBackend(name="docker"), **{"referees_printed-answers": PrintedAnswersReferee}):
        told, data = run(*words), run(*words, "--json")
    assert (
        f"printed-answers holds 1 of {len(RULES)} rules on printed-answers/total; the others were left out"
        in told.stdout
    )
    assert "conforms" not in told.stdout
    assert json.loads(data.stdout)[0]["left_out"] == [rule for rule in RULES if rule != "name"]


@pytest.mark.parametrize("bound", ["-1", "0", "nan", "inf"])
def test_a_bound_that_bounds_nothing_is_refused(bound: str) -> None:
    """Before any candidate is judged: every rule would be late, or none ever."""
    ended = run("check", "null", "--task", str(TASK_FOLDER), "--bound", bound)
    assert isinstance(ended.exception, UsageError)
    assert "--bound" in str(ended.exception)


def test_an_experiment_gives_tasks_options_and_arms(monkeypatch, tmp_path) -> None:
    """Its own referee is checked on each of its tasks, and another one is refused."""
    source = write_experiment(tmp_path)
    with fakes(monkeypatch, FakeBackend(name="docker")):
        ended = run("check", "null", "--experiment", str(source), "--json")
        other = run("check", "pytest", "--experiment", str(tmp_path))
    found = json.loads(ended.stdout)
    assert [one["task"] for one in found] == [f"tasks/Fake/{number}" for number in range(3)]
    (blind,) = (row for row in found[0]["rows"] if row["rule"] == "arm-blind")
    assert "with arm B named in files PASS" in blind["seen"]  # one more file is all that it goes by
    assert "is judged by 'null', and 'pytest' is to be checked" in str(other.exception)


def test_candidates_of_ones_own_are_read_from_a_folder(monkeypatch, tmp_path) -> None:
    """A folder each; an empty place is refused."""
    with fakes(monkeypatch, FakeBackend(name="docker")):
        words = ("check", "null", "--task", str(TASK_FOLDER), "--backend", "docker", "--hostile", str(tmp_path))
        assert "holds no folder" in str(run(*words).exception)
        for place in (tmp_path / "none", Path(__file__)):
            ended = run(*words[:-1], str(place))
            assert isinstance(ended.exception, UsageError)
            assert f"--hostile {place} is no folder" in str(ended.exception)
        (tmp_path / "spins").mkdir()
        (tmp_path / "spins" / "solution.py").write_text("while True: pass", "utf-8")
        assert "a candidate that spins was PASS" in json.loads(run(*words, "--json").stdout)[0]["rows"][13]["seen"]
