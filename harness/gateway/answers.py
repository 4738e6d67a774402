"""A model's answer as every wire tells it: with names and arguments that a client can send back, and with counts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.clock import Clock, now_text
from harness.messages import Completion, Request, ToolCall
from harness.meter import upper_estimate
from harness.seats.extraction import valid_text

__all__ = ["Answer", "made"]

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.:/-]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """
    One answer: `number` counts the cell's calls through the gateway, `model` is the name that the agent knows.

    The counts are what the meter was charged: where the server did not count, the upper estimate.
    """

    number: int
    model: str
    created: int
    created_at: str
    text: str
    calls: tuple[ToolCall, ...]
    stop: Literal["stop", "length", "tool_calls"]
    prompt_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    latency_s: float


def made(completion: Completion, request: Request, *, number: int, model: str, clock: Clock) -> Answer:
    """The answer that `completion` of `request` is. Ids of calls are the gateway's: a server's may repeat."""
    calls = tuple(_call(f"{number}_{index}", call) for index, call in enumerate(completion.tool_calls, start=1))
    return Answer(
        number=number,
        model=model,
        created=int(clock.now().timestamp()),
        created_at=now_text(clock),
        text=valid_text(completion.text),
        calls=calls,
        stop=completion.stop,
        latency_s=completion.latency_s,
        **_counts(completion, request),
    )


def _counts(completion: Completion, request: Request) -> dict[str, int]:
    usage = completion.usage
    if usage.total is None:
        output = request.decoding.num_predict
        prompt = upper_estimate(request) - output
        return {
            "prompt_tokens": prompt,
            "output_tokens": output,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
        }
    read, written = usage.cache_read or 0, (usage.cache_write_5m or 0) + (usage.cache_write_1h or 0)
    return {
        "prompt_tokens": (usage.input or 0) + read + written,
        "output_tokens": usage.output or 0,
        "cache_read_tokens": read,
        "cache_write_tokens": written,
    }


def _call(identifier: str, call: ToolCall) -> ToolCall:
    """The call as it can be sent back: what a model wrote may be no name, no object, and no JSON."""
    name = _NOT_IN_NAMES.sub("_", call.name)[:128] or "unnamed"
    arguments = _sayable(call.arguments)
    raw = valid_text(call.raw) or json.dumps(arguments or {})
    if arguments is None:
        arguments = {"unparsed": raw}
    return ToolCall(id=identifier, name=name, arguments=arguments, raw=raw)


def _sayable(arguments: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The arguments, if JSON can say them."""
    if arguments is None:
        return None
    try:
        text = json.dumps(dict(arguments), allow_nan=False, ensure_ascii=False)
        made: dict[str, Any] = json.loads(valid_text(text))
    except (ValueError, TypeError, RecursionError):
        return None
    return made
