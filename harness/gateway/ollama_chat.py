"""The Ollama wire: POST /api/chat. Its calls have no ids, and it streams unless it is told not to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from harness.gateway.answers import Answer
from harness.gateway.asking import (
    CALLS,
    MESSAGES,
    TOOLS,
    Asked,
    Part,
    Stops,
    ToolName,
    answered_in_order,
    called,
    checked,
    offered,
    read,
    sampling,
)
from harness.messages import Message

__all__ = ["OllamaChat"]

_NANOSECONDS = 1_000_000_000
_SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "seed",
    "repeat_penalty",
    "repeat_last_n",
    "presence_penalty",
    "frequency_penalty",
)


class _Function(Part):
    name: ToolName
    arguments: dict[str, Any]
    index: int | None = None


class _Call(Part):
    id: str | None = None
    type: Literal["function"] | None = None
    function: _Function


class _Message(Part):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: Annotated[list[_Call], Field(max_length=CALLS)] | None = None
    tool_name: ToolName | None = None
    thinking: None = None


class _OfferedFunction(Part):
    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Tool(Part):
    type: Literal["function"]
    function: _OfferedFunction


class _Options(Part):
    num_predict: Annotated[int, Field(ge=-2)] | None = None
    stop: Stops | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    typical_p: float | None = None
    seed: int | None = None
    repeat_penalty: float | None = None
    repeat_last_n: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None


class _Body(Part):
    model: str
    messages: Annotated[list[_Message], Field(min_length=1, max_length=MESSAGES)]
    tools: Annotated[list[_Tool], Field(max_length=TOOLS)] | None = None
    stream: bool = True
    think: bool | Literal["low", "medium", "high"] | None = None
    options: _Options | None = None
    logprobs: Literal[False] | None = None


class OllamaChat:
    """Chats."""

    name = "ollama"
    stream_type = "application/x-ndjson"

    def asked(self, target: str, data: Mapping[str, Any]) -> Asked:  # noqa: ARG002 - this wire has one path
        """What the body asks. Raises `Refusal`."""
        body = read(_Body, data)
        options = body.options or _Options()
        most = options.num_predict
        return Asked(
            model=body.model,
            messages=checked(answered_in_order(_message(message) for message in body.messages)),
            tools=tuple(
                offered(tool.function.name, tool.function.description, tool.function.parameters)
                for tool in body.tools or ()
            ),
            most=most if most is not None and most > 0 else None,
            stop=tuple(options.stop or ()),
            stream=body.stream,
            unused=(*sampling(options, _SAMPLING), *sampling(body, ("think",))),
        )

    def whole(self, answer: Answer) -> dict[str, Any]:
        """The answer as one object."""
        return {**_said(answer), **_done(answer)}

    def events(self, answer: Answer, *, usage: bool) -> bytes:  # noqa: ARG002 - this wire always tells the usage
        """The answer as lines of JSON."""
        end = {**_frame(answer), "message": {"role": "assistant", "content": ""}, **_done(answer)}
        return _line({**_said(answer), "done": False}) + _line(end)

    def ping(self, model: str) -> bytes:
        """What keeps a client waiting while the model works: a piece of the answer with nothing in it."""
        return _line({"model": model, "message": {"role": "assistant", "content": ""}, "done": False})

    def error(self, status: int, why: str) -> dict[str, Any]:  # noqa: ARG002 - this wire's errors are their words
        """An error as one object."""
        return {"error": why}

    def error_event(self, status: int, why: str) -> bytes:
        """An error inside a stream that has begun."""
        return _line(self.error(status, why))


def _message(message: _Message) -> Message:
    calls = tuple(called("", call.function.name, call.function.arguments) for call in message.tool_calls or ())
    return Message(role=message.role, content=message.content or "", tool_calls=calls, tool_name=message.tool_name)


def _frame(answer: Answer) -> dict[str, Any]:
    return {"model": answer.model, "created_at": answer.created_at}


def _said(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.calls:
        message["tool_calls"] = [
            {"function": {"name": call.name, "arguments": dict(call.arguments or {})}} for call in answer.calls
        ]
    return {**_frame(answer), "message": message}


def _done(answer: Answer) -> dict[str, Any]:
    taken = round(answer.latency_s * _NANOSECONDS)
    return {
        "done": True,
        "done_reason": "length" if answer.stop == "length" else "stop",
        "total_duration": taken,
        "load_duration": 0,
        "prompt_eval_count": answer.prompt_tokens,
        "prompt_eval_duration": 0,
        "eval_count": answer.output_tokens,
        "eval_duration": taken,
    }


def _line(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"
