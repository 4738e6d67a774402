"""The Anthropic wire: POST /v1/messages and its counting of tokens, as the official clients speak it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from harness.gateway.answers import Answer
from harness.gateway.asking import (
    MESSAGES,
    PARTS,
    TOOLS,
    Asked,
    Identifier,
    Most,
    Part,
    Refusal,
    Stops,
    ToolName,
    called,
    checked,
    offered,
    read,
    sampling,
)
from harness.messages import Message

__all__ = ["COUNTING", "AnthropicMessages", "counted"]

COUNTING = "/v1/messages/count_tokens"

_UNUSED = ("temperature", "top_p", "top_k", "thinking", "metadata", "service_tier", "output_config")
_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_ERRORS = {403: "permission_error", 413: "request_too_large", 429: "rate_limit_error"}


class _Cache(Part):
    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class _Cacheable(Part):
    """What a client may mark for a cache, which is the server's own business here."""

    cache_control: _Cache | None = None


class _Text(_Cacheable):
    type: Literal["text"]
    text: str
    citations: None = None


class _Use(_Cacheable):
    type: Literal["tool_use"]
    id: Identifier
    name: ToolName
    input: dict[str, Any]


class _Result(_Cacheable):
    type: Literal["tool_result"]
    tool_use_id: Identifier
    content: str | Annotated[list[_Text], Field(max_length=PARTS)] | None = None
    is_error: bool | None = None


class _Said(Part):
    role: Literal["user", "assistant"]
    content: (
        str
        | Annotated[
            list[Annotated[_Text | _Use | _Result, Field(discriminator="type")]], Field(min_length=1, max_length=PARTS)
        ]
    )


class _Tool(_Cacheable):
    type: Literal["custom"] | None = None
    name: ToolName
    description: str | None = None
    input_schema: dict[str, Any]
    strict: bool | None = None
    eager_input_streaming: bool | None = None


class _Choice(Part):
    type: Literal["auto", "none"]
    disable_parallel_tool_use: bool | None = None


class _Metadata(Part):
    user_id: str | None = None


class _Thinking(Part):
    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: int | None = None
    display: str | None = None


class _Effort(Part):
    effort: str | None = None


class _Prompt(Part):
    model: str
    messages: Annotated[list[_Said], Field(min_length=1, max_length=MESSAGES)]
    system: str | Annotated[list[_Text], Field(max_length=PARTS)] | None = None
    tools: Annotated[list[_Tool], Field(max_length=TOOLS)] | None = None
    tool_choice: _Choice | None = None
    thinking: _Thinking | None = None
    output_config: _Effort | None = None


class _Body(_Prompt):
    max_tokens: Most
    stop_sequences: Stops | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    metadata: _Metadata | None = None
    service_tier: Literal["auto", "standard_only"] | None = None


class AnthropicMessages:
    """Messages."""

    name = "anthropic"
    stream_type = "text/event-stream"

    def asked(self, target: str, data: Mapping[str, Any]) -> Asked:
        """What the body asks. Raises `Refusal`."""
        counting = target.partition("?")[0] == COUNTING
        body = read(_Prompt if counting else _Body, data)
        tools = body.tools if body.tools is not None and not _no_tools(body) else []
        system = [Message(role="system", content=_text(body.system))] if body.system else []
        whole = body if isinstance(body, _Body) else None
        return Asked(
            model=body.model,
            messages=checked([*system, *(made for said in body.messages for made in _messages(said))]),
            tools=tuple(offered(tool.name, tool.description, tool.input_schema) for tool in tools),
            most=whole.max_tokens if whole is not None else None,
            stop=tuple(whole.stop_sequences or ()) if whole is not None else (),
            stream=whole is not None and whole.stream is True,
            counting=counting,
            unused=sampling(body, _UNUSED),
        )

    def whole(self, answer: Answer) -> dict[str, Any]:
        """The answer as one object."""
        reason = _STOPS[answer.stop]
        return {**_frame(answer), "content": list(_blocks(answer)), "stop_reason": reason, "usage": _usage(answer)}

    def events(self, answer: Answer, *, usage: bool) -> bytes:  # noqa: ARG002 - this wire always tells the usage
        """The answer as an event stream."""
        start = {**_frame(answer), "content": [], "stop_reason": None, "usage": {**_usage(answer), "output_tokens": 0}}
        made = [_event("message_start", message=start)]
        for index, block in enumerate(_blocks(answer)):
            made += _block_events(index, block)
        delta = {"stop_reason": _STOPS[answer.stop], "stop_sequence": None}
        made.append(_event("message_delta", delta=delta, usage={"output_tokens": answer.output_tokens}))
        return b"".join(made) + _event("message_stop")

    def ping(self, model: str) -> bytes:  # noqa: ARG002 - a ping needs no model
        """What keeps a client waiting while the model works."""
        return _event("ping")

    def error(self, status: int, why: str) -> dict[str, Any]:
        """An error as one object."""
        kind = _ERRORS.get(status, "invalid_request_error" if status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": why}}

    def error_event(self, status: int, why: str) -> bytes:
        """An error inside an event stream that has begun."""
        return _event("error", error=self.error(status, why)["error"])


def counted(tokens: int) -> dict[str, Any]:
    """The answer to a question of how long a prompt is."""
    return {"input_tokens": tokens}


def _no_tools(body: _Prompt) -> bool:
    return body.tool_choice is not None and body.tool_choice.type == "none"


def _messages(said: _Said) -> Iterator[Message]:
    """The results of tools in a message of the user's are messages of their own here, before its other words."""
    if isinstance(said.content, str):
        yield Message(role=said.role, content=said.content)
        return
    texts = [block for block in said.content if isinstance(block, _Text)]
    uses = tuple(called(block.id, block.name, block.input) for block in said.content if isinstance(block, _Use))
    results = [block for block in said.content if isinstance(block, _Result)]
    if (uses and said.role == "user") or (results and said.role == "assistant"):
        raise Refusal(400, f"a message of the {said.role} holds a block that is not the {said.role}'s")
    for result in results:
        yield Message(role="tool", content=_result_text(result), tool_call_id=result.tool_use_id)
    if said.role == "assistant":
        yield Message(role="assistant", content=_text(texts), tool_calls=uses)
    elif texts or not results:
        yield Message(role="user", content=_text(texts))


def _result_text(result: _Result) -> str:
    text = _text(result.content or "")
    return f"Error: {text}" if result.is_error else text


def _text(content: str | Sequence[_Text]) -> str:
    return content if isinstance(content, str) else "\n".join(block.text for block in content)


def _frame(answer: Answer) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.number}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "stop_sequence": None,
    }


def _blocks(answer: Answer) -> Iterator[dict[str, Any]]:
    """Text first, then the calls; an answer of nothing is an empty text."""
    if answer.text or not answer.calls:
        yield {"type": "text", "text": answer.text}
    for call in answer.calls:
        yield {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": dict(call.arguments or {})}


def _block_events(index: int, block: Mapping[str, Any]) -> list[bytes]:
    if block["type"] == "text":
        begin, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        begin, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    return [
        _event("content_block_start", index=index, content_block=begin),
        _event("content_block_delta", index=index, delta=delta),
        _event("content_block_stop", index=index),
    ]


def _usage(answer: Answer) -> dict[str, Any]:
    return {
        "input_tokens": answer.prompt_tokens - answer.cache_read_tokens - answer.cache_write_tokens,
        "cache_creation_input_tokens": answer.cache_write_tokens,
        "cache_read_input_tokens": answer.cache_read_tokens,
        "output_tokens": answer.output_tokens,
    }


def _event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data}, separators=(',', ':'))}\n\n".encode()
