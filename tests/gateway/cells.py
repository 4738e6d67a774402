"""A gateway of one cell, with a model that a test writes, and raw talk to its socket."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import SocketStream

from harness.gateway.serve import Gateway, serve_gateway
from harness.messages import Completion, Decoding, Request, ToolCall
from harness.ports import Model
from harness.seeds import SeedBook
from harness.values import Usage
from harness.walls import GatewayRules

NAME = "the-model"
DECODING = Decoding(num_predict=100, num_ctx=4096, temperature=0.25, stop=("END",))
SEEDS = SeedBook("space", "cell")
USAGE = Usage(input=10, output=5, cache_read=2, cache_write_5m=0, cache_write_1h=0)


def completion(text: str = "hello", **changes: Any) -> Completion:
    """A whole answer."""
    given: dict[str, Any] = {"text": text, "stop": "stop", "usage": USAGE, "served_model": "m", "latency_s": 0.1}
    return Completion(**{**given, **changes})


def calling(name: str = "run", raw: str = '{"command": "ls"}', **changes: Any) -> Completion:
    """An answer that calls a tool."""
    call = ToolCall(id="call-0", name=name, arguments=json.loads(raw), raw=raw)
    return completion("", stop="tool_calls", tool_calls=(call,), **changes)


class Answers:
    """A model that answers what a test says, and keeps what it was asked."""

    def __init__(self, answer: Completion | BaseException | Callable[[Request], Completion] | None = None) -> None:
        self.answer = completion() if answer is None else answer
        self.asked: list[Request] = []
        self.delay_s = 0.0

    async def complete(self, request: Request) -> Completion:
        """The answer."""
        self.asked.append(request)
        await anyio.sleep(self.delay_s)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer if isinstance(self.answer, Completion) else self.answer(request)


@dataclass
class Cell:
    """A gateway, what it told the transcript, and the model behind it."""

    gateway: Gateway
    model: Any
    events: list[dict[str, Any]] = field(default_factory=list)

    async def told(self, count: int) -> None:
        """Wait until so many events were written."""
        while len(self.events) < count:  # noqa: ASYNC110 - what writes them knows of no one who waits
            await anyio.sleep(0.02)

    def standings(self) -> list[str]:
        """What became of each request."""
        return [event["standing"] for event in self.events]


@asynccontextmanager
async def gateway_cell(
    model: Model | None = None, *, rules: GatewayRules | None = None, folder: Path | None = None, **changes: Any
) -> AsyncIterator[Cell]:
    """A gateway in a folder of its own."""
    model = model or Answers()
    events: list[dict[str, Any]] = []

    def event(kind: str, **data: Any) -> None:
        assert kind == "gateway"
        events.append(json.loads(json.dumps(data)))

    with tempfile.TemporaryDirectory() as made:
        async with serve_gateway(
            folder or Path(made),
            rules=rules or GatewayRules(),
            model=model,
            **{"event": event, "decoding": DECODING, "seeds": SEEDS, "name": NAME, **changes},
        ) as gateway:
            yield Cell(gateway, model, events)


@dataclass(frozen=True)
class Reply:
    """A response, parsed far enough to be compared."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def post(path: str, body: Any, *lines: str, **changes: str) -> bytes:
    """A request as a client sends it; `lines` are added to its head, and `changes` replace parts of it."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    parts = {
        "start": f"POST {path} HTTP/1.1",
        "host": "Host: localhost",
        "type": "Content-Type: application/json",
        "length": f"Content-Length: {len(data)}",
        **changes,
    }
    return "\r\n".join([*(part for part in parts.values() if part), *lines, "", ""]).encode("latin-1") + data


async def received(stream: SocketStream) -> bytes:
    """All that comes until the other side ends."""
    data = b""
    try:
        while True:
            data += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return data


def parsed(data: bytes) -> Reply:
    """The first response in `data`."""
    head, _, rest = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        rest = unchunked(rest)
    return Reply(int(first.split()[1]), headers, rest)


def unchunked(data: bytes) -> bytes:
    """The content of a chunked body, which must be whole."""
    content = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        if int(size, 16) == 0:
            assert data == b"\r\n"
            return content
        content, data = content + data[: int(size, 16)], data[int(size, 16) + 2 :]


async def raw(cell: Cell, data: bytes) -> bytes:
    """What the gateway answers to bytes, on a connection of their own; the agent sends no more after them."""
    async with await anyio.connect_unix(cell.gateway.socket) as stream:
        try:
            await stream.send(data)
            await stream.send_eof()
        except (anyio.BrokenResourceError, OSError):
            pass  # refused before all of it was read
        return await received(stream)


async def ask(cell: Cell, path: str, body: Any, *lines: str, **changes: str) -> Reply:
    """One request and its answer."""
    return parsed(await raw(cell, post(path, body, *lines, **changes)))


CHAT = {"model": NAME, "messages": [{"role": "user", "content": "hi"}]}
OPENAI, ANTHROPIC, OLLAMA = "/v1/chat/completions", "/v1/messages", "/api/chat"


def chat(**changes: Any) -> dict[str, Any]:
    """A body that the OpenAI and Ollama wires serve."""
    return {**CHAT, **changes}


def message(**changes: Any) -> dict[str, Any]:
    """A body that the Anthropic wire serves."""
    return {**CHAT, "max_tokens": 50, **changes}


__all__ = [
    "ANTHROPIC",
    "CHAT",
    "DECODING",
    "NAME",
    "OLLAMA",
    "OPENAI",
    "SEEDS",
    "USAGE",
    "Answers",
    "Cell",
    "Reply",
    "ask",
    "calling",
    "chat",
    "completion",
    "gateway_cell",
    "message",
    "parsed",
    "post",
    "raw",
    "received",
    "replace",
]
