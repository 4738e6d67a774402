"""
The example of forced revision, from its file to its reading, on fakes: a correct state destroyed by a stale trace and
intercepted when guarded, a reply that is no action, bytes restored.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from typer.main import get_command

from cells.cli import app
from cells.freeze import freeze
from cells.run import run
from cells.verifying import verify_run
from harness.blobs import BlobStore
from harness.clock import SystemClock
from harness.transcript import read_transcript, transcript_path
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run, outcomes
from tests.cells.revision_runs import EXAMPLE, HereReferee, backend, example

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    """One loop is enough here: the seat's own tests run on both."""
    return "asyncio"


async def played(tmp_path, monkeypatch, ending="finished", **changes):
    """The example's run, to its end."""
    with fakes(monkeypatch, backend(), referees_evalplus=HereReferee):
        frozen = await freeze(example(tmp_path, **changes), tmp_path / "runs", clock=SystemClock())
        assert await run(frozen.folder, watcher=Quiet()) == ending
    return frozen.folder


def told(folder, *words):
    """What `proctor revisions` says of a run, and how it ends."""
    done = CliRunner().invoke(get_command(app), ["revisions", str(folder), *words])
    return done.exit_code, done.stdout


def shipped(folder):
    """The judged file of each cell, by arm and task."""
    store = BlobStore(folder / "blobs")
    return {(one.cell.arm, one.cell.task): store.get_tree(one.exhibit).text("solution.py") for one in outcomes(folder)}


async def test_a_stale_trace_destroys_what_the_guard_keeps(tmp_path, monkeypatch):
    """The figures of the example's page, from the command; the run verifies, and a second reading says the same."""
    folder = await played(tmp_path, monkeypatch)
    code, text = told(folder, "--json")
    assert code == 0
    found = json.loads(text)
    arms = {arm["arm"]: arm for arm in found["arms"]}
    assert {name: (arm["harmed"], arm["correct_starts"], arm["lost"]) for name, arm in arms.items()} == {
        "none": (0, 5, 0), "current": (0, 5, 0), "stale": (4, 5, 4), "guarded": (0, 5, 0),
    }  # fmt: skip
    assert [(at["correct"], at["ever"]) for at in arms["stale"]["by_revision"]] == [(5, 5), (1, 5), (1, 5), (1, 5)]
    assert arms["guarded"]["handlings"] == {"rejected": 15}
    assert all(arm["notes"] == {"no-action": 3} for arm in arms.values())
    (kept,) = [
        item
        for item in found["contrasts"]
        if (item["measure"], item["treatment"], item["control"]) == ("kept", "guarded", "stale")
    ]
    assert (kept["pairs"], kept["b01"], kept["b10"]) == (5, 4, 0)
    assert verify_run(folder).ok
    assert told(folder, "--json") == (code, text)
    code, text = told(folder)
    assert code == 0
    assert "0.800 (4/5)" in text
    reported = CliRunner().invoke(get_command(app), ["report", str(folder)])
    assert reported.exit_code == 0, reported.output
    for name in ("report.md", "report.html"):
        page = (folder / name).read_text("utf-8")
        assert ">Revisions<" in page or "## Revisions" in page
        assert "0.800 (4/5)" in page


async def test_prose_changes_nothing_and_nothing_is_lost_in_bytes(tmp_path, monkeypatch):
    """What ships under the guard, and of the task whose replies are prose, is `right.py` byte for byte."""
    files = shipped(await played(tmp_path, monkeypatch))
    right = {path.parents[1].name: path.read_text("utf-8") for path in (EXAMPLE / "repairs").glob("*/*/right.py")}
    for (arm, task), code in files.items():
        assert (code == right[task]) is (arm != "stale" or task == "Grade")


async def test_restored_bytes_are_those_that_were_verified(tmp_path, monkeypatch):
    """With `restore`, what the stale trace destroyed ships all the same, and the loss is still told."""
    folder = await played(tmp_path, monkeypatch, **{"restore = false": "restore = true"})
    right = {path.parents[1].name: path.read_text("utf-8") for path in (EXAMPLE / "repairs").glob("*/*/right.py")}
    assert all(code == right[task] for (_arm, task), code in shipped(folder).items())
    arms = {arm["arm"]: arm for arm in json.loads(told(folder, "--json")[1])["arms"]}
    assert (arms["stale"]["harmed"], arms["stale"]["lost"], arms["stale"]["restored"]) == (0, 4, 4)
    assert arms["stale"]["sound"] == 5


async def test_refreshed_evidence_is_a_run_of_its_own(tmp_path, monkeypatch):
    """The guard runs again on the state: its evidence has that code's digest and another execution than the start's."""
    folder = await played(tmp_path, monkeypatch, **{'"reject"': '"refresh"'})
    for outcome in outcomes(folder):
        if outcome.cell.arm != "guarded":
            continue
        events = list(read_transcript(transcript_path(folder, outcome.cell, outcome.attempt)))
        start = next(event for event in events if event["event"] == "start")
        for asked in (event for event in events if event["event"] == "revision"):
            assert asked["evidence_handling"] == "refreshed"
            assert asked["evidence"]["code_sha256"] == start["code_sha256"] == asked["state_sha256"]
            assert asked["evidence"]["execution"] != start["reading"]["execution"]
            assert asked["evidence"]["suite"] == start["reading"]["suite"]


async def test_what_the_command_refuses(tmp_path, monkeypatch):
    """A cluster that nobody registered, and a run of another seat: each with what was expected."""
    from harness.errors import UsageError

    folder = await played(tmp_path, monkeypatch)
    done = CliRunner().invoke(get_command(app), ["revisions", str(folder), "--cluster", "tsk"])
    assert isinstance(done.exception, UsageError)
    assert "unknown cluster 'tsk'" in str(done.exception)
    with fakes(monkeypatch, fake_backend(tmp_path)):
        other = await frozen_run(tmp_path / "other")
        await run(other.folder, watcher=Quiet())
    done = CliRunner().invoke(get_command(app), ["revisions", str(other.folder)])
    assert "expected a run of seat 'revise'" in str(done.exception)


async def test_comparisons_wait_for_the_whole_record(tmp_path, monkeypatch):
    """A VOID cell is unseen; with an outcome missing the counts are told, no test is, and the command ends with 1."""
    failing = 'replies = ["ACTION: KEEP"]\nfail = [{ match = "def window" }]'
    folder = await played(tmp_path, monkeypatch, "incomplete", **{'replies = ["ACTION: KEEP"]': failing})
    code, text = told(folder, "--json")
    assert code == 0
    assert [(arm["seen"], arm["declared"]) for arm in json.loads(text)["arms"]] == [(4, 5)] * 4
    lines = (folder / "record.jsonl").read_bytes().splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines) if b'"cell.ended"' in line and b'"DECLARED"' in line)
    (folder / "record.jsonl").write_bytes(b"".join(lines[:last]))
    (folder / "head").unlink()
    code, text = told(folder, "--json")
    assert code == 1
    assert json.loads(text)["contrasts"] is None
    code, text = told(folder)
    assert code == 1
    assert "comparisons are withheld until the record is whole" in text


def test_the_repairs_are_what_their_tool_makes(tmp_path):
    """Each folder of the example comes out again byte for byte; a task without a defect to plant is said."""
    tasks = tmp_path / "tasks.jsonl"
    plain = {"contract": "", "plus_input": [], "atol": 0, "base_input": [[1]]}
    dull = {
        "task_id": "Same",
        "prompt": "def same(x):\n",
        "entry_point": "same",
        "canonical_solution": "    return x\n",
    }
    tasks.write_text((EXAMPLE / "tasks.jsonl").read_text("utf-8") + json.dumps({**dull, **plain}) + "\n", "utf-8")
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "make_repairs.py"), str(tasks), str(tmp_path / "made")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("5 repairs in ")
    assert done.stderr == "Same: no defect that a public test sees\n"
    shipped_files, made = (
        {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (EXAMPLE / "repairs", tmp_path / "made")
    )
    assert made == shipped_files


@pytest.mark.parametrize("start", ["right", "wrong"])
def test_starts_are_what_they_are_called(start):
    """Each right start passes both tiers, each wrong one fails the public tier."""
    from harness.tasks.folder import load_folders
    from tests.cells.revision_runs import _said

    for task in load_folders(EXAMPLE / "repairs"):
        code = task.open.environment.text(f"{start}.py")
        assert _said(code, task.sealed, "base_input").accepted is (start == "right")
        assert _said(code, task.sealed, "base_input", "plus_input").accepted is (start == "right")
