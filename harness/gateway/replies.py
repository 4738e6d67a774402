"""Responses as bytes: one with its length, or a stream of chunks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

__all__ = ["CONTINUE", "LAST_CHUNK", "chunk", "reply", "stream_head"]

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def reply(status: int, data: Mapping[str, Any], *, close: bool) -> bytes:
    """A whole response with a JSON body."""
    body = json.dumps(data, separators=(",", ":")).encode()
    return _head(status, "application/json", f"content-length: {len(body)}", close=close) + body


def stream_head(content_type: str, *, close: bool) -> bytes:
    """The head of a response that comes in chunks."""
    return _head(200, content_type, "cache-control: no-cache\r\ntransfer-encoding: chunked", close=close)


def chunk(data: bytes) -> bytes:
    """One chunk of a stream."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _head(status: int, content_type: str, framing: str, *, close: bool) -> bytes:
    lines = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"content-type: {content_type}",
        framing,
        f"connection: {'close' if close else 'keep-alive'}",
    )
    return "\r\n".join((*lines, "", "")).encode()
