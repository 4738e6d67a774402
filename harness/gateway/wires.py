"""Which path is which wire. A path that does not stand here is not served, whatever it may mean elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from harness.gateway.answers import Answer
from harness.gateway.anthropic_messages import COUNTING, AnthropicMessages
from harness.gateway.asking import Asked
from harness.gateway.ollama_chat import OllamaChat
from harness.gateway.openai_chat import OpenAIChat
from harness.walls import GatewayRules

__all__ = ["Wire", "paths", "speaker"]


class Wire(Protocol):
    """One way to ask a model: how a body is read, and how answers and errors are told, whole or as a stream."""

    name: str
    stream_type: str

    def asked(self, target: str, data: Mapping[str, Any]) -> Asked:
        """What the body asks. Raises `Refusal`."""
        ...

    def whole(self, answer: Answer) -> dict[str, Any]:
        """The answer as one object."""
        ...

    def events(self, answer: Answer, *, usage: bool) -> bytes:
        """The answer as a stream."""
        ...

    def ping(self, model: str) -> bytes:
        """What keeps a client waiting while the model works."""
        ...

    def error(self, status: int, why: str) -> dict[str, Any]:
        """An error as one object."""
        ...

    def error_event(self, status: int, why: str) -> bytes:
        """An error inside a stream that has begun."""
        ...


_OPENAI, _ANTHROPIC, _OLLAMA = OpenAIChat(), AnthropicMessages(), OllamaChat()

_PATHS: dict[str, Wire] = {
    "/v1/chat/completions": _OPENAI,
    "/v1/messages": _ANTHROPIC,
    "/v1/messages?beta=true": _ANTHROPIC,
    COUNTING: _ANTHROPIC,
    f"{COUNTING}?beta=true": _ANTHROPIC,
    "/api/chat": _OLLAMA,
}
"""Compared byte by byte. The Anthropic client's own query is the only one that is let through."""


def paths(rules: GatewayRules) -> dict[str, Wire]:
    """The paths that these rules serve."""
    return {path: wire for path, wire in _PATHS.items() if wire.name in rules.wires}


def speaker(target: str) -> Wire:
    """The wire in whose form an error about `target` is told: the nearest, and OpenAI's where there is none."""
    if target.startswith("/v1/messages"):
        return _ANTHROPIC
    return _OLLAMA if target.startswith("/api/") else _OPENAI
