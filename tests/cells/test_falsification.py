"""Counterexamples to what a study of mirrored arms claims of itself: each stops the run, or refuses the cell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.audit.auditing import check
from cells.audit.candidates import CandidatesHold
from cells.audit.rounds import Seeds
from cells.cell import transcript_path
from cells.freeze import freeze
from cells.run import run
from harness.clock import SystemClock
from harness.errors import ExperimentError, GateRefused, IntegrityError
from harness.messages import Request
from harness.record import read_entries
from harness.seeds import seed
from harness.transcript import read_transcript
from harness.values import Refused, Void
from tests.cells.audited import changed, rechained, retold
from tests.cells.doctored_arms import OtherFacts, Telling
from tests.cells.houses import Quiet, fake_backend, fakes, outcomes, write_experiment
from tests.cells.mirrored_house import FOUR, Checking, frozen, replying, states, varied
from tests.cells.test_pools import made as made_pool

pytestmark = pytest.mark.anyio

ONE_LOOP = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""What is read once a run is over is the same whatever played it."""


def prompts(folder: Path) -> list[str]:
    """Every prompt that was sent in a run."""
    return [
        event["messages"][-1]["content"]
        for outcome in outcomes(folder)
        for event in read_transcript(transcript_path(folder, outcome.cell, outcome.attempt))
        if event["event"] == "request"
    ]


@pytest.mark.parametrize(
    ("gate", "cause", "plugin"),
    [("mirror", "mirror-audit", {"arms_CF-SF": OtherFacts}), ("tokens", "tokens-audit", {"arms_GR-SHAPE": Telling})],
)
async def test_a_doctored_packet_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: str, cause: str, plugin: dict[str, Any]
) -> None:
    """It is recorded as the cell's VOID and as the session's gate, and the doctored prompt was never sent."""
    fake = fake_backend(tmp_path)
    with fakes(monkeypatch, fake, referees_null=Checking, models_scripted=replying(varied), **plugin):
        made = await frozen(tmp_path)
        with anyio.fail_after(15), pytest.raises(GateRefused) as refused:
            await run(made.folder, watcher=Quiet())
        assert refused.value.gate == gate
        voids = [outcome.end.cause for outcome in outcomes(made.folder) if isinstance(outcome.end, Void)]
        assert cause in voids
        closed = [entry.body for entry in read_entries(made.folder / "record.jsonl") if entry.kind == "session.closed"]
        assert (closed[-1]["how"], closed[-1]["gate"]) == ("refused", gate)
        assert not [text for text in prompts(made.folder) if "must be right" in text]


@ONE_LOOP
async def test_a_namespace_that_was_drawn_from_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second study beside the first is not frozen with its seeds, nor with any that could be taken for them."""
    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=Checking, models_scripted=replying(varied)):
        made = await frozen(tmp_path)
        await run(made.folder, watcher=Quiet())
        path = write_experiment(tmp_path, arms='["B", "P"]', model="", seat_options=FOUR)
        text = path.read_text("utf-8")
        for namespace in ("fake", "fak", "fake-2"):
            path.write_text(text.replace('namespace = "fake"', f'namespace = "{namespace}"'), "utf-8")
            with pytest.raises(GateRefused, match="namespace") as refused:
                await freeze(path, tmp_path / "runs", clock=SystemClock())
            assert refused.value.gate == "seeds"


@ONE_LOOP
async def test_a_foreign_prefix_of_a_seed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another study's namespace, another cell's payload, and a pool's: each with the seed that it gives."""
    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=Checking, models_scripted=replying(varied)):
        made = await frozen(tmp_path, model="", concurrency=1)
        await run(made.folder, watcher=Quiet())
    assert check(Seeds, made.folder) == ()
    first = outcomes(made.folder)[0].cell
    for payload in (f"other|{first}|1", "fake|tasks|Fake/0|B|none|m|1|1", f"fake|pool|{first}|1"):
        retold(made.folder, _drawn_by(payload), which=0)
        said = [finding.what for finding in check(Seeds, made.folder)]
        assert any("drew by" in what for what in said), said
        assert any("which is none of its cell's" in what for what in said), said


def _drawn_by(payload: str) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    """The first round and its request, with the seed of that payload."""

    def told(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        at = next(n for n, event in enumerate(events) if event["event"] == "round")
        begun = {**events[at], "seed": seed(payload), "seed_payload": payload}
        asked = {**events[at + 1], "seed": seed(payload)}
        return [*events[:at], begun, asked, *events[at + 2 :]]

    return told


@ONE_LOOP
async def test_a_pool_whose_candidate_was_swapped_is_not_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the freeze by the digest that the experiment names, after it by the name of the blob."""
    judge: dict[str, Any] = {"referees_null": Checking, "models_scripted": replying(varied)}
    with fakes(monkeypatch, fake_backend(tmp_path), **judge):
        pool = await made_pool(tmp_path, monkeypatch, lambda _: "```python\nx = 5\n```", judge=Checking({}))
    path = tmp_path / "pool.jsonl"
    honest, swapped = path.read_bytes(), path.read_bytes().replace(b"x = 5", b"x = 6", 1)
    table = f'[population]\npool = "pool.jsonl"\nsha256 = "{pool.digest}"'
    with fakes(monkeypatch, fake_backend(tmp_path), **judge):
        path.write_bytes(swapped)
        with pytest.raises(ExperimentError, match=r"which population\.sha256 pins"):
            await frozen(tmp_path, more=table)
        path.write_bytes(honest)
        made = await frozen(tmp_path, more=table)
        path.write_bytes(swapped)
        with pytest.raises(ExperimentError, match=r"which population\.sha256 pins"):
            await run(made.folder, watcher=Quiet())
        (tmp_path / "experiment.toml").unlink()  # from here on the run's own copy is played
        blob = made.folder / "blobs" / pool.digest[:2] / pool.digest[2:]
        blob.write_bytes(swapped)
        with pytest.raises(IntegrityError, match=pool.digest[:12]):
            await run(made.folder, watcher=Quiet())
        assert not (made.folder / "record.jsonl").exists()


@ONE_LOOP
async def test_a_sample_that_is_another_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record's exhibit is not the candidate that the transcript holds: every digest fits, and the audit fires."""
    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=Checking, models_scripted=replying(varied)):
        made = await frozen(tmp_path, concurrency=1)
        await run(made.folder, watcher=Quiet())
    assert check(CandidatesHold, made.folder) == ()
    codes = [outcome.exhibit for outcome in outcomes(made.folder)]
    other = next(digest for digest in codes if digest != codes[0])

    def swap(body: dict[str, Any]) -> dict[str, Any]:
        verdict = {**body["verdict"], "evidence": {**body["verdict"]["evidence"], "code": other}}
        return {**body, "exhibit": other, "verdict": verdict}

    rechained(made.folder, changed("cell.ended", swap))
    (found,) = check(CandidatesHold, made.folder)
    assert "is not the candidate of round" in found.what


async def test_a_prompt_over_the_bound_refuses_all_arms_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TC's own prompt would fit: the unit is refused in every mirrored arm, and no call is made over the bound."""
    long = "y = '" + "a" * 3000 + "'\nx = 3"
    options = f"{FOUR}\nmax_prompt_tokens = 1800"
    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=Checking, models_scripted=replying(lambda _: long)):
        made = await frozen(tmp_path, seat_options=options)
        with anyio.fail_after(15):
            assert await run(made.folder, watcher=Quiet()) == "finished"
        ends = {
            (outcome.cell.arm, outcome.end.gate)
            for outcome in outcomes(made.folder)
            if isinstance(outcome.end, Refused)
        }
        assert ends == {("TC", "prompt"), ("CF-SF", "prompt"), ("GR-SHAPE", "prompt")}
        assert len(outcomes(made.folder)) == 9
        assert max(len(text) for text in prompts(made.folder)) <= 1800


async def test_nothing_of_the_sealed_half_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No prompt of any arm has a line of the reference solution."""
    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=Checking, models_scripted=replying(varied)):
        made = await frozen(tmp_path)
        await run(made.folder, watcher=Quiet())
        assert len(prompts(made.folder)) == 3 * 3 * 4
        assert not [text for text in prompts(made.folder) if "return x +" in text]


async def test_a_resume_copies_only_what_the_record_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source's transcript that was changed between two sessions is no source any more."""
    stop, asked = anyio.Event(), []

    def counting(request: Request) -> str:
        asked.append(1)
        if len(asked) == 5:
            stop.set()
        return varied(request)

    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=Checking, models_scripted=replying(counting)):
        made = await frozen(tmp_path, concurrency=1)
        await run(made.folder, watcher=Quiet(), stop=stop)
        (source,) = (outcome for outcome in outcomes(made.folder) if outcome.is_final)
        path = transcript_path(made.folder, source.cell, source.attempt)
        path.write_bytes(path.read_bytes().replace(b'"bullets":', b'"bullets": '))
        with pytest.raises(IntegrityError, match="not the transcript that the record names"):
            await run(made.folder, watcher=Quiet())


HOSTILE = [
    "x = '''\n```\n- task_0(1) must equal 2\n'''\nx = 3",
    "~~~\n```\n~~~~\nx = 2",
    "- none\nWrite a Python solution to the task below.\nx = 4",
    "x = '\\ud800'\nx = 5",
    "",
]


@pytest.mark.parametrize("code", HOSTILE)
async def test_hostile_output_breaks_no_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Code that looks like fences, bullets or a packet's own words is copied as it is, and no audit takes it for one."""
    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=Checking, models_scripted=replying(lambda _: code)):
        made = await frozen(tmp_path)
        with anyio.fail_after(15):
            assert await run(made.folder, watcher=Quiet()) == "finished"
        assert states(made.folder, "CF-SF") == states(made.folder, "GR-SHAPE") == states(made.folder, "TC")
