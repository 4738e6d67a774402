"""A real engine behind the gateway, asked by the official client: the meter is the engine's own counts, to the token."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import openai
import pytest

from harness.boundary import MeteredModel
from harness.clock import SystemClock
from harness.messages import Decoding
from harness.meter import Bounds, Ledger, Meter, Scope
from harness.models.local import LocalProvider
from harness.models.local_engine import Engine
from harness.transcript import Transcript
from harness.values import Halt
from tests.gateway.cells import NAME, Cell, gateway_cell
from tests.gateway.forwarding import forwarded
from tests.models.asking import spec

pytestmark = [pytest.mark.anyio, pytest.mark.live, pytest.mark.timeout(120)]

BUDGET = 700
NUM_PREDICT = 40


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The engine's own usage of each answer, as it left the engine."""
    told: list[dict[str, Any]] = []
    ask = Engine.ask

    async def listened(self: Engine, body: Any, **given: Any) -> Any:
        answer = await ask(self, body, **given)
        if answer.error is None:
            told.append(json.loads(answer.reply)["usage"])
        return answer

    monkeypatch.setattr(Engine, "ask", listened)
    return told


@asynccontextmanager
async def engine_cell(tiny: Path, folder: Path, meter: Meter) -> AsyncIterator[tuple[Cell, str]]:
    """A gateway before the engine, and its address."""
    decoding = Decoding(num_predict=NUM_PREDICT, num_ctx=512)
    with Transcript(folder / "t.jsonl") as transcript:
        async with LocalProvider().open(spec("local", f"file:{tiny}")) as model:
            metered = MeteredModel(model, meter, transcript, served="tiny.gguf")
            async with (
                gateway_cell(metered, event=transcript.add, decoding=decoding) as cell,
                forwarded(cell.gateway.socket) as address,
            ):
                yield cell, address


def metered(**bounds: int) -> Meter:
    """A meter with one scope."""
    return Meter([Scope(name="cell", bounds=Bounds(**bounds), ledger=Ledger())], clock=SystemClock(), rates=None)


def asked(address: str, text: str, *, stream: bool = False) -> Any:
    """The usage of one chat, as the client has it."""
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0, timeout=60) as client:
        given: dict[str, Any] = {"model": NAME, "messages": [{"role": "user", "content": text}]}
        if not stream:
            return client.chat.completions.create(**given).usage
        chunks = client.chat.completions.create(**given, stream=True, stream_options={"include_usage": True})
        return [chunk.usage for chunk in chunks][-1]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_the_meter_is_the_engine_s_counts(
    tiny: Path, tmp_path: Path, told: list[dict[str, Any]], stream: bool
) -> None:
    """Three of them agree on each call: the engine, the meter, the client."""
    meter = metered()
    async with engine_cell(tiny, tmp_path, meter) as (_, address):
        for text in ("Say hello.", "x" * 100):
            usage = await anyio.to_thread.run_sync(partial(asked, address, text, stream=stream))
            assert usage.total_tokens == told[-1]["total_tokens"]
    assert meter.spend().charged_tokens == sum(each["total_tokens"] for each in told)
    assert (meter.spend().estimated, len(told)) == (False, 2)


async def test_a_token_budget_halts_within_one_call(tiny: Path, tmp_path: Path, told: list[dict[str, Any]]) -> None:
    """Three clients at once that never stop asking."""
    meter = metered(tokens=BUDGET)

    def greedy(address: str) -> None:
        try:
            for _ in range(100):
                asked(address, "Say hello.")
        except openai.APIError:
            return

    with anyio.CancelScope() as seat:
        meter.attach(seat.cancel)
        async with engine_cell(tiny, tmp_path, meter) as (_, address), anyio.create_task_group() as clients:
            for _ in range(3):
                clients.start_soon(partial(anyio.to_thread.run_sync, greedy, address, abandon_on_cancel=True))
    assert isinstance(meter.halted, Halt)
    assert (meter.halted.limit, meter.blamed) == ("tokens", None)
    spend, largest = meter.spend(), max(each["total_tokens"] for each in told)
    assert (spend.estimated, spend.calls) == (False, len(told))
    assert spend.charged_tokens == sum(each["total_tokens"] for each in told)
    assert BUDGET <= spend.charged_tokens < BUDGET + largest


async def test_a_prompt_that_does_not_fit_is_told_and_not_void(
    tiny: Path, tmp_path: Path, told: list[dict[str, Any]]
) -> None:
    """The agent may ask with less."""
    meter = metered()
    async with engine_cell(tiny, tmp_path, meter) as (cell, address):
        with pytest.raises(openai.BadRequestError, match="maximum context length is 512 tokens"):
            await anyio.to_thread.run_sync(asked, address, "x" * 2000)
        await anyio.to_thread.run_sync(asked, address, "Say hello.")
        assert (cell.gateway.refused, cell.gateway.served) == (1, 1)
    assert (meter.blamed, meter.spend().calls) == (None, 2)
    assert meter.spend().charged_tokens == told[0]["total_tokens"]
