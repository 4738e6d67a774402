"""Stop rules: when one is met, what starts no more, what the record says, and what a resume does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.amending import amend
from cells.plan import read_run
from cells.readings import score
from cells.run import run
from cells.stop_rules import StopRules, refuse_met_at_once
from cells.stopping import stop_of
from cells.verifying import verify_run
from harness.analysis import Analysis
from harness.clock import SystemClock
from harness.errors import ExperimentError
from harness.messages import Completion
from harness.models.scripted import ScriptedProvider
from harness.predictions import StopRule
from harness.record import read_entries
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run, outcomes
from tests.cells.scoring_cases import key, outcome, table
from tests.cells.test_run import answering

pytestmark = pytest.mark.anyio
ON_ONE = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""What is looked at after the run, and has nothing of how its tasks were run."""

ANALYSIS = Analysis.model_validate({"contrasts": [{"name": "c", "treatment": "P", "control": "B"}]})
STOP = '[[stops]]\nname = "enough"\narm = "P"\nfigure = "passed"\nat_least = 1\n'

AMENDMENT = """
reason = "More cells were affordable."
changes = "More."
{}
[[checks]]
name = "nothing was halted"
figure = "halted"
at_most = 0
"""


def rules(cells: Any, *bounds: dict[str, Any]) -> StopRules:
    """Stop rules named `r0`, `r1`, ..."""
    found = [StopRule.model_validate({"name": f"r{at}", **more}) for at, more in enumerate(bounds)]
    return StopRules(rules=found, cells=cells, analysis=ANALYSIS)


def test_a_rule_is_met_by_counts_of_what_is_there_already() -> None:
    """Pairs that are still missing don't hide a net, and the first of two met rules is the one."""
    declared, found = table([("FAIL", "PASS"), ("PASS", "FAIL"), ("FAIL", "PASS"), (None, None)], arms=("B", "P"))
    net = {"contrast": "c", "figure": "net", "at_least": 1}
    halted = {"figure": "halted", "at_least": 1}
    met = rules(declared, halted, net, {"figure": "passed", "at_least": 1}).met(found)
    assert met is not None
    assert (met[0].name, met[1].value) == ("r1", 1)
    assert rules(declared, halted).met(found) is None


def test_a_lower_bound_meets_a_rule_from_below_and_an_unknown_price_none() -> None:
    """At least 1 dollar is certainly 0.8 or more and not certainly below 2; a sum with an unknown is unknown."""
    declared = [key(1, "B"), key(1, "P")]
    found = [outcome(declared[0], "PASS"), outcome(declared[1], "VOID(fence)", lower_bound=True)]
    assert rules(declared, {"figure": "usd_total", "at_least": 0.8}).met(found) is not None
    assert rules(declared, {"figure": "usd_total", "below": 2}).met(found) is None
    unknown = [found[0], outcome(declared[1], "PASS", usd=None)]
    assert rules(declared, {"figure": "usd_total", "at_least": 0.1}).met(unknown) is None
    assert rules(declared, {"figure": "usd_total", "at_least": 9, "undefined": True}).met(unknown) is not None


def test_a_rule_that_is_met_before_the_first_cell_is_refused() -> None:
    """No pass yet is not a reason to stop: such a run would never begin."""
    declared = [key(1, "B"), key(1, "P")]
    with pytest.raises(ExperimentError, match=r"'r0' \(passed of the whole set below 1\) is met before .*it is 0"):
        refuse_met_at_once(rules(declared, {"figure": "passed", "below": 1}))
    refuse_met_at_once(rules(declared, {"figure": "passed", "at_least": 1}))


async def test_a_met_rule_starts_no_further_cell_and_a_resume_none_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first pass of P is the second cell of six: the other four are not fired, now and after a resume."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path, concurrency=1, more=STOP)
        watcher = Quiet()
        assert await run(frozen.folder, watcher=watcher) == "stopped"
        first = outcomes(frozen.folder)
        assert [str(item.cell) for item in first] == ["tasks|Fake/0|B|none|m|1", "tasks|Fake/0|P|none|m|1"]
        (stop,) = [entry.body for entry in read_entries(frozen.folder / "record.jsonl") if entry.kind == "run.stopped"]
        assert (stop["rule"], stop["figure"], stop["value"], stop["bound"]) == (
            "enough",
            {"arm": "P", "figure": "passed"},
            1,
            "exact",
        )
        assert stop["cells"] == {"tried": 2, "under_way": 0, "declared": 6}
        line = "stopped by the registered rule 'enough': passed of arm 'P' at least 1; it is 1. No further cell starts."
        assert line in watcher.notes
        again = Quiet()
        assert await run(frozen.folder, watcher=again) == "stopped"
        assert again.notes == [line]
        assert outcomes(frozen.folder) == first
        closed = [
            entry.body for entry in read_entries(frozen.folder / "record.jsonl") if entry.kind == "session.closed"
        ]
        assert closed == [{"how": "stopped", "left": 4}]
        assert verify_run(frozen.folder).ok


@ON_ONE
async def test_what_is_not_fired_is_counted_as_such_and_the_rest_has_its_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four cells NOT_FIRED, no failure, no VOID, nothing missing; the scoreboard is final and says who stopped it."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path, concurrency=1, more=STOP)
        await run(frozen.folder, watcher=Quiet())
        progress, _head = read_run(frozen.folder)
        cells = frozen.registration.cells
        stop = stop_of(progress, cells)
        assert stop is not None
        board = score(cells, progress.outcomes(), ANALYSIS, head=None, registration_id="x", stop=stop)
        assert (board.status, board.missing, len(stop.unfired)) == ("final", (), 4)
        assert [(arm.classes["NOT_FIRED"], arm.judged, arm.void, arm.fired) for arm in board.arms] == [(2, 1, 0, 1)] * 2
        assert board.sentences[0] == (
            "Stopped by its registered rule 'enough' (passed of arm 'P' at least 1; it was 1): "
            "4 declared cells were not fired."
        )
        assert board.contrasts[0].p_value == 1.0
        assert board.contrasts[0].pairs.without_verdict == 2


@ON_ONE
async def test_an_amendment_after_the_stop_asks_for_nothing_to_be_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replicates and retries could not be played any more: they are refused; what plays nothing is still taken."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path, concurrency=1, more=STOP)
        assert await run(frozen.folder, watcher=Quiet()) == "stopped"
    record = frozen.folder / "record.jsonl"
    before, path = record.read_bytes(), tmp_path / "amendment.toml"
    for asked in ("replicates = 2", "void_retries = 9", "replicates = 2\nvoid_retries = 9"):
        path.write_text(AMENDMENT.format(asked), "utf-8")
        for dry_run in (True, False):
            with pytest.raises(
                ExperimentError, match=r"the registered rule 'enough' ended this run, and nothing further"
            ):
                amend(frozen.folder, path, clock=SystemClock(), dry_run=dry_run)
    assert record.read_bytes() == before
    path.write_text(AMENDMENT.format('notices = [{ contrast = "P over B", text = "a loud machine" }]'), "utf-8")
    assert amend(frozen.folder, path, clock=SystemClock()).added_cells == 0


async def test_cells_under_way_finish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at once: the one that is still playing when the rule is met ends with its own verdict, and is the last."""
    both, calls = anyio.Event(), 0

    class Slow:
        """Lets the second call wait for the rule to be met by the first."""

        async def complete(self, _request: object) -> Completion:
            """Answer, the second one late."""
            nonlocal calls
            calls += 1
            if calls == 2:
                both.set()
                await anyio.sleep(0.3)
            else:
                await both.wait()
            return answering()

    class Provider(ScriptedProvider):
        """Opens the slow model."""

        def open(self, spec: object) -> object:  # type: ignore[override]
            """One for all."""
            from contextlib import nullcontext

            return nullcontext(Slow())

    more = STOP.replace('arm = "P"\n', "")
    options = "[seat.options]\nrounds = 1\n"
    with fakes(monkeypatch, fake_backend(tmp_path), models_scripted=lambda: Provider(lambda _request: answering())):
        frozen = await frozen_run(tmp_path, model="", concurrency=2, more=more, seat_options=options)
        assert await run(frozen.folder, watcher=Quiet()) == "stopped"
        assert Counter(item.outcome_class for item in outcomes(frozen.folder)) == {"PASS": 2}
        kinds = [entry.kind for entry in read_entries(frozen.folder / "record.jsonl") if entry.kind != "head"]
        assert kinds.index("run.stopped") < len(kinds) - 1 - kinds[::-1].index("cell.ended")


async def test_a_process_that_died_before_its_stop_comes_to_it_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome that met the rule is in the record and the stop is not: nothing is played before it is."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path, concurrency=1, more=STOP)

        class Killed(BaseException):
            """The process's end."""

        async def killed(_house: object, _journal: object) -> None:
            await anyio.lowlevel.checkpoint()
            if outcomes(frozen.folder)[1:]:
                raise Killed

        with monkeypatch.context() as dying:
            dying.setattr("cells.schedule.stop_if_met", killed)
            with pytest.raises(Killed):
                await run(frozen.folder, watcher=Quiet())
        assert len(outcomes(frozen.folder)) == 2
        assert read_run(frozen.folder)[0].stopped is None
        assert await run(frozen.folder, watcher=Quiet()) == "stopped"
        assert len(outcomes(frozen.folder)) == 2


@ON_ONE
async def test_a_rule_that_is_never_met_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell is played, and no stop is recorded."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path, more=STOP.replace("at_least = 1", "at_least = 4"))
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
        assert len(outcomes(frozen.folder)) == 6
        assert read_run(frozen.folder)[0].stopped is None


async def test_a_void_is_not_tried_again_after_the_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule on VOIDs: the first ends the run, with retries left and unused."""
    from harness.errors import ModelServerError

    def answer(_request: object) -> Completion:
        raise ModelServerError("gone")

    more = '[[stops]]\nname = "sick"\nfigure = "void"\nat_least = 1\n'
    with fakes(monkeypatch, fake_backend(tmp_path), models_scripted=lambda: ScriptedProvider(answer)):
        frozen = await frozen_run(tmp_path, model="", concurrency=1, more=more, retries=3)
        assert await run(frozen.folder, watcher=Quiet()) == "stopped"
        assert [item.outcome_class for item in outcomes(frozen.folder)] == ["VOID"]


def test_interim_figures_are_those_of_the_scoreboard() -> None:
    """Whatever a stop rule may look at is what the scoreboard of the same record would say."""
    from cells.figure_reading import read_figure
    from cells.interim import Interim
    from harness.figure_refs import FigureRef
    from harness.figure_tables import FIGURES

    declared, found = table(
        [("FAIL", "PASS"), ("PASS", "HALT(usd)"), ("VOID(fence)", "PASS"), ("PASS", None), (None, None)],
        arms=("B", "P"),
    )
    analysis = Analysis.model_validate(
        {
            "contrasts": [{"name": "c", "treatment": "P", "control": "B", "strata": ["benchmark"]}],
            "ratios": [{"name": "r", "treatment": "P", "control": "B", "quantity": "calls", "alternative": "less"}],
        }
    )
    whole = score(declared, found, analysis, head=None, registration_id="x")
    keys: dict[str, dict[str, str]] = {
        "a contrast": {"contrast": "c"},
        "a stratum": {"contrast": "c", "stratum": "made"},
        "a ratio": {"ratio": "r"},
        "a task of a ratio": {"ratio": "r", "task": "1"},
        "an arm": {"arm": "P"},
        "a condition": {"arm": "B", "task": "3"},
        "the whole set": {},
    }
    looked_at = 0
    for kind, fields in keys.items():
        for figure, spec in FIGURES[kind].items():  # type: ignore[index]  # the words are literals here
            ref = FigureRef.model_validate({**fields, "figure": figure})
            if spec.interim:
                looked_at += 1
                assert read_figure(ref, Interim(ref, declared, found, analysis)) == read_figure(ref, whole), ref
    assert looked_at > 60
