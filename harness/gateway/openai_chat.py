"""The OpenAI wire: POST /v1/chat/completions, as its official clients and the programs built on them speak it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from harness.gateway.answers import Answer
from harness.gateway.asking import (
    CALLS,
    MESSAGES,
    PARTS,
    TOOLS,
    Asked,
    Identifier,
    Most,
    Part,
    Stops,
    ToolName,
    called,
    checked,
    offered,
    read,
    sampling,
)
from harness.messages import Message

__all__ = ["OpenAIChat"]

_UNUSED = (
    "temperature",
    "top_p",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "parallel_tool_calls",
    "reasoning_effort",
    "user",
)


class _Text(Part):
    type: Literal["text"]
    text: str


_Content = str | Annotated[list[_Text], Field(max_length=PARTS)]


class _Function(Part):
    name: ToolName
    arguments: str


class _Call(Part):
    id: Identifier
    type: Literal["function"] = "function"
    function: _Function
    index: int | None = None


class _System(Part):
    role: Literal["system", "developer"]
    content: _Content


class _User(Part):
    role: Literal["user"]
    content: _Content


class _Assistant(Part):
    """What the model said, as clients send it back: with the fields of an answer that held nothing."""

    role: Literal["assistant"]
    content: _Content | None = None
    tool_calls: Annotated[list[_Call], Field(max_length=CALLS)] | None = None
    refusal: None = None
    audio: None = None
    function_call: None = None
    annotations: Annotated[list[None], Field(max_length=0)] | None = None
    reasoning_content: None = None
    provider_specific_fields: dict[str, None] | None = None


class _Result(Part):
    role: Literal["tool"]
    content: _Content
    tool_call_id: Identifier
    name: ToolName | None = None


class _OfferedFunction(Part):
    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class _Tool(Part):
    type: Literal["function"]
    function: _OfferedFunction
    name: ToolName | None = None  # Codex says it here too

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if self.name not in (None, self.function.name):
            raise ValueError(f"the tool {self.function.name!r} is also called {self.name!r}")
        return self


class _StreamOptions(Part):
    include_usage: bool = False
    include_obfuscation: Literal[False] = False


class _Body(Part):
    model: str
    messages: Annotated[
        list[Annotated[_System | _User | _Assistant | _Result, Field(discriminator="role")]],
        Field(min_length=1, max_length=MESSAGES),
    ]
    tools: Annotated[list[_Tool], Field(max_length=TOOLS)] | None = None
    tool_choice: Literal["auto", "none"] | None = None
    max_tokens: Most | None = None
    max_completion_tokens: Most | None = None
    n: Literal[1] | None = None
    stop: str | Stops | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    logprobs: Literal[False] | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    user: str | None = None


class OpenAIChat:
    """Chat completions."""

    name = "openai"
    stream_type = "text/event-stream"

    def asked(self, target: str, data: Mapping[str, Any]) -> Asked:  # noqa: ARG002 - this wire has one path
        """What the body asks. Raises `Refusal`."""
        body = read(_Body, data)
        most = [limit for limit in (body.max_tokens, body.max_completion_tokens) if limit is not None]
        tools = body.tools if body.tools is not None and body.tool_choice != "none" else []
        stop = [body.stop] if isinstance(body.stop, str) else body.stop or []
        return Asked(
            model=body.model,
            messages=checked(_message(message) for message in body.messages),
            tools=tuple(
                offered(tool.function.name, tool.function.description, tool.function.parameters) for tool in tools
            ),
            most=min(most, default=None),
            stop=tuple(stop),
            stream=body.stream is True,
            usage=body.stream_options is not None and body.stream_options.include_usage,
            unused=sampling(body, _UNUSED),
        )

    def whole(self, answer: Answer) -> dict[str, Any]:
        """The answer as one object."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
        if answer.calls:
            message["tool_calls"] = _calls(answer)
        elif not answer.text:
            message["content"] = ""
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.stop}
        return {**_frame(answer, "chat.completion"), "choices": [choice], "usage": _usage(answer)}

    def events(self, answer: Answer, *, usage: bool) -> bytes:
        """The answer as an event stream."""
        frame = _frame(answer, "chat.completion.chunk")
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        if answer.text:
            deltas.append({"content": answer.text})
        deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(_calls(answer))]
        chunks = [_chunk(frame, delta) for delta in deltas] + [_chunk(frame, {}, finish=answer.stop)]
        if usage:
            chunks = [{**chunk, "usage": None} for chunk in chunks] + [
                {**frame, "choices": [], "usage": _usage(answer)}
            ]
        return b"".join(_event(chunk) for chunk in chunks) + b"data: [DONE]\n\n"

    def ping(self, model: str) -> bytes:  # noqa: ARG002 - a comment needs no model
        """What keeps a client waiting while the model works."""
        return b": the model is at work\n\n"

    def error(self, status: int, why: str) -> dict[str, Any]:
        """An error as one object."""
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": why, "type": kind, "param": None, "code": str(status)}}

    def error_event(self, status: int, why: str) -> bytes:
        """An error inside an event stream that has begun."""
        return _event(self.error(status, why))


def _message(message: _System | _User | _Assistant | _Result) -> Message:
    text = _text(message.content)
    match message:
        case _System():
            return Message(role="system", content=text)
        case _User():
            return Message(role="user", content=text)
        case _Result():
            return Message(role="tool", content=text, tool_call_id=message.tool_call_id)
        case _Assistant():
            calls = tuple(
                called(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()
            )
            return Message(role="assistant", content=text, tool_calls=calls)


def _text(content: str | list[_Text] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text for part in content)


def _frame(answer: Answer, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.number}", "object": kind, "created": answer.created, "model": answer.model}


def _calls(answer: Answer) -> list[dict[str, Any]]:
    return [
        {"id": f"call_{call.id}", "type": "function", "function": {"name": call.name, "arguments": call.raw}}
        for call in answer.calls
    ]


def _chunk(frame: Mapping[str, Any], delta: Mapping[str, Any], *, finish: str | None = None) -> dict[str, Any]:
    return {**frame, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}


def _usage(answer: Answer) -> dict[str, Any]:
    prompt = answer.prompt_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answer.output_tokens,
        "total_tokens": prompt + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": answer.cache_read_tokens},
    }


def _event(data: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"
