"""The commands around what was said beforehand: predictions, status and run of a stopped one, the example."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.amending import amend
from cells.claim_checks import refuse_idle_claims
from cells.run import run
from harness.clock import SystemClock
from harness.errors import ExperimentError
from harness.experiment import load_experiment
from harness.tasks.evalplus import load_evalplus
from harness.values import CellKey
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run
from tests.cells.test_cli import proctor

__all__ = ["proctor"]

ROOT = Path(__file__).parents[2]

SAID = """
[[predictions]]
name = "easy"
claim = "P passes all three."
point = { of = { arm = "P", figure = "passed" }, value = 3, tolerance = 0 }
refuted_by = [{ at_most = 1 }]
[[predictions]]
name = "gain"
claim = "P gains two, give or take one."
point = { of = { contrast = "P over B", figure = "net" }, value = 2, tolerance = 1 }
refuted_by = [{ at_most = 0 }]
[[predictions]]
name = "share"
claim = "Nearly all that differs favours P."
band = { of = { contrast = "P over B", figure = "share" }, low = 0.8, high = 1.0 }
refuted_by = [{ below = 0.5 }]
[[outcomes]]
verdict = "It helps."
when = [{ contrast = "P over B", figure = "p_holm", at_most = 0.05 }]
[[outcomes]]
verdict = "It is not shown to help."
when = [{ contrast = "P over B", figure = "p_holm", above = 0.05 }]
[[adverse]]
name = "a limit stops P"
when = [{ arm = "P", figure = "halted", above = 0 }]
"""

AMENDMENT = """
reason = "The tasks turned out to be easy."
changes = "One more prediction."
[[checks]]
name = "begun"
figure = "done"
at_least = 1
[[predictions]]
name = "later"
claim = "B passes all three too."
point = { of = { arm = "B", figure = "passed" }, value = 3, tolerance = 0 }
refuted_by = [{ at_most = 1 }]
"""


def played(folder: Path, monkeypatch: pytest.MonkeyPatch, more: str, *, amended: bool = False) -> Path:
    """A run on fakes with these tables, where every cell passes."""

    async def make() -> Path:
        with fakes(monkeypatch, fake_backend(folder)):
            frozen = await frozen_run(folder, more=more, concurrency=1)
            await run(frozen.folder, watcher=Quiet())
            if amended:
                (folder / "amendment.toml").write_text(AMENDMENT, "utf-8")
                amend(frozen.folder, folder / "amendment.toml", clock=SystemClock())
        return frozen.folder

    return anyio.run(make)


def test_each_prediction_is_told_as_it_stands(proctor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Held, refuted with its direction, void; the row that holds; what did not happen. A refuted one is no error."""
    told = proctor("predictions", played(tmp_path, monkeypatch, SAID))
    assert told.code == 0
    lines = told.out.splitlines()
    assert lines[0].endswith(": final")
    assert lines[1:] == [
        "HOLDS      easy: P passes all three.",
        "           it is 3, which is exactly 3",
        "REFUTED    gain: P gains two, give or take one.",
        "           it is 0, below 1 by 1",
        "           holds if at least 1 and at most 3; refuted if at most 0",
        "VOID       share: Nearly all that differs favours P.",
        "           the figure is undefined",
        "           holds if at least 0.8 and at most 1; refuted if below 0.5",
        "registered outcome 2: It is not shown to help. (p_holm of contrast 'P over B' = 1)",
        "adverse outcome, a limit stops P: did not happen (halted of arm 'P' = 0)",
    ]


def test_the_scoreboard_tells_the_registered_outcome(
    proctor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its head, and in its JSON."""
    folder = played(tmp_path, monkeypatch, SAID)
    text = proctor("score", folder).out
    assert "registered outcome 2: It is not shown to help. (p_holm of contrast 'P over B' = 1)" in text
    assert "adverse outcome, a limit stops P: did not happen" in text
    board = proctor("score", folder, "--json").json
    assert (board["outcome"]["row"], board["adverse"][0]["happened"], board["stop"]) == (2, False, None)


def test_an_amendments_predictions_stand_apart(proctor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They came when something was known: under their own heading, and in the JSON in their own list."""
    folder = played(tmp_path, monkeypatch, SAID, amended=True)
    lines = proctor("predictions", folder).out.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith("later, by amendment 1 of ")]
    assert lines[at + 1] == "HOLDS      later: B passes all three too."
    assert at > lines.index("HOLDS      easy: P passes all three.")
    data = proctor("predictions", folder, "--json").json
    assert [reading["name"] for reading in data["predictions"]] == ["easy", "gain", "share"]
    assert [reading["name"] for item in data["later"] for reading in item["predictions"]] == ["later"]
    assert data["amended"]["outcome"]["row"] == data["frozen"]["outcome"]["row"] == 2


def test_the_report_tells_what_was_said_and_what_came(
    proctor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fate and reason of each, the outcome, and an amendment's own apart; a run without any says so."""
    folder = played(tmp_path / "said", monkeypatch, SAID, amended=True)
    text = (folder / "report.md").read_text("utf-8") if proctor("report", folder).code == 0 else ""
    section = text[text.index("## Predictions") : text.index("## Cost")]
    assert "| gain | P gains two, give or take one. | REFUTED | it is 0, below 1 by 1 |" in section
    assert "registered outcome 2: It is not shown to help." in section
    at = section.index("Predictions of amendment 1 of ")
    assert "| later | B passes all three too. | HOLDS |" in section[at:]
    assert "later" not in section[:at]
    silent = played(tmp_path / "silent", monkeypatch, "")
    assert proctor("report", silent).code == 0
    assert "Nothing was said of the result beforehand." in (silent / "report.md").read_text("utf-8")


def test_nothing_was_said(proctor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run without predictions says so, and ends well."""
    told = proctor("predictions", played(tmp_path, monkeypatch, ""))
    assert (told.code, told.out.splitlines()[1:]) == (0, ["no prediction was registered"])


def test_before_the_end_it_is_unresolved(proctor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was played: every prediction is open, no row is known, and the command says with 1 that it is too early."""

    async def make() -> Path:
        with fakes(monkeypatch, fake_backend(tmp_path)):
            return (await frozen_run(tmp_path, more=SAID)).folder

    told = proctor("predictions", anyio.run(make))
    assert told.code == 1
    assert told.out.count("UNRESOLVED") == 3
    assert "registered outcome: none is known to hold: the run is incomplete: 6 of 6 cells are missing" in told.out


STOP = '[[stops]]\nname = "enough"\narm = "P"\nfigure = "passed"\nat_least = 1\n'


def test_a_stopped_run_says_so_by_status_and_code(
    proctor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5, neither 0 nor 1: a script that runs again while there is something left must not run for ever."""
    folder = played(tmp_path, monkeypatch, SAID + STOP)
    status = proctor("status", folder)
    assert status.code == 5
    assert "stopped by the registered rule 'enough': passed of arm 'P' at least 1; it is 1" in status.out
    data = proctor("status", folder, "--json")
    assert (data.code, data.json["stopped"]["rule"], data.json["done"], data.json["total"]) == (5, "enough", 2, 6)
    score = proctor("score", folder)
    assert score.code == 0
    assert "status final: 2 of 6 declared cells in the record" in score.out
    assert "Stopped by its registered rule 'enough'" in score.out
    assert "NOT_FIRED" in score.out
    told = proctor("predictions", folder)
    assert told.code == 0
    assert "UNRESOLVED easy" not in told.out


def test_running_a_stopped_run_again_ends_with_5(proctor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing starts, and the code says why."""
    folder = played(tmp_path, monkeypatch, STOP)
    before = (folder / "record.jsonl").read_bytes()
    with fakes(monkeypatch, fake_backend(tmp_path)):
        again = proctor("run", folder, "--json")
    assert (again.code, again.json["how"]) == (5, "stopped")
    assert (folder / "record.jsonl").read_bytes() == before


def test_the_quickstart_says_what_it_expects() -> None:
    """What the example says of its result can be, over its tasks; over other tasks it would be refused."""
    experiment = load_experiment(ROOT / "examples" / "quickstart")
    assert experiment.predictions
    assert experiment.outcomes
    tasks = load_evalplus(ROOT / "examples" / "quickstart" / "tasks.jsonl")
    cells = [
        CellKey(
            benchmark="quickstart",
            task=task.open.name,
            arm=arm,
            extras="none",
            model=experiment.models[0].name,
            replicate=1,
        )
        for task in tasks
        for arm in ("B", "P")
    ]
    refuse_idle_claims(experiment, cells)
    with pytest.raises(ExperimentError, match="unknown arm 'P'"):
        refuse_idle_claims(experiment, [cell for cell in cells if cell.arm == "B"])
