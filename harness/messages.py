"""What goes to a model and what comes back: values of one call, the same for every provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.values import STRICT, Usage

__all__ = [
    "COUNTED_AS_BYTES",
    "Completion",
    "Decoding",
    "Message",
    "ModelIdentity",
    "ModelSpec",
    "Request",
    "ToolCall",
    "ToolSpec",
]

COUNTED_AS_BYTES = "UTF-8 bytes with room for a template, an upper bound"
"""How the prompts of a model are counted that has no tokeniser to ask."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Decoding:
    """How the model samples. `num_predict` and `num_ctx` are in tokens; `seed` is set by the harness per call."""

    __pydantic_config__ = STRICT
    temperature: float = 0.8
    top_p: float = 0.95
    num_predict: int = 512
    num_ctx: int = 4096
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSpec:
    """One tool offered to a model; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """A model's wish to call a tool; `arguments` were parsed by the provider, or None if they did not parse."""

    id: str
    name: str
    arguments: Mapping[str, Any] | None
    raw: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of a conversation. A `tool` message answers the call `tool_call_id`, made to `tool_name`."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One call of a model: everything that decides its answer."""

    messages: tuple[Message, ...]
    decoding: Decoding
    seed: int
    tools: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """A model's answer. `stop` is "length" when num_predict or the window ended it: a valid answer, marked."""

    text: str
    stop: Literal["stop", "length", "tool_calls"]
    usage: Usage
    served_model: str
    latency_s: float
    tool_calls: tuple[ToolCall, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSpec:
    """
    A model as the experiment names it.

    `name` is the experiment's own label (part of unit and cell keys); `provider` a registered model provider; `model`
    what that provider calls it. `key_env` names the environment variable that holds a key, never the key.
    """

    name: str
    provider: str
    model: str
    base_url: str | None = None
    key_env: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelIdentity:
    """
    What the provider says it will serve; `digest` is None where a provider has none, and that is then shown.

    `prompt_count` says how the tokens of a prompt are counted before it is sent.
    """

    served: str
    digest: str | None
    details: Mapping[str, Any] = field(default_factory=dict)
    prompt_count: str = COUNTED_AS_BYTES
