"""The chat-completions wire: requests as it wants them, and replies read strictly. Two providers speak it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import ModelServerError, RequestRefused
from harness.messages import Message, Request, ToolCall
from harness.models.blame import bounded
from harness.values import Usage

__all__ = ["ChatReply", "is_overflow", "read_reply", "tool_arguments", "wire_messages", "wire_tools"]

OVERFLOW_WORDS = ("context length", "context size", "context window", "context_length", "exceed_context_size")


def wire_messages(request: Request) -> list[dict[str, Any]]:
    """The conversation as the wire has it; a call's arguments travel as the text that the model wrote."""
    return [_wire_message(message) for message in request.messages]


def _wire_message(message: Message) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.raw or json.dumps(dict(call.arguments or {}))},
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        wire["tool_call_id"] = message.tool_call_id or ""
    return wire


def wire_tools(request: Request) -> list[dict[str, Any]]:
    """The offered tools as the wire has them."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in request.tools
    ]


def tool_arguments(raw: str) -> Mapping[str, Any] | None:
    """The arguments of a call that a model wrote as JSON, or None when they are no object."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def is_overflow(*words: object) -> bool:
    """Whether an error's code, type or text says that the prompt did not fit the window."""
    return any(phrase in str(word).lower() for word in words for phrase in OVERFLOW_WORDS)


class _Wire(BaseModel):
    """A part of a reply. Unknown keys are let be: servers add their own."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


Count = Annotated[int, Field(ge=0)]


class _Cached(_Wire):
    cached_tokens: Count | None = None


class _WireUsage(_Wire):
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: _Cached | None = None


class _Function(_Wire):
    name: str
    arguments: str | dict[str, Any] | None = None


class _Call(_Wire):
    id: str | None = None
    function: _Function


class _Said(_Wire):
    content: str | None = None
    refusal: str | None = None
    tool_calls: tuple[_Call, ...] | None = None


class _Choice(_Wire):
    message: _Said
    finish_reason: str | None = None


class _Reply(_Wire):
    model: Annotated[str, Field(min_length=1)]
    choices: Annotated[tuple[_Choice, ...], Field(min_length=1)]
    usage: _WireUsage | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatReply:
    """A reply, read. `prompt_tokens` counts cached ones too."""

    text: str
    stop: Literal["stop", "length", "tool_calls"]
    usage: Usage
    prompt_tokens: int | None
    served_model: str
    tool_calls: tuple[ToolCall, ...]
    refusal: bool


def read_reply(body: bytes, *, without: str | None = None) -> ChatReply:
    """
    What a server answered; `without` is a key that no message may carry.

    Raises `ModelServerError` for anything that is no answer, and `RequestRefused` when the server withheld it.
    """
    try:
        reply = _Reply.model_validate_json(body)
    except ValidationError as error:
        words = bounded(body.decode("utf-8", "replace"), without=without)
        wrong = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise ModelServerError(f"the server's reply is no chat completion ({bounded(wrong)}): {words}") from None
    choice = reply.choices[0]
    calls = tuple(_tool_call(index, call) for index, call in enumerate(choice.message.tool_calls or ()))
    stop = _stop(choice.finish_reason, calls=bool(calls))
    text = choice.message.content if choice.message.content is not None else choice.message.refusal
    if text is None and stop == "stop":
        raise ModelServerError(
            f"the server's reply has neither content nor tool calls: {bounded(body.decode(), without=without)}"
        )
    usage, prompt_tokens = _usage(reply.usage)
    return ChatReply(
        text=text or "",
        stop=stop,
        usage=usage,
        prompt_tokens=prompt_tokens,
        served_model=reply.model,
        tool_calls=calls,
        refusal=choice.message.refusal is not None,
    )


def _stop(reason: str | None, *, calls: bool) -> Literal["stop", "length", "tool_calls"]:
    match reason:
        case "length":
            return "length"
        case "stop" | "tool_calls" | "function_call":
            return "tool_calls" if calls else "stop"
        case "content_filter":
            raise RequestRefused("the server withheld the answer: finish_reason is 'content_filter'")
        case _:
            raise ModelServerError(f"finish_reason is {reason!r:.100}: expected stop, length, tool_calls")


def _tool_call(index: int, call: _Call) -> ToolCall:
    given = call.function.arguments
    raw = given if isinstance(given, str) else json.dumps(given or {})
    return ToolCall(
        id=call.id or f"call-{index}", name=call.function.name, arguments=tool_arguments(raw or "{}"), raw=raw
    )


def _usage(said: _WireUsage | None) -> tuple[Usage, int | None]:
    """
    The counts by direction, and the prompt's. A server that counts the prompt and tells of no cache has read all of it.
    """
    if said is None:
        return Usage(), None
    cached = said.prompt_tokens_details.cached_tokens if said.prompt_tokens_details is not None else None
    prompt, cached = said.prompt_tokens, cached or 0
    if prompt is not None and cached > prompt:
        raise ModelServerError(f"the server counted {cached} cached tokens of {prompt} prompt tokens")
    usage = Usage(
        input=None if prompt is None else prompt - cached,
        cache_write_5m=0,
        cache_write_1h=0,
        cache_read=None if prompt is None else cached,
        output=said.completion_tokens,
    )
    return usage, prompt
