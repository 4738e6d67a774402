"""
What the gateway adds to a request: the same 2 KB chat to a bare toy server, and through the gateway to that server.

    python bench/gateway.py [--n 200]

In turn, one request after another, each on a connection of its own:

- "toy": straight to the toy server, which answers at once;
- "provider": the `openai` provider asks the toy, as a seat of ours would;
- "gateway": over the gateway's socket, whose metered model is that provider's, with a transcript;
- "gateway, streamed": the same as an event stream;
- "gateway alone": before a model that answers at once, and so without the provider.

Prints medians and minimums in milliseconds, and what the gateway adds. There is no limit: it is far below what any
model takes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketStream

from harness.boundary import MeteredModel
from harness.clock import SystemClock
from harness.gateway.serve import serve_gateway
from harness.messages import Completion, Decoding, Message, ModelSpec, Request
from harness.meter import Bounds, Ledger, Meter, Scope
from harness.models.openai import OpenAIProvider
from harness.ports import Model
from harness.seeds import SeedBook
from harness.transcript import Transcript
from harness.values import Usage
from harness.walls import GatewayRules

NAME = "toy"
PROMPT = "word " * 400
ANSWER = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": NAME,
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 400, "completion_tokens": 3, "total_tokens": 403},
}


def wire(*, stream: bool = False) -> bytes:
    """The request as bytes."""
    body = json.dumps({"model": NAME, "messages": [{"role": "user", "content": PROMPT}], "stream": stream}).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def toy(stream: SocketStream) -> None:
    """Answer every request of a connection with the same completion."""
    body = json.dumps(ANSWER).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with stream:
        heard = b""
        while True:
            try:
                heard += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return
            start, found, rest = heard.partition(b"\r\n\r\n")
            length = int(start.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0) if found else 0
            if found and len(rest) >= length:
                heard = rest[length:]
                await stream.send(head + body)


class AtOnce:
    """A model that answers at once."""

    async def complete(self, _request: Request) -> Completion:
        """The same each time."""
        await anyio.lowlevel.checkpoint()
        usage = Usage(input=400, cache_write_5m=0, cache_write_1h=0, cache_read=0, output=3)
        return Completion(text="hello", stop="stop", usage=usage, served_model=NAME, latency_s=0.0)


@asynccontextmanager
async def gateway(model: Model, folder: Path) -> AsyncIterator[Path]:
    """The socket of a gateway before `model`, metered and written down."""
    await anyio.Path(folder).mkdir()
    meter = Meter([Scope(name="cell", bounds=Bounds(tokens=10**9), ledger=Ledger())], clock=SystemClock(), rates=None)
    with Transcript(folder / "transcript.jsonl") as transcript:
        async with serve_gateway(
            folder,
            rules=GatewayRules(),
            model=MeteredModel(model, meter, transcript, served=NAME),
            decoding=Decoding(),
            seeds=SeedBook("bench", "gateway"),
            name=NAME,
            event=transcript.add,
        ) as served:
            yield served.socket


async def exchange(connect: Callable[[], Awaitable[ByteStream]], data: bytes) -> None:
    """One request and its whole answer."""
    async with await connect() as stream:
        await stream.send(data)
        answer = b""
        while b"hello" not in answer or not answer.endswith((b"}", b"0\r\n\r\n")):
            answer += await stream.receive()
    assert b" 200 " in answer.split(b"\r\n")[0]


async def measured(ways: dict[str, Callable[[], Awaitable[object]]], n: int) -> dict[str, list[float]]:
    """Milliseconds of each way, one after the other in turn."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(n + 5):
        for name, way in ways.items():
            started = time.perf_counter()
            await way()
            if turn >= 5:
                taken[name].append((time.perf_counter() - started) * 1000)
    return taken


async def main(n: int) -> None:
    """Measure and print."""
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, toy)
        port = int(listener.extra(SocketAttribute.local_port))  # noqa: S610 - no database's
        spec = ModelSpec(name=NAME, provider="openai", model=NAME, base_url=f"http://127.0.0.1:{port}/v1")
        request = Request(messages=(Message(role="user", content=PROMPT),), decoding=Decoding(), seed=1)
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            async with (
                OpenAIProvider().open(spec) as model,
                gateway(model, folder / "whole") as whole,
                gateway(AtOnce(), folder / "alone") as alone,
            ):
                taken = await measured(
                    {
                        "toy": lambda: exchange(lambda: anyio.connect_tcp("127.0.0.1", port), wire()),
                        "provider": lambda: model.complete(request),
                        "gateway": lambda: exchange(lambda: anyio.connect_unix(whole), wire()),
                        "gateway, streamed": lambda: exchange(lambda: anyio.connect_unix(whole), wire(stream=True)),
                        "gateway alone": lambda: exchange(lambda: anyio.connect_unix(alone), wire()),
                    },
                    n,
                )
        tasks.cancel_scope.cancel()
    for name, values in taken.items():
        print(f"{name:18} median {statistics.median(values):7.3f} ms   min {min(values):7.3f} ms")
    for name, without in (("gateway", "provider"), ("gateway alone", "toy")):
        added = statistics.median(taken[name]) - statistics.median(taken[without])
        print(f"{name} against {without}: {added:+.3f} ms (medians of {n})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=200)
    anyio.run(main, parser.parse_args().n)
