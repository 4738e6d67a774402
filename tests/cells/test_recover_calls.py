"""What a try that was cut off had spent, where several calls were in flight at once."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

from cells.recover import spend_of_transcript
from harness.clock import SystemClock
from harness.transcript import Transcript
from harness.values import CellKey, Usage

CELL = CellKey(benchmark="b", task="t", arm="a", extras="none", model="m", replicate=1)


def used(tokens: int) -> dict[str, int | None]:
    """A known usage of so many tokens."""
    return asdict(replace(Usage.zero(), input=tokens))


def test_each_answer_is_of_its_own_request(tmp_path: Path) -> None:
    """The first failed with an unknown usage, the second was answered before it, and the third never was."""
    house = SimpleNamespace(clock=SystemClock(), rates=lambda _model: None)
    with Transcript(tmp_path / "t.jsonl") as transcript:
        for call, estimate in enumerate((1000, 2000, 4000)):
            transcript.add("request", call=call, estimate=estimate)
        transcript.add("completion", call=1, text="four", usage=used(7))
        transcript.add("call_failed", call=0, usage=asdict(Usage()))
    spend = spend_of_transcript(house, CELL, tmp_path / "t.jsonl")  # type: ignore[arg-type]
    assert (spend.calls, spend.charged_tokens, spend.output_bytes) == (3, 1000 + 7 + 4000, 4)
    assert spend.estimated
