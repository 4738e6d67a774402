"""An arm with a nonce: its echo lets a cell stand, and without one the cell is VOID and tells nothing of the arm."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cells.run import run
from harness.briefing import SENTENCE, briefing_code, echoed
from harness.canonical import digest_bytes
from harness.messages import Completion, Request, ToolCall
from harness.models.scripted import ScriptedProvider
from harness.values import Declared, Halt, Usage, Void
from tests.arms.folders import DIET, text_files, write_folder
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run, outcomes

pytestmark = pytest.mark.anyio

ARMS = {"arms": '["B", { folder = "arms/diet" }]', "treatment": "diet", "control": "B", "model": ""}


def told(request: Request) -> str:
    """The code that a prompt gives, or nothing."""
    found = re.search(r"The code of this page is (\w+)\.", request.messages[-1].content)
    return found.group(1) if found else ""


def reply(text: str, *calls: ToolCall) -> Completion:
    """A whole answer with known usage."""
    usage = Usage(input=10, output=5, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    return Completion(text=text, stop="stop", usage=usage, served_model="script", latency_s=0.0, tool_calls=calls)


def diet(folder: Path) -> None:
    """The experiment's own arm, which wants its code echoed."""
    write_folder(folder / "arms", "diet", text_files("diet", more="nonce = true"))


async def test_an_echo_lets_the_cell_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code is each cell's own, derived from the namespace, the cell and the arm; the other arm needs none."""
    codes: list[str] = []

    def answer(request: Request) -> Completion:
        codes.append(told(request))
        return reply(f"# {codes[-1].upper()}\n```python\nx = 1\n```")

    diet(tmp_path)
    with fakes(monkeypatch, fake_backend(tmp_path), models_scripted=lambda: ScriptedProvider(answer)):
        frozen = await frozen_run(tmp_path, **ARMS)
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
    played = outcomes(frozen.folder)
    assert all(isinstance(outcome.end, Declared) for outcome in played)
    digest = digest_bytes(DIET.encode())
    wanted = {briefing_code("fake", str(outcome.cell), digest) for outcome in played if outcome.cell.arm == "diet"}
    assert set(codes) == {"", *wanted}
    assert len(wanted) == 3


async def test_no_echo_is_void_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never a FAIL: no verdict and no number. A resume tries again, and an echo then lets the cell stand."""
    deaf = True

    def answer(request: Request) -> Completion:
        return reply("```python\nx = 1\n```" if deaf else f"# {told(request)}\n```python\nx = 1\n```")

    diet(tmp_path)
    with fakes(monkeypatch, fake_backend(tmp_path), models_scripted=lambda: ScriptedProvider(answer)):
        frozen = await frozen_run(tmp_path, **ARMS)
        assert await run(frozen.folder, watcher=Quiet()) == "incomplete"
        played = outcomes(frozen.folder)
        void = [outcome for outcome in played if outcome.cell.arm == "diet"]
        assert len(void) == 6
        for outcome in void:
            assert isinstance(outcome.end, Void)
            assert outcome.end.cause == "no briefing"
            assert "of arm 'diet': nothing tells that its text was loaded (DECLARED)" in outcome.end.detail
            assert (outcome.verdict, outcome.passed, outcome.spend.calls > 0) == (None, None, True)
        assert {outcome.outcome_class for outcome in played if outcome.cell.arm == "B"} == {"PASS"}
        deaf = False
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
    assert [outcome.outcome_class for outcome in outcomes(frozen.folder)[9:]] == ["PASS"] * 3


async def test_a_halt_without_an_echo_is_void_and_one_before_the_seat_sat_down_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seat that was stopped had its prompt; one that had no turn was never shown anything."""
    diet(tmp_path)
    more = "[budgets.arm]\ncalls = 1"
    with fakes(monkeypatch, fake_backend(tmp_path), models_scripted=lambda: ScriptedProvider(lambda _r: reply("no"))):
        frozen = await frozen_run(tmp_path, **ARMS, more=more, concurrency=1, retries=0)
        await run(frozen.folder, watcher=Quiet())
    ends = [outcome.end for outcome in outcomes(frozen.folder) if outcome.cell.arm == "diet"]
    assert isinstance(ends[0], Void)
    assert (ends[0].cause, ends[0].detail.endswith("(HALT)")) == ("no briefing", True)
    assert all(isinstance(end, Halt) for end in ends[1:])


async def test_a_scripted_seat_echoes_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is a reply of its model's, not what the seat itself says."""
    diet(tmp_path)
    cells = [f"tasks|Fake/{number}|diet|none|m|1" for number in range(3)]
    codes = " ".join(briefing_code("fake", cell, digest_bytes(DIET.encode())) for cell in cells)
    arms = {**ARMS, "arms": '["plain", { folder = "arms/diet" }]', "control": "plain", "seat": "scripted"}
    for said, expected in ((codes, {"PASS"}), ("nothing", {"VOID"})):
        folder = tmp_path / said[:5]
        diet(folder)
        options = f'[seat.options]\nsteps = [{{ ask = "{codes}" }}, {{ write = {{ "solution.py" = "x = 1" }} }}]'
        model = f'[models.options]\nreplies = ["{said}"]'
        with fakes(monkeypatch, fake_backend(folder)):
            frozen = await frozen_run(folder, **{**arms, "model": model}, seat_options=options, retries=0)
            await run(frozen.folder, watcher=Quiet())
        played = outcomes(frozen.folder)
        assert {outcome.outcome_class for outcome in played if outcome.cell.arm == "diet"} == expected
        assert {outcome.outcome_class for outcome in played if outcome.cell.arm == "plain"} == {"PASS"}


def test_an_echo_is_looked_for_in_replies_alone() -> None:
    """In the text and in the arguments of tool calls; not in what was sent."""
    assert echoed([{"event": "completion", "text": "# ABC123", "tool_calls": []}], "abc123")
    assert echoed([{"event": "completion", "text": "", "tool_calls": [{"arguments": {"text": "# abc123"}}]}], "abc123")
    assert not echoed([{"event": "request", "messages": ["abc123"]}, {"event": "completion", "text": "abc"}], "abc123")
    assert not echoed([], "abc123")


def test_the_sentence_is_frozen() -> None:
    """It was used as it stands: another sentence would be another arm."""
    assert digest_bytes(SENTENCE.encode()) == "5d6d7ae6ec2036c160cc319d7d5adf3b045454ec564b67cee462708a9cdf429f"
