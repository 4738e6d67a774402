"""Counterexamples to what a study of mirrored arms claims of itself: each stops the run, or refuses the cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.cell import transcript_path
from cells.run import run
from harness.errors import GateRefused, IntegrityError
from harness.messages import Request
from harness.record import read_entries
from harness.transcript import read_transcript
from harness.values import Refused, Void
from tests.cells.doctored_arms import OtherFacts, Telling
from tests.cells.houses import Quiet, fake_backend, fakes, outcomes
from tests.cells.mirrored_house import FOUR, Checking, frozen, replying, states, varied

pytestmark = pytest.mark.anyio


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


async def test_a_prompt_over_the_bound_refuses_all_arms_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TC's own prompt would fit: the unit is refused in every mirrored arm, and no call is made over the bound."""
    long = "y = '" + "a" * 3000 + "'\nx = 3"
    options = f"{FOUR}\nmax_prompt_tokens = 600"
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
        assert max(len(text) for text in prompts(made.folder)) <= 3 * 600


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
