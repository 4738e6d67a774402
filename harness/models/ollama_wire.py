"""
Talking to an Ollama server: how its client is made, and whose failure each of its errors is.

This module needs the client installed, so `harness.models.ollama` imports it where it is used.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache

import httpx
import ollama

from harness import environment
from harness.errors import Blamed, ContentRefused, ModelServerError, RequestRefused, WindowExceeded
from harness.messages import ModelSpec
from harness.models.address import server_address
from harness.models.blame import bounded
from harness.models.chat_wire import is_overflow

__all__ = ["Wire", "blaming", "connect"]

PORT = 11434
CONNECT_S = 10.0
CHAT = "/api/chat"
CONTENT = frozenset({400, 413, 422})
BUSY = frozenset({408, 425, 429})


@dataclass(frozen=True, kw_only=True, slots=True)
class Wire:
    """Both ways to one server: the official client for chats, and plain HTTP for what that client leaves out."""

    address: str
    client: ollama.AsyncClient
    http: httpx.AsyncClient
    key: str | None

    def __repr__(self) -> str:
        """The address alone: a key must not get into a message by way of a repr."""
        return f"Wire({self.address})"


@asynccontextmanager
async def connect(spec: ModelSpec, *, timeout_s: float) -> AsyncIterator[Wire]:
    """
    A wire to the server of `spec`. Raises `ExperimentError` when the address is not right.

    No proxy of the environment comes between and no redirect is followed.
    """
    address = server_address(spec, spec.base_url or environment.ollama_host(), default_port=PORT)
    key = environment.secret(spec.key_env) if spec.key_env is not None else None
    timeout = httpx.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s))
    async with (
        httpx.AsyncClient(base_url=address, timeout=timeout, trust_env=False, transport=_Transport(key)) as http,
        ollama.AsyncClient(
            host=address, timeout=timeout, trust_env=False, follow_redirects=False, transport=_Transport(key)
        ) as client,
    ):
        yield Wire(address=address, client=client, http=http, key=key)


@cache
def _certificates() -> ssl.SSLContext:
    """Read once: it takes longer than many an answer."""
    return httpx.create_ssl_context(trust_env=False)


class _Transport(httpx.AsyncHTTPTransport):
    """
    Sends what the client has no argument for, and withholds what it sends unasked.

    The client puts OLLAMA_API_KEY on requests to any server: only a key that the specification names may go out. A chat
    gets `truncate` and `shift`: an over-long prompt shall be refused, not cut, and a full window shall end the answer,
    not push the prompt out. Servers too old to know these two let them be.
    """

    def __init__(self, key: str | None) -> None:
        super().__init__(verify=_certificates(), trust_env=False)
        self._key = key

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The reply to `request` as it should have been made."""
        headers = httpx.Headers(request.headers)
        headers.pop("authorization", None)
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        content = await request.aread()
        if request.url.path.endswith(CHAT):
            content = json.dumps({**json.loads(content), "truncate": False, "shift": False}).encode()
            headers["content-length"] = str(len(content))
        sent = httpx.Request(
            request.method, request.url, headers=headers, stream=_Body(content), extensions=request.extensions
        )
        return await super().handle_async_request(sent)


class _Body(httpx.AsyncByteStream):
    """A request's body. The client's own is a generator, which a call cancelled while it is sent leaves unfinished."""

    def __init__(self, content: bytes) -> None:
        self._parts = [content] if content else []

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._parts:
            raise StopAsyncIteration
        return self._parts.pop()


@contextmanager
def blaming(wire: Wire) -> Iterator[None]:
    """Turns every error of the client and its transport into the `Blamed` error that says whose failure it is."""
    try:
        yield
    except (ollama.ResponseError, httpx.HTTPStatusError) as error:
        raise _refusal(error, wire) from None
    except ollama.RequestError as error:
        raise RequestRefused(f"the client refused the request: {bounded(error.error, without=wire.key)}") from None
    except (ConnectionError, httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as error:
        words = bounded(f"{type(error).__name__}: {error}", without=wire.key)
        raise ModelServerError(f"the server at {wire.address} can't be reached or broke off: {words}") from None
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        # The client parses a reply without checking it, so what is no reply fails in any of these ways.
        words = bounded(f"{type(error).__name__}: {error}", without=wire.key)
        raise ModelServerError(f"the server at {wire.address} answered something that is no answer: {words}") from None


def _refusal(error: ollama.ResponseError | httpx.HTTPStatusError, wire: Wire) -> Blamed:
    if isinstance(error, ollama.ResponseError):
        status, said = error.status_code, str(error.error)
    else:
        status, said = error.response.status_code, error.response.text
    words = bounded(said, without=wire.key)
    if status >= 400 and is_overflow(said):
        return WindowExceeded(f"the server refused a prompt that does not fit its window: {words}")
    if status in CONTENT:
        return ContentRefused(f"the server at {wire.address} refused the request (status {status}): {words}")
    if 400 <= status < 500 and status not in BUSY:
        return RequestRefused(f"the server at {wire.address} refused the request (status {status}): {words}")
    return ModelServerError(f"the server at {wire.address} failed (status {status}): {words}")
