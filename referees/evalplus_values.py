"""
A bounded reader of the bytes in which a candidate's values come.

The bytes are the exact builtin types of version 2 of CPython's marshal format. They are hostile: `marshal.loads` is not
made for such bytes (it can crash the interpreter and builds code objects), so this reader knows the types that an
answer may have, refuses everything else, and never builds more than it was told to.
"""

from __future__ import annotations

import struct
from typing import Any

__all__ = ["MAX_DEPTH", "nodes_in", "parse"]

MAX_DEPTH = 150
"""How deep lists, tuples, sets and dicts may be nested."""

_SINGLES: dict[int, Any] = {ord("N"): None, ord("T"): True, ord("F"): False}
_SEQUENCES = {ord("["): list, ord("("): tuple, ord("<"): set, ord(">"): frozenset}
_END = object()


class _Reader:
    """The bytes, where we are in them, and how many values may still be made."""

    def __init__(self, data: bytes, max_nodes: int) -> None:
        self.data, self.at, self.left = data, 0, max_nodes

    def take(self, count: int) -> bytes:
        if count < 0 or count > len(self.data) - self.at:
            raise ValueError(f"{count} bytes announced at {self.at}, {len(self.data) - self.at} there")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self) -> int:
        value: int = struct.unpack("<i", self.take(4))[0]
        return value

    def long(self) -> int:
        """An integer of 15-bit digits, the sign in the count."""
        count = self.number()
        digits = struct.unpack(f"<{abs(count)}H", self.take(2 * abs(count)))
        if any(digit > 0x7FFF for digit in digits) or (digits and digits[-1] == 0):
            raise ValueError("digits of an integer that no integer has")
        value = int("".join(format(digit, "015b") for digit in reversed(digits)) or "0", 2)
        return -value if count < 0 else value

    def items(self, count: int, depth: int) -> list[Any]:
        if count < 0 or count > self.left:
            raise ValueError(f"{count} values announced, {self.left} allowed")
        return [self.value(depth + 1) for _ in range(count)]

    def mapping(self, depth: int) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        while True:
            key = self.value(depth + 1, may_end=True)
            if key is _END:
                return made
            made[key] = self.value(depth + 1)

    def value(self, depth: int = 0, *, may_end: bool = False) -> Any:
        self.left -= 1
        if depth > MAX_DEPTH or self.left < 0:
            raise ValueError("nested too deep" if depth > MAX_DEPTH else "too many values")
        kind = self.take(1)[0]
        if kind in _SINGLES:
            return _SINGLES[kind]
        if kind in _SEQUENCES:
            return _SEQUENCES[kind](self.items(self.number(), depth))
        if kind == ord("{"):
            return self.mapping(depth)
        if kind == ord("0") and may_end:
            return _END
        return self.leaf(chr(kind))

    def leaf(self, kind: str) -> Any:
        match kind:
            case "i":
                return self.number()
            case "l":
                return self.long()
            case "g":
                return struct.unpack("<d", self.take(8))[0]
            case "y":
                return complex(*struct.unpack("<2d", self.take(16)))
            case "u":
                return self.take(self.number()).decode("utf-8", "surrogatepass")
            case "s":
                return self.take(self.number())
            case _:
                raise ValueError(f"type {kind!r} is no plain value")


def parse(data: bytes, *, max_nodes: int) -> Any:
    """
    The value that `data` says, made of None, bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict.

    Raises `ValueError` for anything else: another type, a truncated or over-long text, an unhashable key, nesting over
    `MAX_DEPTH`, or more than `max_nodes` values (which bounds the work that colliding hashes could make).
    """
    reader = _Reader(data, max_nodes)
    try:
        value = reader.value()
    except (TypeError, struct.error) as error:  # an unhashable key or member
        raise ValueError(str(error)) from error
    if reader.at != len(data):
        raise ValueError(f"{len(data) - reader.at} bytes after the value")
    return value


def nodes_in(value: Any) -> int:
    """How many values `value` is made of, itself included."""
    if isinstance(value, dict):
        return 1 + sum(nodes_in(key) + nodes_in(item) for key, item in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return 1 + sum(nodes_in(item) for item in value)
    return 1
