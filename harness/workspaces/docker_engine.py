"""Talks to the container engine: its calls in worker threads, and the raw stream of a program it runs."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import anyio
from anyio import to_thread
from anyio.abc import ByteStream
from anyio.lowlevel import RunVar
from anyio.streams.buffered import BufferedByteReceiveStream

from harness import environment
from harness.errors import WorkspaceError

__all__ = ["Engine", "NotFoundError"]

_T = TypeVar("_T")
_SOCKET = "unix:///var/run/docker.sock"
_PATIENCE_S = 60
_THREADS = 16
_HEAD_BYTES = 65_536
_UPGRADED = 101
_OK = 200

# A limiter belongs to one event loop; a backend may outlive one.
_limiter: RunVar[anyio.CapacityLimiter] = RunVar("proctor-docker-threads")


class NotFoundError(WorkspaceError):
    """The engine has no such thing."""


class Engine:
    """One container engine, reached when first asked for something."""

    def __init__(self, url: str | None = None) -> None:
        self.url = url or environment.docker_host() or _SOCKET
        self._api: Any = None

    async def call(self, ask: Callable[[Any], _T]) -> _T:
        """
        What `ask` makes of docker-py's client, in a worker thread that a cancellation leaves behind.

        Raises `NotFoundError` when the engine says so, `WorkspaceError` for everything else that went wrong.
        """
        return await to_thread.run_sync(self._ask, ask, abandon_on_cancel=True, limiter=_threads())

    def _ask(self, ask: Callable[[Any], _T]) -> _T:
        from docker import errors
        from requests.exceptions import RequestException

        try:
            _knock(self.url)
            if self._api is None:
                self._api = _client(self.url)
            return ask(self._api)
        except errors.NotFound as error:
            raise NotFoundError(str(error.explanation or error)) from error
        except errors.APIError as error:
            raise WorkspaceError(f"the container engine refused: {error.explanation or error}") from error
        except (errors.DockerException, RequestException, OSError) as error:
            raise WorkspaceError(self._silent(error)) from error

    def _silent(self, error: BaseException) -> str:
        return (
            f"the container engine at {self.url} does not answer ({error}): start it (`systemctl start docker`, or run "
            "`dockerd`), see that this user may use it, or point DOCKER_HOST at another"
        )

    @asynccontextmanager
    async def attach(self, exec_id: str) -> AsyncIterator[ByteStream]:
        """
        Start the program `exec_id` and give the raw stream of its input and framed outputs.

        The request is made by hand: docker-py may lose the first bytes of an output to a buffer of its own, and a
        thread of its would sit in a read that nothing can cancel.
        """
        body = json.dumps({"Detach": False, "Tty": False}).encode()
        head = (
            f"POST /exec/{exec_id}/start HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\n"
            f"Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        try:
            raw = await _connect(self.url)
        except OSError as error:
            raise WorkspaceError(self._silent(error)) from error
        try:
            stream = _Hijacked(raw)
            await stream.begin(head.encode() + body)
            yield stream
        finally:
            # Closing a socket takes no waiting: a cancellation has no business here.
            with anyio.CancelScope(shield=True):
                await raw.aclose()


def _threads() -> anyio.CapacityLimiter:
    try:
        return _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(_THREADS)
        _limiter.set(limiter)
        return limiter


def _knock(url: str) -> None:
    """Raise `OSError` when nothing listens at a local socket: docker-py would leave its own socket open over that."""
    if (path := _socket_path(url)) is not None:
        with socket.socket(socket.AF_UNIX) as knocker:
            knocker.settimeout(_PATIENCE_S)
            knocker.connect(path)


def _socket_path(url: str) -> str | None:
    parts = urlsplit(url)
    if parts.scheme not in ("unix", "http+unix"):
        return None
    return f"/{parts.netloc}{parts.path}" if parts.netloc else parts.path


def _client(url: str) -> Any:
    import docker

    api = docker.APIClient(base_url=url, version="auto", timeout=_PATIENCE_S, max_pool_size=_THREADS)
    # No connection is kept: nobody tells a backend when it is done with, so there must be nothing to close.
    api.headers["Connection"] = "close"
    api.trust_env = False
    return api


async def _connect(url: str) -> ByteStream:
    if (path := _socket_path(url)) is not None:
        return await anyio.connect_unix(path)
    parts = urlsplit(url)
    if parts.scheme in ("tcp", "http") and parts.hostname and parts.port:
        return await anyio.connect_tcp(parts.hostname, parts.port)
    raise WorkspaceError(
        f"container engine address {url!r} can't be used: expected unix:///PATH or tcp://HOST:PORT; forward a remote "
        "engine's socket to a local one"
    )


class _Hijacked(ByteStream):
    """A connection that was an HTTP request and is now the program's own."""

    def __init__(self, raw: ByteStream) -> None:
        self._raw = raw
        self._buffered = BufferedByteReceiveStream(raw)

    async def begin(self, request: bytes) -> None:
        """Send the request and read the head of its answer. Raises `WorkspaceError` unless the engine agreed."""
        try:
            await self._raw.send(request)
            head = await self._buffered.receive_until(b"\r\n\r\n", _HEAD_BYTES)
        except (
            anyio.BrokenResourceError,
            anyio.EndOfStream,
            anyio.IncompleteRead,
            anyio.DelimiterNotFound,
        ) as error:
            raise WorkspaceError(f"the container engine broke off: {error!r}") from error
        status = head.split(b" ", 2)[1] if head.count(b" ") > 1 else b""
        if status not in (str(_UPGRADED).encode(), str(_OK).encode()):
            with anyio.move_on_after(1):
                head += b" " + await self._buffered.receive(_HEAD_BYTES)
            raise WorkspaceError(f"the container engine refused to start a program: {head.decode(errors='replace')}")

    async def receive(self, max_bytes: int = 65_536) -> bytes:
        return await self._buffered.receive(max_bytes)

    async def send(self, item: bytes) -> None:
        await self._raw.send(item)

    async def send_eof(self) -> None:
        await self._raw.send_eof()

    async def aclose(self) -> None:
        await self._raw.aclose()
