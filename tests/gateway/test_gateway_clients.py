"""The official clients, as agent programs use them, against the gateway: whole, streamed, with tools, and refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import anthropic
import anyio.to_thread
import ollama
import openai
import pytest

from harness.errors import ContentRefused, ModelServerError, WindowExceeded
from harness.messages import Message, Request
from harness.values import Usage
from tests.gateway.cells import NAME, Answers, Cell, calling, completion, gateway_cell
from tests.gateway.forwarding import forwarded

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """What is tried here are the clients, each in a thread: one event loop does."""
    return "asyncio"


T = TypeVar("T")
USER = {"role": "user", "content": "hi"}
RUN = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
FUNCTION = {"type": "function", "function": {"name": "run", "description": "Runs.", "parameters": RUN}}


def tool_then_text(request: Request) -> Any:
    """A call of `run` at first, and when it was answered, a text."""
    return completion("done") if any(said.role == "tool" for said in request.messages) else calling()


@asynccontextmanager
async def addressed(model: Any = None, **changes: Any) -> AsyncIterator[tuple[Cell, str]]:
    """A gateway, and the address that an agent is given."""
    async with gateway_cell(Answers(model), **changes) as cell, forwarded(cell.gateway.socket) as address:
        yield cell, address


async def in_thread(work: Callable[[], T]) -> T:
    """What a blocking client gets."""
    return await anyio.to_thread.run_sync(work)


def openai_client(address: str) -> openai.OpenAI:
    """As an agent makes it."""
    return openai.OpenAI(base_url=f"{address}/v1", api_key="sk-none", max_retries=0, timeout=10)


def anthropic_client(address: str) -> anthropic.Anthropic:
    """As an agent makes it."""
    return anthropic.Anthropic(base_url=address, api_key="sk-none", max_retries=0, timeout=10)


@contextmanager
def ollama_client(address: str) -> Iterator[ollama.Client]:
    """As an agent makes it; it has no end of its own."""
    client = ollama.Client(host=address, timeout=10)
    try:
        yield client
    finally:
        client._client.close()


def conversation(model: Any) -> tuple[Message, ...]:
    """What the model was told last."""
    return model.asked[-1].messages


TOLD_AND_ANSWERED = ["user", "assistant", "tool"]


async def test_openai_whole() -> None:
    """Text, reason and usage."""
    async with addressed() as (cell, address):

        def work() -> Any:
            with openai_client(address) as client:
                return client.chat.completions.create(model=NAME, messages=[USER], temperature=0, max_tokens=5)

        answer = await in_thread(work)
        assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("hello", "stop")
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (12, 5)
        assert cell.model.asked[0].decoding.num_predict == 5


@pytest.mark.parametrize("delay_s", [0.0, 0.3], ids=["at once", "after signs of life"])
async def test_openai_streamed(delay_s: float) -> None:
    """The same in pieces, with the usage at the end."""
    async with addressed(ping_s=0.05) as (cell, address):
        cell.model.delay_s = delay_s

        def work() -> list[Any]:
            with openai_client(address) as client:
                return list(
                    client.chat.completions.create(
                        model=NAME, messages=[USER], stream=True, stream_options={"include_usage": True}
                    )
                )

        chunks = await in_thread(work)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "hello"
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
        assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (12, 5)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_openai_tools(stream: bool) -> None:
    """A call, its result sent back as the client's own objects, and the answer to that."""
    async with addressed(tool_then_text) as (cell, address):

        def asked(client: openai.OpenAI, messages: list[Any]) -> Any:
            if not stream:
                made = client.chat.completions.create(model=NAME, messages=messages, tools=[FUNCTION])
                return made.choices[0].message
            with client.chat.completions.stream(model=NAME, messages=messages, tools=[FUNCTION]) as events:
                return events.get_final_completion().choices[0].message

        def work() -> Any:
            with openai_client(address) as client:
                said = asked(client, [USER])
                (call,) = said.tool_calls
                assert (call.function.name, call.function.arguments) == ("run", '{"command": "ls"}')
                back = {"role": "assistant", "content": said.content, "tool_calls": [plain_call(call)]}
                return asked(client, [USER, back, {"role": "tool", "tool_call_id": call.id, "content": "x"}])

        assert (await in_thread(work)).content == "done"
        told = conversation(cell.model)
        assert [said.role for said in told] == TOLD_AND_ANSWERED
        assert (told[1].tool_calls[0].arguments, told[2].tool_name) == ({"command": "ls"}, "run")


def plain_call(call: Any) -> dict[str, Any]:
    """A call without what the client adds to it for itself."""
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.function.name, "arguments": call.function.arguments},
    }


async def test_openai_takes_its_own_messages_back() -> None:
    """Many an agent sends back the whole message that it got, with every field that was empty."""
    async with addressed(tool_then_text) as (cell, address):

        def work() -> Any:
            with openai_client(address) as client:
                said = client.chat.completions.create(model=NAME, messages=[USER], tools=[FUNCTION])
                back = said.choices[0].message
                result = {"role": "tool", "tool_call_id": back.tool_calls[0].id, "content": "x", "name": "run"}
                for message in (back, back.model_dump()):
                    made = client.chat.completions.create(model=NAME, messages=[USER, message, result])
                    assert made.choices[0].message.content == "done"
                return made

        await in_thread(work)
        assert cell.standings() == ["served"] * 3


async def test_anthropic_whole() -> None:
    """Text, reason and usage by direction."""
    async with addressed(completion(stop="length")) as (cell, address):

        def work() -> Any:
            with anthropic_client(address) as client:
                return client.messages.create(
                    model=NAME, max_tokens=7, system="Be brief.", messages=[USER], stop_sequences=["X"]
                )

        answer = await in_thread(work)
        assert (answer.content[0].text, answer.stop_reason) == ("hello", "max_tokens")
        usage = answer.usage
        assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (10, 2, 5)
        assert [said.role for said in conversation(cell.model)] == ["system", "user"]


@pytest.mark.parametrize("delay_s", [0.0, 0.3], ids=["at once", "after signs of life"])
async def test_anthropic_streamed(delay_s: float) -> None:
    """The client puts the same message together from the events."""
    async with addressed(ping_s=0.05) as (cell, address):
        cell.model.delay_s = delay_s

        def work() -> tuple[str, Any]:
            with (
                anthropic_client(address) as client,
                client.messages.stream(model=NAME, max_tokens=7, messages=[USER]) as stream,
            ):
                return "".join(stream.text_stream), stream.get_final_message()

        text, answer = await in_thread(work)
        assert (text, answer.content[0].text, answer.stop_reason) == ("hello", "hello", "end_turn")
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (10, 5)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("beta", [False, True], ids=["plain", "beta"])
async def test_anthropic_tools(stream: bool, beta: bool) -> None:
    """A call, its result sent back as the client's own objects, and the answer to that; by the beta's path too."""
    async with addressed(tool_then_text) as (cell, address):
        tool = {"name": "run", "description": "Runs.", "input_schema": RUN, "cache_control": {"type": "ephemeral"}}

        def asked(client: anthropic.Anthropic, messages: list[Any]) -> Any:
            side = client.beta.messages if beta else client.messages
            given = {"model": NAME, "max_tokens": 50, "messages": messages, "tools": [tool]}
            if not stream:
                return side.create(**given)
            with side.stream(**given) as events:
                return events.get_final_message()

        def work() -> Any:
            with anthropic_client(address) as client:
                said = asked(client, [USER])
                (call,) = said.content
                assert (said.stop_reason, call.name, call.input) == ("tool_use", "run", {"command": "ls"})
                block = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}
                result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "x"}]}
                back = {"role": "assistant", "content": [block]}
                return asked(client, [USER, back, {"role": "user", "content": [result]}])

        assert (await in_thread(work)).content[0].text == "done"
        told = conversation(cell.model)
        assert [said.role for said in told] == TOLD_AND_ANSWERED
        assert (told[1].tool_calls[0].arguments, told[2].tool_name) == ({"command": "ls"}, "run")


async def test_anthropic_counting_costs_no_call() -> None:
    """An upper estimate, and the model is not asked."""
    async with addressed() as (cell, address):

        def work() -> int:
            with anthropic_client(address) as client:
                return client.messages.count_tokens(model=NAME, messages=[USER]).input_tokens

        assert await in_thread(work) > 2
        assert (cell.model.asked, cell.standings()) == ([], ["served"])


@pytest.mark.parametrize("delay_s", [0.0, 0.3], ids=["at once", "after signs of life"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_ollama(stream: bool, delay_s: float) -> None:
    """Text, reason and counts."""
    async with addressed(ping_s=0.05) as (cell, address):
        cell.model.delay_s = delay_s

        def work() -> tuple[str, Any]:
            options = {"temperature": 0, "num_predict": 6, "stop": ["X"]}
            with ollama_client(address) as client:
                made = client.chat(model=NAME, messages=[USER], stream=stream, options=options)
                parts = list(made) if stream else [made]
            return "".join(part.message.content for part in parts), parts[-1]

        text, last = await in_thread(work)
        assert (text, last.done, last.done_reason) == ("hello", True, "stop")
        assert (last.prompt_eval_count, last.eval_count) == (12, 5)
        assert cell.model.asked[0].decoding.num_predict == 6


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_ollama_tools(stream: bool) -> None:
    """A call without an id, its result by name, and the answer to that."""
    async with addressed(tool_then_text) as (cell, address):

        def asked(client: ollama.Client, messages: list[Any]) -> Any:
            made = client.chat(model=NAME, messages=messages, tools=[FUNCTION], stream=stream)
            first, *_ = made if stream else [made]
            return first

        def work() -> Any:
            with ollama_client(address) as client:
                said = asked(client, [USER])
                (call,) = said.message.tool_calls
                assert (call.function.name, call.function.arguments) == ("run", {"command": "ls"})
                return asked(client, [USER, said.message, {"role": "tool", "content": "x", "tool_name": "run"}])

        assert (await in_thread(work)).message.content == "done"
        told = conversation(cell.model)
        assert [said.role for said in told] == TOLD_AND_ANSWERED
        assert told[2].tool_call_id == told[1].tool_calls[0].id


async def test_each_client_understands_a_refusal() -> None:
    """Its own kind of error, with the gateway's words, and no retry."""
    async with addressed() as (cell, address):

        def work() -> None:
            with openai_client(address) as client:
                with pytest.raises(openai.PermissionDeniedError, match="expected 'the-model'"):
                    client.chat.completions.create(model="gpt-9", messages=[USER])
                with pytest.raises(openai.BadRequestError, match="store"):
                    client.chat.completions.create(model=NAME, messages=[USER], store=True)
                with pytest.raises(openai.PermissionDeniedError, match="expected one of"):
                    client.responses.create(model=NAME, input="hi")
            with anthropic_client(address) as client:
                with pytest.raises(anthropic.PermissionDeniedError, match="expected 'the-model'"):
                    client.messages.create(model="claude-9", messages=[USER], max_tokens=5)
                with pytest.raises(anthropic.BadRequestError, match="container"):
                    client.messages.create(model=NAME, messages=[USER], max_tokens=5, extra_body={"container": "c"})
            with ollama_client(address) as client:
                with pytest.raises(ollama.ResponseError, match="num_ctx"):
                    client.chat(model=NAME, messages=[USER], options={"num_ctx": 9})
                with pytest.raises(ollama.ResponseError, match="expected POST"):
                    client.list()

        await in_thread(work)
        assert (cell.model.asked, cell.standings()) == ([], ["refused"] * 7)


FAULTS = {
    "a window that is full": (WindowExceeded("no"), 400, "maximum context length is 4096", "refused"),
    "content that is refused": (ContentRefused("no"), 400, "refused what the request says", "refused"),
    "a server that fails": (ModelServerError("no"), 502, "no answer", "failed"),
}


@pytest.mark.parametrize("begun", [False, True], ids=["before", "after signs of life"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_each_client_understands_a_failure_in_a_stream(fault: str, begun: bool) -> None:
    """As a status where no byte has left yet, else as an error inside the stream."""
    error, status, words, standing = FAULTS[fault]
    async with addressed(error, ping_s=0.02) as (cell, address):
        cell.model.delay_s = 0.2 if begun else 0.0

        def work() -> None:
            with openai_client(address) as client:
                with pytest.raises(openai.APIError, match=words) as of_openai:
                    list(client.chat.completions.create(model=NAME, messages=[USER], stream=True))
                assert begun or of_openai.value.status_code == status
            with anthropic_client(address) as client, pytest.raises(anthropic.APIError, match=words):
                list(client.messages.create(model=NAME, messages=[USER], max_tokens=5, stream=True))
            with ollama_client(address) as client, pytest.raises(ollama.ResponseError, match=words):
                list(client.chat(model=NAME, messages=[USER], stream=True))

        await in_thread(work)
        assert cell.standings() == [standing] * 3


async def test_what_a_model_wrote_wrongly_can_be_sent_back() -> None:
    """A name that is none and arguments that are no object: the agent sees them, and its next request is served."""
    wrong = calling("run it!\n", "{}")
    (call,) = wrong.tool_calls
    broken = completion(
        "", stop="tool_calls", tool_calls=(type(call)(id="", name=call.name, arguments=None, raw="{x"),)
    )
    async with addressed(lambda request: completion("ok") if len(request.messages) > 1 else broken) as (cell, address):

        def work() -> None:
            with openai_client(address) as client:
                said = client.chat.completions.create(model=NAME, messages=[USER]).choices[0].message
                assert (said.tool_calls[0].function.name, said.tool_calls[0].function.arguments) == ("run_it__", "{x")
                result = {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "no"}
                client.chat.completions.create(model=NAME, messages=[USER, said, result])
            with anthropic_client(address) as client:
                block = client.messages.create(model=NAME, messages=[USER], max_tokens=5).content[0]
                assert (block.name, block.input) == ("run_it__", {"unparsed": "{x"})

        await in_thread(work)
        assert cell.model.asked[1].messages[1].tool_calls[0].arguments == {"unparsed": "{x"}
        assert cell.standings() == ["served"] * 3


async def test_usage_that_is_unknown_is_told_as_it_was_charged() -> None:
    """No server said how many: the agent sees the upper estimate, and not nothing."""
    async with addressed(completion(usage=Usage())) as (_, address):

        def work() -> Any:
            with openai_client(address) as client:
                return client.chat.completions.create(model=NAME, messages=[USER]).usage

        usage = await in_thread(work)
        assert usage.completion_tokens == 100
        assert usage.prompt_tokens > 2
