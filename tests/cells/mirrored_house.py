"""A run of mirrored arms on fakes: a public tier, a model that answers by a function, and what each arm copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from cells.cell import transcript_path
from cells.freeze import Frozen
from harness.messages import Completion, Request
from harness.models.scripted import ScriptedProvider
from harness.transcript import read_transcript
from harness.values import CellKey, Usage
from harness.views import Fact, PublicReading
from referees.null import NullReferee
from tests.cells.houses import frozen_run, outcomes

__all__ = ["ARMS", "FOUR", "Checking", "finals", "frozen", "is_source", "replying", "states", "varied"]

ARMS = '["GR-SHAPE", "CF-SF", "TC"]'
FOUR = "[seat.options]\nrounds = 4"


class Checking(NullReferee):
    """A referee with a public tier: a candidate `x = N` fails with N facts, and is accepted at `x = 99`."""

    @asynccontextmanager
    async def public_check(self, task: Any, sealed: Any, rooms: Any) -> AsyncIterator[Any]:
        """A tier of ten assertions."""

        async def check(code: str) -> PublicReading:
            await anyio.sleep(len(code) % 3 * 0.002)
            last = code.rpartition("=")[2].strip()
            number = int(last) if last.isdigit() else 1
            facts = tuple(Fact(call=f"{task.details['entry_point']}({n})", expected=repr(n)) for n in range(number % 7))
            good = number == 99
            return PublicReading(reading="FAIL", accepted=good, passed=0, total=10, facts=() if good else facts)

        yield check


def replying(answer: Callable[[Request], Any]) -> Callable[[], ScriptedProvider]:
    """A model whose answer to a request is code, or an error that it raises."""

    def answered(request: Request) -> Completion:
        said = answer(request)
        if isinstance(said, BaseException):
            raise said
        usage = Usage(input=10, output=5, cache_read=0, cache_write_5m=0, cache_write_1h=0)
        text = f"```python\n{said}\n```"
        return Completion(text=text, stop="stop", usage=usage, served_model="script", latency_s=0.0)

    return lambda: ScriptedProvider(answered)


def varied(request: Request) -> str:
    """Code that differs from seed to seed."""
    return f"x = {(request.seed or 0) % 7}"


def is_source(request: Request) -> bool:
    """Whether the prompt is TC's: no failure instruction and no code. A first round can't be told apart."""
    return "Work out" not in request.messages[-1].content


async def frozen(folder: Path, **changes: Any) -> Frozen:
    """An experiment of three mirrored arms."""
    given = {"arms": ARMS, "treatment": "CF-SF", "control": "TC", "model": "", "seat_options": FOUR, **changes}
    return await frozen_run(folder, **given)


def states(folder: Path, arm: str) -> dict[tuple[str, int], tuple[Any, ...]]:
    """What the final cells of an arm published or copied, by task and round."""
    found = {}
    for outcome in outcomes(folder):
        if outcome.cell.arm == arm and outcome.is_final:
            for event in read_transcript(transcript_path(folder, outcome.cell, outcome.attempt)):
                if event["event"] == "mirror":
                    kept = (event["block_sha256"], event["code_sha256"], event["bullets"], event["source"])
                    found[outcome.cell.task, event["round"]] = kept
    return found


def finals(folder: Path) -> Counter[CellKey]:
    """How many final outcomes each cell has."""
    return Counter(outcome.cell for outcome in outcomes(folder) if outcome.is_final)
