"""
Speaking with the gateway as a program of the seat's would: requests byte for byte, through the workspace's forwarder.

Behind it stands a scripted model whose every answer is a canary, and beside it a toy of a model's server, which answers
whatever it is asked with the same canary: a control's byte proxy leads there.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream

from fences.careless import ByteProxy
from fences.classifier import DENIED, Try, weigh
from fences.programs import run_program
from harness.clock import fresh_token
from harness.messages import Completion, Decoding, Request
from harness.ports import Workspace
from harness.seeds import SeedBook
from harness.values import Usage
from harness.views import Attempt, Fence, Finding
from harness.walls import GATEWAY_PORT, GATEWAY_SOCKET, GatewayRules

__all__ = [
    "DECODING",
    "MODEL",
    "NOBODY",
    "NOTHING",
    "PATHS",
    "SIGNS",
    "Sent",
    "Upstream",
    "ask_model",
    "body",
    "gateway_up",
    "post",
    "rules_of",
    "send_all",
]

MODEL = "proctor-probe"
"""The model's name at the gateway."""

DECODING = Decoding(num_predict=32)
"""What is pinned, whatever a request says."""

SIGNS = DENIED | {"CLOSED", "HELD"}
"""`REFUSED` by a status of the gateway's, `CLOSED` without an answer, `HELD` to what is pinned."""

NOBODY = frozenset({"ECONNREFUSED", "ENOENT"})
"""Nothing listens on the workspace's own loopback: that counts while the host vouches for what would be behind it."""

NOTHING: frozenset[str] = frozenset()
"""Where there is a gateway, nothing counts as ABSENT."""

PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "ollama": "/api/chat"}

_HEAD_BYTES = 1 << 20
_DRAIN_BYTES = 4 << 20
_DRAIN_S = 3.0
_GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@dataclass(kw_only=True)
class Upstream:
    """What is behind the gateway: a scripted model, and a toy server that hears what a byte proxy lets through."""

    canary: str = field(default_factory=fresh_token)
    requests: list[Request] = field(default_factory=list)
    """What reached the model."""
    heard: bytearray = field(default_factory=bytearray)
    """What reached the toy server."""
    port: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """What the gateway told of requests, by standing."""

    async def complete(self, request: Request) -> Completion:
        """Answer with the canary; this is the `Model` that the gateway serves."""
        await anyio.lowlevel.checkpoint()
        self.requests.append(request)
        usage = Usage(input=1, cache_write_5m=0, cache_write_1h=0, cache_read=0, output=1)
        return Completion(text=self.canary, stop="stop", usage=usage, served_model=MODEL, latency_s=0.0)

    def tell(self, event: str, **data: Any) -> None:
        """Count what the gateway tells."""
        if event == "gateway":
            standing = str(data.get("standing"))
            self.counts[standing] = self.counts.get(standing, 0) + 1

    async def serve(self, client: SocketStream) -> None:
        """The toy: hear a request out, as far as it comes, and answer it with the canary."""
        async with client:
            try:
                await self._hear(client)
                text = self.canary.encode()
                await client.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
            except _GONE:
                return

    async def _hear(self, client: SocketStream) -> None:
        taken = 0
        while taken < _DRAIN_BYTES:
            with anyio.move_on_after(_DRAIN_S) as quiet:
                try:
                    part = await client.receive()
                except anyio.EndOfStream:
                    return
                taken += len(part)
                self.heard += part[: max(0, _HEAD_BYTES - len(self.heard))]
            if quiet.cancelled_caught:
                return

    async def up(self) -> bool:
        """Whether the toy answers this host: a wall in front of nothing would always seem to hold."""
        try:
            async with await anyio.connect_tcp("127.0.0.1", self.port) as client:
                await client.send(b"GET / HTTP/1.1\r\n\r\n")
                await client.send_eof()
                with anyio.move_on_after(10):
                    return self.canary.encode() in await client.receive()
        except (OSError, *_GONE):
            pass
        return False


@asynccontextmanager
async def gateway_up(workspace: Workspace, rules: GatewayRules | None) -> AsyncIterator[Upstream]:
    """
    The upstream, and at the workspace's gateway folder, where it has one, the real gateway before the scripted model,
    or, without rules, a byte proxy before the toy server.
    """
    upstream = Upstream()
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        upstream.port = int(listener.extra(SocketAttribute.local_port))  # noqa: S610 - no Django here
        async with _beside(partial(listener.serve, upstream.serve)):
            if workspace.gateway is None:
                yield upstream
            elif rules is None:
                async with _proxied(workspace.gateway, upstream):
                    yield upstream
            else:
                async with _ruled(workspace.gateway, rules, upstream):
                    yield upstream


def rules_of(fence: Fence) -> GatewayRules | None:
    """The rules of a fence's gateway, None where a control has lifted them."""
    return None if "gateway-rules" in fence.lifted else fence.gateway


@asynccontextmanager
async def _beside(server: Callable[[], Coroutine[Any, Any, Any]]) -> AsyncIterator[None]:
    """Run the server until the block is left, and pass on the block's own error as it is, not wrapped in a group."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - it is raised again below, outside the task group
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


@asynccontextmanager
async def _proxied(folder: Path, upstream: Upstream) -> AsyncIterator[None]:
    path = folder / GATEWAY_SOCKET
    proxy = ByteProxy(port=upstream.port)
    try:
        async with (
            await anyio.create_unix_listener(path, mode=0o666) as door,
            _beside(partial(door.serve, proxy.serve)),
        ):
            yield
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.Path(path).unlink(missing_ok=True)


@asynccontextmanager
async def _ruled(folder: Path, rules: GatewayRules, upstream: Upstream) -> AsyncIterator[None]:
    from harness.gateway.serve import serve_gateway

    # The probes speak this wire; whether a policy serves it to agents is no part of what they ask.
    wires = rules.wires if "openai" in rules.wires else (*rules.wires, "openai")
    async with serve_gateway(
        folder,
        rules=replace(rules, wires=wires),
        model=upstream,
        decoding=DECODING,
        seeds=SeedBook("probe", "gateway"),
        name=MODEL,
        event=upstream.tell,
    ):
        yield


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """One request: its bytes, and how many more are sent after them, made up in the workspace."""

    what: str
    data: bytes
    more: int = 0


def body(**changes: Any) -> bytes:
    """An honest chat request as JSON, with some fields changed; None takes a field out."""
    whole = {"model": MODEL, "messages": [{"role": "user", "content": "Say a word."}], **changes}
    return json.dumps({key: value for key, value in whole.items() if value is not None}).encode()


def post(
    data: bytes,
    *,
    path: str = PATHS["openai"],
    method: str = "POST",
    headers: Sequence[str] = (),
    length: int | str | None = None,
) -> bytes:
    """A request as bytes. `headers` are more lines of its head; `length` may lie."""
    size = len(data) if length is None else length
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: 127.0.0.1:{GATEWAY_PORT}",
        "Content-Type: application/json",
        f"Content-Length: {size}",
        *headers,
    ]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + data


_SPEAK = """
import base64
def speak(data, more):
    with socket.create_connection(("127.0.0.1", args["port"]), timeout=15) as peer:
        said = b""
        try:
            peer.sendall(data)
            for start in range(0, more, 65536):
                peer.sendall(b"x" * min(65536, more - start))
            peer.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        try:
            while len(said) < 65536:
                part = peer.recv(65536)
                if not part:
                    break
                said += part
        except OSError:
            pass
        return said or {"signature": "CLOSED"}
for what, data, more in args["requests"]:
    attempt(what, lambda: speak(base64.b64decode(data), more))
"""


async def send_all(workspace: Workspace, requests: Sequence[Sent]) -> Sequence[Try] | str:
    """What each request brought back, in order, or why nothing is known: bytes, `CLOSED`, or an errno's name."""
    from base64 import b64encode

    told: Mapping[str, Any] = {
        "port": GATEWAY_PORT,
        "requests": [(item.what, b64encode(item.data).decode(), item.more) for item in requests],
    }
    return await run_program(workspace, _SPEAK, told)


async def ask_model(workspace: Workspace) -> Attempt:
    """Whether an honest request on each wire is answered by the scripted model; SERVED when all of them are."""
    if workspace.gateway is None:
        return Attempt(finding=Finding.ABSENT, evidence="the workspace has no gateway")
    async with gateway_up(workspace, GatewayRules()) as upstream:
        asked = [
            Sent(what=wire, data=post(body(max_tokens=8 if wire == "anthropic" else None, stream=False), path=path))
            for wire, path in PATHS.items()
        ]
        found = await send_all(workspace, asked)
    if isinstance(found, str):
        return Attempt(finding=Finding.INCONCLUSIVE, evidence=found)
    failed = [item for item in found if upstream.canary.encode() not in (item.got or b"")]
    return weigh(failed or found, canary=upstream.canary)
