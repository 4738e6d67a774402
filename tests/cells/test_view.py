"""What a person sees: counts, spend against budget, time left, and nothing that could do anything to a terminal."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import anyio
import pytest
from rich.console import Console

from cells.figures import duration
from cells.logs import logging_to
from cells.plan import Progress
from cells.run import run
from cells.view import LiveWatcher, PlainWatcher, status_lines, tally, watching
from harness.clock import Clock
from harness.errors import ModelServerError
from harness.models.scripted import ScriptedProvider
from harness.outcome import CellOutcome, Spend, outcome_to_json
from harness.record import read_entries
from harness.registration import Registration, load_registration
from harness.values import Usage, Void, VoidPrice
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run


class Stepping(Clock):
    """Ten seconds go by at each look."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        """Ten more."""
        self.seconds += 10
        return self.seconds


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registration:
    """A run of six cells, two of them with a server that was down once."""
    failed: list[str] = []

    def answer(request: Any) -> Any:
        text = request.messages[-1].content
        if "task_2" in text and text not in failed:
            failed.append(text)
            raise ModelServerError("down \x1b[2J\u202e now")
        return "```python\nx = 1\n```"

    async def make() -> Path:
        with fakes(monkeypatch, fake_backend(tmp_path), models_scripted=lambda: ScriptedProvider(answer)):
            frozen = await frozen_run(
                tmp_path,
                model="",
                concurrency=1,
                more="[budgets.run]\ntokens = 100000\n",
                seat_options="[seat.options]\nrounds = 1\n",
            )
            await run(frozen.folder, watcher=Quiet())
        return frozen.folder

    return load_registration(anyio.run(make))


def replayed(registration: Registration, watcher: Any, *, most: int | None = None) -> Progress:
    """Show a watcher the record of a run again, entry by entry."""
    (folder,) = Path(str(registration.source)).parent.glob("runs/*")
    progress = Progress()
    for entry in list(read_entries(folder / "record.jsonl"))[:most]:
        progress.add(entry.kind, entry.body)
        watcher.saw(entry.kind, entry.body, progress)
    return progress


def test_the_tally_counts_what_the_record_says(finished: Registration) -> None:
    """Done, classes, void tries, spend; tokens are marked as estimated since a failed call's usage is unknown."""
    now = tally(finished, replayed(finished, Quiet()))
    assert (now.total, now.done, now.running, now.classes) == (6, 6, 0, {"PASS": 6})
    assert (now.void_tries, now.calls, now.tokens_estimated, now.usd) == (1, 7, True, None)


def test_plain_lines_go_by_and_can_do_nothing(finished: Registration, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a try, with the time left; escape codes and direction marks of a server's words are written out."""
    replayed(finished, PlainWatcher(finished, clock=Stepping()))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("[1/6] tasks|Fake/0|B|none|m|1: PASS, 1 calls, ")
    assert lines[0].endswith("left: 50 s")
    (void,) = [line for line in lines if "VOID" in line]
    assert "down \\x1b[2J\\u202e now" in void
    assert all(line.isprintable() for line in lines)


def test_the_table_shows_budget_and_what_runs(finished: Registration) -> None:
    """In the middle of a run: a cell that runs, spend against the budget."""
    console = Console(file=StringIO(), width=100, force_terminal=False)
    watcher = LiveWatcher(finished, console, clock=Stepping())
    started = [entry for entry in range(40) if entry][:9]
    replayed(finished, watcher, most=len(started))
    console.print(watcher)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert finished.id in shown
    assert "of 100,000" in shown
    assert "running" in shown


def test_status_says_what_state_a_run_is_in(finished: Registration) -> None:
    """Finished, running and cut off read differently."""
    progress = replayed(finished, Quiet())
    done = list(status_lines(finished, progress, tally(finished, progress), running=False, head="5:ab"))
    assert done[0].endswith(": finished")
    half = Progress()
    half.add("cell.started", {"cell": _cell(finished), "attempt": 1})
    cut = list(status_lines(finished, half, tally(finished, half), running=False, head=None))
    assert cut[0].endswith(": not running, incomplete")
    assert "1 tries were cut off" in cut[-1]
    going = next(iter(status_lines(finished, half, tally(finished, half), running=True, head=None)))
    assert going.endswith(": running")


def _cell(registration: Registration) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(registration.cells[0])


def test_an_unknown_usage_is_not_zero_in_the_tally(finished: Registration) -> None:
    """What a VOID try was charged is counted, and said to be an estimate."""
    progress = Progress()
    spend = Spend(
        usage=Usage(),
        charged_tokens=77,
        estimated=True,
        calls=1,
        output_bytes=0,
        wall_s=1.0,
        price=VoidPrice(reason="x"),
    )
    void = CellOutcome(cell=finished.cells[0], attempt=1, end=Void(cause="workspace", detail=""), spend=spend)
    progress.add("cell.ended", outcome_to_json(void))
    now = tally(finished, progress)
    assert (now.done, now.tokens, now.tokens_estimated) == (0, 77, True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "unknown"), (0, "0 s"), (59.6, "1 min 0 s"), (3599, "59 min 59 s"), (7300, "2 h 1 min")],
)
def test_durations_as_a_person_says_them(seconds: float | None, text: str) -> None:
    """Unknown is not zero."""
    assert duration(seconds) == text


def test_a_quiet_view_prints_nothing(
    finished: Registration, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For scripts: everything is in the record and in the log, a JSON object a line."""
    with logging_to(tmp_path / "log.jsonl"), watching(finished, quiet=True) as watcher:
        replayed(finished, watcher)
        watcher.note("something")
    assert capsys.readouterr() == ("", "")
    events = [json.loads(line)["event"] for line in (tmp_path / "log.jsonl").read_text("utf-8").splitlines()]
    assert events[0] == "run.opened"
    assert events[-2:] == ["session.closed", "note"]
