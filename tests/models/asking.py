"""What every test of a model provider asks, and how."""

from __future__ import annotations

from typing import Any

from harness.messages import Completion, Decoding, Message, ModelSpec, Request, ToolSpec
from harness.ports import ModelProvider

WRITE = ToolSpec(
    name="write",
    description="Write a file",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
        "required": ["path", "text"],
    },
)


def request(text: str = "Say hello.", *, seed: int = 7, tools: tuple[ToolSpec, ...] = (), **decoding: Any) -> Request:
    """A request of one user message."""
    return conversation(Message(role="user", content=text), seed=seed, tools=tools, **decoding)


def conversation(*messages: Message, seed: int = 7, tools: tuple[ToolSpec, ...] = (), **decoding: Any) -> Request:
    """A request of several messages."""
    settings: dict[str, Any] = {"num_predict": 16, "num_ctx": 256, **decoding}
    return Request(messages=messages, decoding=Decoding(**settings), seed=seed, tools=tools)


def spec(provider: str, model: str, *, base_url: str | None = None, **options: Any) -> ModelSpec:
    """A model named `subject`."""
    return ModelSpec(name="subject", provider=provider, model=model, base_url=base_url, options=options)


async def ask(provider: ModelProvider, model: ModelSpec, *requests: Request) -> list[Completion]:
    """Opens `model` and sends it the requests one after another."""
    async with provider.open(model) as opened:
        return [await opened.complete(each) for each in requests]
