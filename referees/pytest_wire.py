"""
The type table of the `pytest` referee: what may cross between the suite and the subject, and how.

This file runs inside workspaces too, so it uses the standard library only. A value crosses by its *exact* type: None,
bool, int, float, str, bytes, bytearray, list, tuple, dict, set and frozenset, nested as deep as `DEPTH`. Everything
else stays where it is and crosses as a handle. Nothing is pickled, so that nothing of the subject's ever runs where
the expected values are. Of handles and of exception classes a suite takes `HANDLES` and `CLASSES`, each with a name of
`LABEL` characters: what stands for them there is never let go.
"""

from __future__ import annotations

import base64
import json
import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

DEPTH = 64
NODES = 200_000
HASHED = 20_000
LINEAGE = 32
CLASSES = 10_000
HANDLES = 500_000
LABEL = 80
FRAME = 4 << 20
LOAD = 160 << 20
LAST, LAST_BYTES = b"Q", 10
BEAT = b"A"

_HEAD = struct.Struct(">Ic")
_RAW_INT = 1 << 53
_CONTAINERS: dict[type, str] = {list: "l", tuple: "t", set: "s", frozenset: "z"}


class WireError(ValueError):
    """Something that the table does not allow: too deep, too large, or not well formed."""


class _Packer:
    """Packs one value; `keep` makes a handle of what is not in the table, as a JSON list."""

    def __init__(self, keep: Callable[[Any], list[Any]]) -> None:
        self.keep = keep
        self.nodes = 0

    def pack(self, value: Any, depth: int = 0) -> Any:
        self.nodes += 1
        if self.nodes > NODES or depth > DEPTH:
            raise WireError(f"a value of more than {NODES} parts, or deeper than {DEPTH}")
        kind = type(value)
        if value is None or kind is bool or kind is float or kind is str:
            return value
        if kind is int:
            return value if -_RAW_INT < value < _RAW_INT else {"i": hex(value)}
        if kind is bytes or kind is bytearray:
            return {"b" if kind is bytes else "y": base64.b64encode(value).decode("ascii")}
        if kind in (dict, set, frozenset) and len(value) > HASHED:
            raise WireError(f"a {kind.__name__} of {len(value)} entries: expected at most {HASHED}")
        tag = _CONTAINERS.get(kind)
        if tag is not None:
            return {tag: [self.pack(item, depth + 1) for item in list(value)]}
        if kind is dict:
            pairs = list(value.items())
            return {"d": [[self.pack(key, depth + 1), self.pack(item, depth + 1)] for key, item in pairs]}
        return {"h": self.keep(value)}


def pack(value: Any, keep: Callable[[Any], list[Any]]) -> Any:
    """`value` as JSON data. Raises `WireError` for one that is too large or too deep."""
    return _Packer(keep).pack(value)


def _bytes(text: Any) -> bytes:
    return base64.b64decode(text.encode("ascii"), validate=True)


class _Unpacker:
    """Unpacks one value; `found` makes what a handle stands for on this side."""

    def __init__(self, found: Callable[[list[Any]], Any]) -> None:
        self.found = found
        self.nodes = 0

    def unpack(self, data: Any, depth: int = 0) -> Any:
        self.nodes += 1
        if self.nodes > NODES or depth > DEPTH:
            raise WireError(f"a value of more than {NODES} parts, or deeper than {DEPTH}")
        if data is None or type(data) in (bool, int, float, str):
            return data
        if type(data) is not dict or len(data) != 1:
            raise WireError("not a packed value")
        ((tag, body),) = data.items()
        return self._tagged(tag, body, depth + 1)

    def _tagged(self, tag: str, body: Any, depth: int) -> Any:
        if tag in ("i", "b", "y"):
            if type(body) is not str:
                raise WireError("not a packed value")
            return int(body, 16) if tag == "i" else _bytes(body) if tag == "b" else bytearray(_bytes(body))
        if type(body) is not list:
            raise WireError("not a packed value")
        if tag == "h":
            return self.found(body)
        if tag in ("d", "s", "z") and len(body) > HASHED:
            # keys that all have one hash make a table quadratic to build
            raise WireError(f"{len(body)} entries: expected at most {HASHED}")
        if tag == "d":
            return {self.unpack(key, depth): self.unpack(item, depth) for key, item in body}
        made: Callable[[Iterable[Any]], Any] | None = {"l": list, "t": tuple, "s": set, "z": frozenset}.get(tag)
        if made is None:
            raise WireError("not a packed value")
        return made(self._each(body, depth))

    def _each(self, body: list[Any], depth: int) -> Iterator[Any]:
        return (self.unpack(item, depth) for item in body)


def unpack(data: Any, found: Callable[[list[Any]], Any]) -> Any:
    """The value that `data` packs. Raises `WireError` for whatever `pack` would not have made."""
    try:
        return _Unpacker(found).unpack(data)
    except WireError:
        raise
    except (TypeError, ValueError, RecursionError, MemoryError) as error:  # hostile data: an unhashable key, bad base64
        raise WireError(f"not a packed value: {type(error).__name__}") from error


def frame(kind: bytes, body: Any) -> bytes:
    """One frame: length, a kind of one byte, JSON."""
    text = json.dumps(body, separators=(",", ":")).encode("ascii")
    if len(text) > FRAME:
        raise WireError(f"a message of {len(text)} bytes: expected at most {FRAME}")
    return _HEAD.pack(len(text), kind) + text


def raw_frame(kind: bytes, body: bytes) -> bytes:
    """One frame whose body is bytes; only the harness sends these, to load a room."""
    return _HEAD.pack(len(body), kind) + body


def last_word(status: int) -> bytes:
    """What the process that outlived a program says of its end: one frame, of the same length for every status."""
    return raw_frame(LAST, b"%5d" % status)


def found_last_word(tail: bytes) -> int | None:
    """The status in a last word that is the end of `tail`, be it behind a frame cut short; None where none is."""
    said = re.search(rb"\0\0\0\x05Q +(-?[0-9]+)\Z", tail)
    return int(said[1]) if said and len(said[0]) == LAST_BYTES else None


def head(data: bytes, limit: int) -> tuple[int, bytes]:
    """Length and kind from the five bytes that begin a frame. Raises `WireError` for a length over `limit`."""
    length, kind = _HEAD.unpack(data)
    if length > limit:
        raise WireError(f"a message of {length} bytes: expected at most {limit}")
    return length, kind


def read_exactly(fd: int, count: int) -> bytes:
    """`count` bytes from a file descriptor. Raises `EOFError` when it ends before."""
    parts: list[bytes] = []
    while count:
        part = os.read(fd, min(count, 1 << 20))
        if not part:
            raise EOFError("the channel is closed")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def read_frame(fd: int, limit: int = FRAME) -> tuple[bytes, bytes]:
    """Kind and body of the next frame."""
    length, kind = head(read_exactly(fd, 5), limit)
    return kind, read_exactly(fd, length)


def write_all(fd: int, data: bytes) -> None:
    """All of `data` to a file descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def take_channel() -> tuple[int, int]:
    """
    Move standard input and output to descriptors of their own, and put the null device in their place, so that nothing
    that prints can get into the channel by accident.
    """
    reader, writer = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    return reader, writer
