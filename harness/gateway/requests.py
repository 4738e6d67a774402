"""
HTTP as it must be, and nothing else: one request at a time, its head in lines that end with CR LF, one length.

h11 reads the head. What it would forgive, and another reader would read otherwise, is refused before it sees it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import h11

from harness.gateway.asking import Refusal

__all__ = ["Head", "Receive", "RequestReader", "is_json"]

Receive: TypeAlias = Callable[[], Awaitable[bytes]]
"""The next bytes of a connection; none at all at its end."""

HEADERS = 64
_END = b"\r\n\r\n"
_ODD = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r[^\n]|(?:\A|[^\r])\n|\r\n[ \t]")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([^\r]*?)[ \t]*(?=\r\n)", re.IGNORECASE)
_DIGITS = re.compile(rb"[0-9]{1,15}\Z")
_JSON = re.compile(rb"application/json(?:[ \t]*;[ \t]*charset=\"?utf-8\"?)?\Z", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The head of a request that is framed as it must be: how long its body is, and whether the peer awaits a 100."""

    method: str
    target: str
    headers: Mapping[str, bytes]
    length: int | None
    expects: bool


class RequestReader:
    """Reads the requests of one connection; `started` tells whether anything of the present one has arrived."""

    def __init__(self, receive: Receive, *, header_bytes: int) -> None:
        self._receive = receive
        self._most = header_bytes
        self._buffer = bytearray()

    @property
    def started(self) -> bool:
        """Whether there are bytes of a request that is not read yet."""
        return bool(self._buffer)

    async def head(self) -> Head | None:
        """The next request's head, or None where the connection has ended before one began. Raises `Refusal`."""
        seen = 0
        while (end := self._buffer.find(_END, max(0, seen - 3))) < 0:
            self._check(max(0, seen - 2), len(self._buffer))
            seen = len(self._buffer)
            data = await self._receive()
            if not data:
                if self._buffer:
                    raise Refusal(400, "the connection ended inside a request's head")
                return None
            self._buffer += data
        end += len(_END)
        self._check(max(0, seen - 2), end)
        head = bytes(self._buffer[:end])
        del self._buffer[:end]
        return _parsed(head, most=self._most)

    def _check(self, start: int, end: int) -> None:
        if min(end, len(self._buffer)) > self._most:
            raise Refusal(431, f"the request's head is longer than {self._most} bytes")
        odd = _ODD.search(self._buffer, start, end)
        if odd is not None:
            raise Refusal(400, f"the request's head holds {odd[0]!r}: expected lines of text that end with CR LF")

    async def body(self, length: int) -> bytes:
        """The `length` bytes of the body. Raises `Refusal` where they do not come, or more than they do."""
        while len(self._buffer) < length:
            data = await self._receive()
            if not data:
                raise Refusal(400, f"the connection ended after {len(self._buffer)} of {length} bytes of the body")
            self._buffer += data
        if len(self._buffer) > length:
            raise Refusal(400, "more came than the request's length says: one request at a time")
        body = bytes(self._buffer)
        self._buffer.clear()
        return body


def _parsed(head: bytes, *, most: int) -> Head:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=most + 1)
    connection.receive_data(head)
    try:
        request = connection.next_event()
    except h11.RemoteProtocolError as error:
        raise Refusal(400, f"the request's head is not HTTP: {error}") from None
    if not isinstance(request, h11.Request):
        raise Refusal(400, "the request's head is not HTTP")
    if request.http_version != b"1.1":
        raise Refusal(505, f"the version is HTTP/{request.http_version.decode('ascii', 'replace')}: expected HTTP/1.1")
    if len(request.headers) > HEADERS:
        raise Refusal(431, f"the request has {len(request.headers)} headers: expected {HEADERS} at most")
    headers = {name.decode("ascii"): value for name, value in request.headers}
    _check_framing(headers, [name.decode("ascii") for name, _ in request.headers])
    return Head(
        method=request.method.decode("ascii", "replace"),
        target=request.target.decode("latin-1"),
        headers=headers,
        length=_length(head),
        expects="expect" in headers,
    )


def _check_framing(headers: Mapping[str, bytes], names: list[str]) -> None:
    """Raises `Refusal` for what would make two readers see two different requests, or another protocol."""
    for name in ("transfer-encoding", "trailer", "upgrade", "http2-settings"):
        if name in headers:
            raise Refusal(400, f"the header {name} is not served: send the body whole, with its length")
    for name in ("host", "content-type", "content-encoding", "expect", "connection"):
        if names.count(name) > 1:
            raise Refusal(400, f"the header {name} stands there twice")
    if headers.get("content-encoding", b"identity").lower() != b"identity":
        raise Refusal(415, "the body is encoded: expected plain JSON")
    if headers.get("expect", b"100-continue").lower() != b"100-continue":
        raise Refusal(417, "the header expect is not one that is known")
    options = {option.strip().lower() for option in headers.get("connection", b"").split(b",")}
    if not options <= {b"", b"close", b"keep-alive"}:
        raise Refusal(400, "the header connection names more than close or keep-alive")


def _length(head: bytes) -> int | None:
    """As it is written: h11 takes two equal lengths, and a list of them, for one."""
    written = _LENGTH.findall(head)
    if not written:
        return None
    if len(written) > 1 or _DIGITS.match(written[0]) is None:
        raise Refusal(400, f"the header content-length is {b' and '.join(written)!r:.60}: expected one number of bytes")
    return int(written[0])


def is_json(headers: Mapping[str, bytes]) -> bool:
    """Whether the body is declared to be JSON in UTF-8."""
    return _JSON.match(headers.get("content-type", b"")) is not None
