"""What the gateway serves: each wire, whole and streamed, with what is pinned pinned and what is counted counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import ModelServerError
from harness.messages import Message
from harness.walls import GatewayRules
from tests.gateway.cells import (
    ANTHROPIC,
    DECODING,
    NAME,
    OLLAMA,
    OPENAI,
    SEEDS,
    Answers,
    ask,
    chat,
    completion,
    gateway_cell,
    message,
)

pytestmark = pytest.mark.anyio


async def test_each_wire_serves_a_chat() -> None:
    """The same question on three wires reaches the model as the same request, but for its seed."""
    async with gateway_cell() as cell:
        openai = await ask(cell, OPENAI, chat())
        anthropic = await ask(cell, ANTHROPIC, message(max_tokens=1000))
        ollama = await ask(cell, OLLAMA, chat(stream=False))
        assert [reply.status for reply in (openai, anthropic, ollama)] == [200, 200, 200]
        assert openai.data["choices"][0]["message"]["content"] == "hello"
        assert anthropic.data["content"] == [{"type": "text", "text": "hello"}]
        assert ollama.data["message"]["content"] == "hello"
        assert [request.messages for request in cell.model.asked] == [(Message(role="user", content="hi"),)] * 3
        assert [request.decoding for request in cell.model.asked] == [DECODING] * 3
        assert [request.seed for request in cell.model.asked] == [SEEDS.seed(number) for number in (1, 2, 3)]
        assert cell.standings() == ["served"] * 3
        assert (cell.gateway.served, cell.gateway.refused, cell.gateway.failed) == (3, 0, 0)


async def test_usage_is_what_the_meter_was_charged() -> None:
    """Twelve tokens of prompt, two of them from a cache, and five of answer, on each wire."""
    async with gateway_cell() as cell:
        openai = (await ask(cell, OPENAI, chat())).data["usage"]
        anthropic = (await ask(cell, ANTHROPIC, message())).data["usage"]
        ollama = (await ask(cell, OLLAMA, chat(stream=False))).data
    assert (openai["prompt_tokens"], openai["completion_tokens"], openai["total_tokens"]) == (12, 5, 17)
    assert (anthropic["input_tokens"], anthropic["cache_read_input_tokens"], anthropic["output_tokens"]) == (10, 2, 5)
    assert (ollama["prompt_eval_count"], ollama["eval_count"]) == (12, 5)


async def test_a_failed_server_is_a_bad_gateway_and_an_event() -> None:
    """The agent is told that there is no answer, and nothing of the server's words, which may name its address."""
    async with gateway_cell(Answers(ModelServerError("the server at http://10.0.0.1 failed"))) as cell:
        reply = await ask(cell, OPENAI, chat())
        assert (reply.status, cell.standings()) == (502, ["failed"])
        assert b"10.0.0.1" not in reply.body


async def test_a_long_folder_is_no_obstacle(tmp_path: Path) -> None:
    """An address of a unix socket has 107 bytes at most; a state folder's path may have more."""
    folder = tmp_path / ("x" * 100) / ("y" * 100)
    folder.mkdir(parents=True)
    async with gateway_cell(folder=folder) as cell:
        assert (folder / "model.sock").is_socket()
        assert cell.gateway.socket == folder / "model.sock"
    assert list(folder.iterdir()) == []


async def test_a_wire_that_the_rules_leave_out_is_not_served() -> None:
    """Its path is as unknown as any other."""
    async with gateway_cell(rules=GatewayRules(wires=("openai",))) as cell:
        assert (await ask(cell, OLLAMA, chat())).status == 403
        assert (await ask(cell, OPENAI, chat())).status == 200


async def test_what_an_agent_asks_of_the_sampling_is_not_used_and_said_once() -> None:
    """Only a shorter answer counts: fewer tokens, and more texts that end it."""
    async with gateway_cell(Answers(completion())) as cell:
        body = chat(temperature=2.0, seed=7, max_tokens=9, stop=["STOP", "END"])
        await ask(cell, OPENAI, body)
        await ask(cell, OPENAI, {**body, "max_tokens": 10**9, "top_p": 0.1})
        first, second = (request.decoding for request in cell.model.asked)
        assert (first.num_predict, first.stop, first.temperature) == (9, ("END", "STOP"), 0.25)
        assert second.num_predict == DECODING.num_predict
        assert [event["unused"] for event in cell.events] == [["seed", "temperature"], ["top_p"]]


async def test_nothing_of_the_agent_s_headers_is_used_or_kept() -> None:
    """A key of any value is let be, and appears in no event."""
    async with gateway_cell() as cell:
        reply = await ask(cell, OPENAI, chat(), "Authorization: Bearer sk-hunter2", "X-Forwarded-For: 1.2.3.4")
        assert reply.status == 200
        assert "hunter2" not in json.dumps(cell.events)
        assert cell.events[0]["path"] == OPENAI


async def test_the_model_goes_by_its_one_name() -> None:
    """The agent's name for it is the one that it is shown, whatever the provider calls it."""
    async with gateway_cell(name="another") as cell:
        assert (await ask(cell, OPENAI, chat())).status == 403
        assert (await ask(cell, OPENAI, chat(model="another"))).data["model"] == "another"
    assert NAME != "another"
