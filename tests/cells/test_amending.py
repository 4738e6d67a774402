"""Amendments: what may be added to a frozen experiment, what is refused, and the two readings that come of it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.amending import amend
from cells.boards import boards_of, boards_to_json
from cells.expiry import expired_since
from cells.freeze import Frozen
from cells.plan import declared, read_run
from cells.report_facts import amendment_facts, run_facts
from cells.report_sections import registration_parts
from cells.run import run
from cells.verifying import verify_run
from harness.clock import SystemClock
from harness.errors import BusyError, ExperimentError, GateRefused, UsageError
from harness.record import Record, read_entries
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run, outcomes

HEAD = """
reason = "More cells were affordable."
changes = "Each condition is run once more."
"""
CHECK = """
[[checks]]
name = "nothing was halted"
figure = "halted"
at_most = 0
"""
WHOLE = HEAD + "replicates = 2\n" + CHECK


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Frozen:
    """A run of three tasks and two arms that is finished: P is the treatment, B the control."""
    folder = tmp_path_factory.mktemp("finished")

    async def work() -> Frozen:
        frozen = await frozen_run(folder)
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
        return frozen

    with pytest.MonkeyPatch.context() as patch, fakes(patch, fake_backend(folder)):
        return anyio.run(work)


@pytest.fixture
def played(finished: Frozen, tmp_path: Path) -> Frozen:
    """The finished run, in a folder of the test's own."""
    folder = tmp_path / "runs" / finished.folder.name
    shutil.copytree(finished.folder, folder)
    return replace(finished, folder=folder)


def write(folder: Path, text: str) -> Path:
    """An amendment's file."""
    path = folder / "amendment.toml"
    path.write_text(text, "utf-8")
    return path


def made(frozen: Frozen, text: str, *, dry_run: bool = False) -> Any:
    """Make an amendment of this text."""
    return amend(frozen.folder, write(frozen.folder.parent, text), clock=SystemClock(), dry_run=dry_run)


def test_it_is_appended_and_nothing_before_it_changes(played: Frozen) -> None:
    """The lines that were there are there byte for byte; the new one is dated and says what held."""
    record = played.folder / "record.jsonl"
    before, registration = record.read_bytes(), (played.folder / "registration.json").read_bytes()
    result = made(played, WHOLE)
    assert (result.number, result.added_cells, result.withdrawn_cells, result.outcomes) == (1, 6, 0, 6)
    after = record.read_bytes()
    assert after.startswith(before)
    assert (played.folder / "registration.json").read_bytes() == registration
    *_, entry = read_entries(record)
    assert entry.kind == "registration.amended"
    assert entry.body["checks"] == [{"name": "nothing was halted", "value": 0.0, "holds": True}]
    assert entry.body["dated"] <= entry.at
    assert entry.body["registration"] == played.registration.digest
    assert verify_run(played.folder).ok


def test_the_frozen_verdict_stands_beside_the_amended_one(
    played: Frozen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Added cells are played by the next session, are read in the amended board alone, and leave the frozen as it was."""
    first = boards_of(played.folder)
    assert first.amended is None
    made(played, WHOLE)
    between = boards_of(played.folder)
    assert between.amended is not None
    assert (between.frozen.status, between.amended.status) == ("final", "incomplete")
    assert between.in_force is between.amended
    with fakes(monkeypatch, fake_backend(tmp_path)):
        assert anyio.run(partial(run, played.folder, watcher=Quiet())) == "finished"
    assert len(outcomes(played.folder)) == 12
    last = boards_of(played.folder)
    assert last.amended is not None
    assert (last.frozen.planned, last.amended.planned) == (6, 12)
    assert last.frozen.undeclared == last.amended.undeclared == ()
    assert last.frozen.contrasts == first.frozen.contrasts
    assert last.amended.contrasts[0].pairs.declared == 6


def test_a_check_that_does_not_hold_appends_nothing(played: Frozen) -> None:
    """The refusal names the check, the figure, its value and what was expected."""
    before = (played.folder / "record.jsonl").read_bytes()
    text = WHOLE.replace('figure = "halted"', 'figure = "judged"')
    with pytest.raises(GateRefused, match=r"nothing was halted: judged of the whole set is 6, expected at most 0"):
        made(played, text)
    assert (played.folder / "record.jsonl").read_bytes() == before


def test_a_dry_run_appends_nothing(played: Frozen) -> None:
    """It says what would come of it, and writes nothing."""
    before = (played.folder / "record.jsonl").read_bytes()
    result = made(played, WHOLE, dry_run=True)
    assert (result.entry, result.added_cells) == (None, 6)
    assert (played.folder / "record.jsonl").read_bytes() == before
    assert not read_run(played.folder)[0].amendments


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ('arms = ["B"]', "the frozen arms"),
        ("outcomes = []", "recorded outcomes"),
        ("[budgets.cell]\ntokens = 5", "the limits that cells were stopped by"),
        ("tasks = []", "the frozen tasks"),
        ("[analysis]\nalpha = 0.1", "the registered tests"),
        ("alpha = 0.1", "the level that p-values are held against"),
        ('question = "Another?"', "what the experiment asks"),
    ],
)
def test_what_is_frozen_is_refused_in_words_of_its_own(played: Frozen, key: str, words: str) -> None:
    """An amendment never touches it, and says what it is."""
    with pytest.raises(ExperimentError, match=f"an amendment never touches {words}"):
        made(played, HEAD + key + "\n" + CHECK)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("reason = 'x'\nchanges = 'y'\nreplicates = 2\n", "checks: missing"),
        (HEAD + "replicates = 2\nchecks = []\n", "checks"),
        (HEAD + CHECK, "it changes nothing"),
        (WHOLE.replace("replicates", "replicate"), "Did you mean 'replicates'"),
        (WHOLE.replace("replicates = 2", "replicates = 1"), "expected more than the 1 in force"),
        (WHOLE.replace("replicates = 2", "replicates = true"), "replicates"),
        (WHOLE.replace("replicates = 2", "void_retries = 1"), "expected more than the 1 in force"),
        (WHOLE.replace("at_most = 0", "at_most = nan"), "nan"),
        (WHOLE.replace("at_most = 0", "below = 0"), "never below 0"),
        (WHOLE.replace('"halted"', '"halts"'), "halts"),
        (WHOLE.replace('figure = "halted"', 'figure = "halted"\narm = "Q"'), "'Q'"),
        (WHOLE + CHECK, "stands 2 times"),
        (HEAD + CHECK + '[[withdrawn]]\ntask = "Fake/0"\nreason = "broken"\n', "unknown task 'Fake/0'"),
        (HEAD + CHECK + '[[notices]]\ncontrast = "B over P"\ntext = "x"\n', "unknown contrast 'B over P'"),
        (HEAD + CHECK + '[[notices]]\ntext = "x"\n', "either `contrast` or `ratio`"),
        (HEAD + CHECK + '[[contrasts]]\nname = "P over B"\ntreatment = "P"\ncontrol = "B"\n', "is there already"),
        (HEAD + CHECK + '[[contrasts]]\nname = "new"\ntreatment = "Q"\ncontrol = "B"\n', "'Q'"),
        ("reason = ", "not valid TOML"),
    ],
)
def test_bad_files_are_refused_with_the_reason(played: Frozen, text: str, words: str) -> None:
    """Each fault names the value or key, and nothing is appended."""
    before = (played.folder / "record.jsonl").read_bytes()
    with pytest.raises(ExperimentError) as caught:
        made(played, text)
    assert words in str(caught.value)
    assert (played.folder / "record.jsonl").read_bytes() == before


def test_before_the_first_session_there_is_nothing_to_amend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was never played is frozen anew instead."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = anyio.run(frozen_run, tmp_path)
    with pytest.raises(UsageError, match="freeze again"):
        made(frozen, WHOLE)


def test_a_run_under_way_can_not_be_amended(played: Frozen) -> None:
    """The record has one writer."""
    with (
        Record(played.folder, registration_digest=played.registration.digest),
        pytest.raises(BusyError),
    ):
        made(played, WHOLE)


def test_a_withdrawn_task_leaves_the_amended_reading_in_all_arms(played: Frozen) -> None:
    """The frozen reading keeps it; the amended one says so in a sentence and has two pairs."""
    task = f"{played.registration.cells[0].benchmark}/{played.registration.cells[0].task}"
    text = HEAD + CHECK + f'[[withdrawn]]\ntask = "{task}"\nreason = "its suite was wrong"\n'
    result = made(played, text)
    assert (result.added_cells, result.withdrawn_cells) == (0, 2)
    now = boards_of(played.folder)
    assert now.amended is not None
    assert (now.frozen.planned, now.amended.planned) == (6, 4)
    assert now.amended.sentences[0].startswith(
        f"Task {task} is withdrawn from all arms: its suite was wrong (amendment"
    )
    assert now.amended.status == "final"
    with pytest.raises(ExperimentError, match="unknown task"):
        made(played, text)


def test_notices_stand_at_the_number_in_both_readings(played: Frozen) -> None:
    """A correction is a qualifier from here on, with the amendment that made it."""
    made(played, HEAD + CHECK + '[[notices]]\ncontrast = "P over B"\ntext = "the clock was off"\n')
    now = boards_of(played.folder)
    assert now.amended is not None
    for board in (now.frozen, now.amended):
        assert board.contrasts[0].qualifiers[0].startswith("the clock was off (amendment 1 of 20")


def test_added_tests_are_shown_apart_and_say_by_which_amendment(played: Frozen) -> None:
    """A late contrast is outside the family; a late ratio carries its date."""
    made(
        played,
        HEAD
        + CHECK
        + '[[contrasts]]\nname = "late"\ntreatment = "B"\ncontrol = "P"\n'
        + '[[ratios]]\nname = "cost"\ntreatment = "P"\ncontrol = "B"\nquantity = "tokens"\nalternative = "two-sided"\n',
    )
    now = boards_of(played.folder)
    assert now.amended is not None
    assert [item.name for item in now.frozen.added] == []
    (late,) = now.amended.added
    assert (late.registered, late.p_holm) == (False, None)
    assert late.qualifiers[-1].startswith("by amendment 1 of ")
    (cost,) = now.amended.ratios
    assert cost.qualifiers[-1].startswith("added after the registration, by amendment 1 of ")
    assert now.frozen.ratios == ()


def test_later_amendments_build_on_earlier_ones(played: Frozen) -> None:
    """They are numbered; each is held against what is in force by then."""
    made(played, WHOLE)
    with pytest.raises(ExperimentError, match="expected more than the 2 in force"):
        made(played, WHOLE)
    assert made(played, WHOLE.replace("replicates = 2", "replicates = 3")).number == 2
    plan = declared(played.registration, read_run(played.folder)[0])
    assert len(plan.cells) == 18
    assert len(set(plan.cells)) == 18


def test_its_bytes_are_kept_and_its_content_is_json(played: Frozen) -> None:
    """The file is a blob of the run; the entry holds every default."""
    made(played, WHOLE)
    body = read_run(played.folder)[0].amendments[0]
    assert (played.folder / "blobs").exists()
    assert json.dumps(body["content"])
    assert body["content"]["void_retries"] is None


def test_an_amended_set_expires_the_bounds_of_the_frozen_one(played: Frozen, tmp_path: Path) -> None:
    """Bounds that were told before replicates were added hold for the set in force no more; those told after do."""
    stored = tmp_path / "stored.json"
    stored.write_text(json.dumps(boards_to_json(boards_of(played.folder))), "utf-8")
    assert expired_since(stored, boards_to_json(boards_of(played.folder))) == []
    made(played, WHOLE)
    now = boards_to_json(boards_of(played.folder))
    lines = expired_since(stored, now)
    assert [line.partition(": expired")[0] for line in lines] == [
        "bounds of the pass rates",
        *(f"P over B, bounds over {over} cells" for over in ("halted", "unscorable", "unjudged")),
    ]
    assert all("(6 cells), now SET " in line and line.endswith("(12 cells)") for line in lines)
    later = tmp_path / "later.json"
    later.write_text(json.dumps(now), "utf-8")
    assert not [line for line in expired_since(later, now) if line.startswith("as amended")]
    later.write_text(json.dumps({**now, "registration_id": "other"}), "utf-8")
    with pytest.raises(UsageError, match="the stored scoreboard is of other"):
        expired_since(later, now)


def test_the_report_tells_what_gated_an_amendment_and_where_it_was_committed(played: Frozen) -> None:
    """The checks with the values they found, and the commit; `none` where the file stood in no repository."""
    made(played, WHOLE)
    (item,) = boards_of(played.folder).amendments
    told = amendment_facts(item)
    assert told["checks_that_held"] == ["nothing was halted: 0"]
    assert told["git_commit"] == ["none"]
    repository = {"commit": "c0ffee", "dirty": ["a.toml"], "dirty_count": 1}
    commit, *dirt = amendment_facts(replace(item, repository=repository))["git_commit"]
    assert commit == "c0ffee"
    assert "a.toml" in " ".join(dirt)
    text = "\n".join(map(str, registration_parts(run_facts(played.folder))))
    assert "nothing was halted: 0" in text
