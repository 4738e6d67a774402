"""`proctor task check`: of a folder, of an experiment and of a run; a good suite, a wrecked one, and a flaky one."""

from __future__ import annotations

import itertools
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner, Result

from cells.busy import busy_machine
from cells.cli import app
from cells.plan import Progress
from cells.run import run
from harness.errors import DriftError, RefereeError, TaskError, UsageError
from harness.experiment import RefereeLimitsEntry
from harness.record import read_entries
from harness.walls import Caps, ExecResult
from referees.null import NullReferee
from tests.cells.houses import Quiet, fakes, frozen_run, outcomes, write_experiment
from tests.fake_workspace import Call, FakeBackend
from tests.referees.printed_answers import TASK_FOLDER, PrintedAnswersReferee, read_as_program

OWN = ("--referee", "printed-answers", "--backend", "docker")


def check(*words: str) -> Result:
    """What the command did."""
    return CliRunner().invoke(app, ["task", "check", *words])


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The scaffold's referee in rooms where programs are read."""
    backend = FakeBackend(name="docker", programs={"python3": read_as_program})
    with fakes(monkeypatch, backend, **{"referees_printed-answers": PrintedAnswersReferee}):
        yield backend


def found(*words: str) -> tuple[dict[str, Any], int]:
    """The first task's findings, and the exit code."""
    ended = check(*words, "--json")
    assert ended.stdout, ended.output
    return json.loads(ended.stdout)[0], ended.exit_code


def wrecked(folder: Path) -> Path:
    """The scaffold's task with a suite that checks one easy case."""
    shutil.copytree(TASK_FOLDER, folder / "task")
    (folder / "task" / "tests" / "cases.toml").write_text('[two]\ngiven = "17 25\\n"\nexpected = "42\\n"\n', "utf-8")
    return folder / "task"


def test_a_folder_without_a_referee_is_told_how_to_name_one(house: Any, tmp_path: Path) -> None:
    """Where the usual one can't read the card: the option, and the names. A named one's error is its own."""
    task = wrecked(tmp_path)
    unnamed = check(str(task), "--backend", "docker").exception
    assert isinstance(unnamed, TaskError)
    assert "add --referee NAME, one of command, dafny, evalplus, lean, null, p" in str(unnamed)
    named = check(str(task), "--backend", "docker", "--referee", "command").exception
    assert isinstance(named, TaskError)
    assert "add --referee" not in str(named)
    # One that has no cards of its own says so as a failure of its own, when it is asked for a suite.
    foreign = check(str(task), "--backend", "docker", "--referee", "evalplus").exception
    assert isinstance(foreign, TaskError)
    assert "printed-answers/total is no task for 'evalplus': " in str(foreign)


def test_a_good_suite_holds(house: Any) -> None:
    """The reference accepted, the battery rejected, the mutant killed, with the margin; exit code 0."""
    one, code = found(str(TASK_FOLDER), *OWN)
    assert (code, one["holds"], one["why"], one["least_margin"]) == (0, True, [], 1)
    assert one["counts"] == {
        "reference": {"held": 1, "of": 1},
        "battery": {"held": 4, "of": 4},
        "mutant": {"held": 1, "of": 1},
        "generated": {"held": 0, "of": 0},
    }
    assert one["dead"] == {"tests": ["none"], "by_no_mutant": ["two"], "assertions": None}
    assert [row["word"] for row in one["rows"]] == ["accepted", *["rejected"] * 4, "killed"]


def test_a_wrecked_suite_lets_the_mutant_survive_and_is_refused(house: Any, tmp_path: Path) -> None:
    """The control: the same task without the cases that tell. Exit code 3, the mutant named, the margin 0."""
    place = wrecked(tmp_path)
    one, code = found(str(place), *OWN)
    assert (code, one["holds"], one["least_margin"]) == (3, False, 0)
    assert one["why"] == ["mutant sign_lost: survived (PASS)"]
    shown = check(str(place), *OWN)
    assert shown.exit_code == 3
    assert "mutant sign_lost: survived (PASS, 0 of 1 tests fail)" in shown.stdout


def test_a_reason_is_told_whole_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite that can't run is why nobody could be measured: its end may be what tells, and it stands there once."""
    reason = f"token {'0' * 16}: the suite can't be read\n{'x' * 400}\nE  SyntaxError: line 3"

    class Broken(PrintedAnswersReferee):
        count = 0

        async def judge(self, *_: Any) -> Any:
            Broken.count += 1
            raise RefereeError(reason.replace("0" * 16, f"{Broken.count:016x}"))

    with fakes(monkeypatch, FakeBackend(name="docker"), **{"referees_printed-answers": Broken}):
        shown = check(str(TASK_FOLDER), *OWN)
        one, _code = found(str(TASK_FOLDER), *OWN)
    assert shown.exit_code == 3
    assert "    E  SyntaxError: line 3\n" in shown.stdout
    assert shown.stdout.count("SyntaxError") == 1
    assert "mutant sign_lost: not measured (no reading) as reference\n" in shown.stdout
    assert one["why"][0].startswith("reference: not measured (token ")
    assert one["why"][0].endswith("xxx...)")


def test_a_folder_is_judged_under_the_limits_of_a_run(house: Any) -> None:
    """A referee's rooms have what an experiment gives them: in smaller ones a verdict would be another."""
    check(str(TASK_FOLDER), *OWN)
    assert {room.walls.caps for room in house.opened} == {Caps(**RefereeLimitsEntry().model_dump())}


def test_the_table_sums_over_tasks(house: Any, tmp_path: Path) -> None:
    """A row a task and one for all; with --all a line for every candidate."""
    shutil.copytree(TASK_FOLDER, tmp_path / "one")
    (tmp_path / "two").mkdir()
    place = wrecked(tmp_path / "two")
    place.rename(tmp_path / "three")
    text = (tmp_path / "three" / "task.toml").read_text("utf-8").replace('name = "total"', 'name = "other"')
    (tmp_path / "three" / "task.toml").write_text(text, "utf-8")
    ended = check(str(tmp_path), *OWN, "--all")
    assert ended.exit_code == 3
    assert "1 of 2" in ended.stdout
    assert "printed-answers/total: battery says_pass: rejected (FAIL" in ended.stdout
    alone = check(str(tmp_path), *OWN, "--task", "total")
    assert alone.exit_code == 0
    assert "Did you mean 'other'" in str(check(str(tmp_path), *OWN, "--task", "othe").exception)


def test_a_flaky_test_is_found_by_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is right two times of three: one round sees nothing, three do, and the suite does not hold."""
    times = itertools.count(1)

    def wavering(call: Call) -> ExecResult:
        result = read_as_program(call)
        wrong = result.stdout == b"42\n" and next(times) % 3 == 0
        return replace(result, stdout=b"41\n") if wrong else result

    backend = FakeBackend(name="docker", programs={"python3": wavering})
    with fakes(monkeypatch, backend, **{"referees_printed-answers": PrintedAnswersReferee}):
        one, code = found(str(TASK_FOLDER), *OWN, "--repeat", "3", "--at-once", "1")
    assert code == 3
    assert one["rounds"] == 3
    assert any(item["test"] == "two" and "FAIL" in item["readings"] for item in one["flaky"])
    assert any("is flaky at two" in why for why in one["why"])


def test_the_same_under_load(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second round has every CPU busy; what is steady stays so."""
    one, code = found(str(TASK_FOLDER), *OWN, "--load")
    assert (code, one["rounds"], one["loaded_rounds"], one["flaky"]) == (0, 2, 1, [])


def test_a_busy_machine_is_busy_and_left_quiet() -> None:
    """A process a CPU, gone when the block is left."""

    async def count() -> int:
        async with busy_machine() as busy:
            return busy

    assert anyio.run(count) >= 1


def test_generated_mutants_come_on_top_and_refuse_nobody(house: Any, tmp_path: Path) -> None:
    """Their survivors are told with what was changed: some do the same as the reference, which only a reader can tell."""
    shutil.copytree(TASK_FOLDER, tmp_path / "task")
    solution = tmp_path / "task" / "solution" / "solution.py"
    solution.write_text(solution.read_text("utf-8").replace("return sum", "return 0 + sum"), "utf-8")
    one, code = found(str(tmp_path / "task"), *OWN, "--mutants", "generated", "--most", "3")
    generated = [row for row in one["rows"] if row["kind"] == "generated"]
    assert one["counts"]["generated"] == {"held": 0, "of": 3}  # rooms in which programs are read see no difference
    assert all("-    return 0 + sum(" in row["diff"] for row in generated)
    assert (code, one["holds"], one["least_margin"]) == (0, True, 1)
    shown = check(str(tmp_path / "task"), *OWN, "--mutants", "generated", "--most", "3")
    assert "    -    return 0 + sum(" in shown.stdout
    assert "kind of mutants" in str(check(str(TASK_FOLDER), *OWN, "--mutants", "all").exception)


def test_what_does_not_go_together_is_refused(house: Any, tmp_path: Path) -> None:
    """--keep without a run, who judges where the place says so itself, and a folder without a task."""
    source = write_experiment(tmp_path)
    assert "--keep needs a run" in str(check(str(source), "--keep").exception)
    assert "--backend: for a folder of tasks only" in str(check(str(source), "--backend", "docker").exception)
    (tmp_path / "none").mkdir()
    ended = check(str(tmp_path / "none"))
    assert isinstance(ended.exception, TaskError)
    gone = check(str(tmp_path / "gone")).exception
    assert isinstance(gone, UsageError)
    assert "or an experiment file, a task folder" in str(gone)


def test_an_experiment_and_its_run_are_checked_as_cells_are_judged(house: Any, tmp_path: Path) -> None:
    """Each task by the experiment's own referee; of a run, what is found goes into its record."""

    async def freeze() -> Path:
        return (await frozen_run(tmp_path)).folder

    folder = anyio.run(freeze)
    assert check(str(tmp_path)).exit_code == 0
    assert check(str(folder), "--keep").exit_code == 0
    entries = list(read_entries(folder / "record.jsonl"))
    assert [entry.kind for entry in entries] == ["run.opened", *["suite.characterised"] * 3]
    assert entries[1].body["holds"] is True


def test_a_suite_that_was_found_wanting_withdraws_its_task(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The record says that one task's suite does not hold: no seat of any arm starts on it, and the others are played."""

    class Lenient(NullReferee):
        """Accepts a degenerate candidate of one task that no run judges."""

        def battery(self, task: Any, sealed: Any) -> Any:
            more = super().battery(task, sealed)
            return {**more, "odd": NullReferee.reference(self, sealed)} if task.name == "Fake/1" else more

    async def play() -> Path:
        frozen = await frozen_run(tmp_path)
        ended = await anyio.to_thread.run_sync(lambda: check(str(frozen.folder), "--keep"))
        assert ended.exit_code == 3
        monkeypatch.setattr(Lenient, "battery", NullReferee.battery)
        again = await anyio.to_thread.run_sync(lambda: check(str(frozen.folder), "--keep"))
        assert again.exit_code == 0  # and takes nothing back
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
        return frozen.folder

    with fakes(monkeypatch, FakeBackend(name="docker"), referees_null=Lenient):
        found_in = outcomes(anyio.run(play))
    classes = {(outcome.cell.task, outcome.outcome_class) for outcome in found_in}
    assert classes == {("Fake/0", "PASS"), ("Fake/1", "REFUSED"), ("Fake/2", "PASS")}
    (why,) = {outcome.end.detail for outcome in found_in if outcome.outcome_class == "REFUSED"}  # type: ignore[union-attr]
    assert "battery odd: accepted (PASS)" in why


def characterised(*, word: str = "accepted", flaky: tuple[str, ...] = (), kind: str = "battery") -> dict[str, Any]:
    """The body of an entry: one candidate that is not as it must be, or with `flaky` one that was read differently."""
    rows = [{"kind": kind, "name": "a", "word": word, "holds": bool(flaky)}]
    found = [{"candidate": "a", "test": "", "readings": list(flaky)}] if flaky else []
    return {"task": "t", "holds": False, "why": ["it"], "rows": rows, "flaky": found}


@pytest.mark.parametrize(
    ("earlier", "stays"),
    [
        (characterised(), True),
        (characterised(word="survived", kind="mutant"), True),
        (characterised(flaky=("PASS", "FAIL", "PASS")), True),
        (characterised(word="not measured"), False),
        (characterised(flaky=("PASS", "not measured")), False),
        (characterised(word="survived", kind="generated"), False),
    ],
)
def test_what_was_seen_of_a_suite_is_not_taken_back(earlier: dict[str, Any], *, stays: bool) -> None:
    """Checking until it holds is no way to a suite that does; where nothing was seen, a later look may see it."""
    progress, later = Progress(), {"task": "t", "holds": True, "why": [], "rows": [], "flaky": []}
    for body in (later, earlier, later):
        progress.add("suite.characterised", body)
    assert progress.suites["t"]["holds"] is not stays


def test_what_another_suite_judged_is_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run is pinned to its suite: what a referee's newer version says is no word on this one."""

    class Newer(NullReferee):
        def suite(self, sealed: Any) -> Any:
            return {**super().suite(sealed), "digest": "newer"}

    async def freeze() -> Path:
        return (await frozen_run(tmp_path)).folder

    with fakes(monkeypatch, FakeBackend(name="docker")):
        folder = anyio.run(freeze)
    with fakes(monkeypatch, FakeBackend(name="docker"), referees_null=Newer):
        refused = check(str(folder), "--keep").exception
    assert isinstance(refused, DriftError)
    assert "was judged by suite newer: the run is pinned to " in str(refused)
    assert not (folder / "record.jsonl").exists()
