"""
Reads the few members that are wanted of a JSON text of any size, as it comes, and steps over the rest.

A transcript of a gigabyte costs no more memory than a piece of it. Everything is taken to be hostile: nesting is
counted and never recursed into, what is kept has a limit, and a text that ends early or holds a key twice is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from cells.imports.stepping import MOST_DEPTH, Stepper

__all__ = ["EACH", "Wanted", "skim", "skim_elements"]

_MOST_WANTED = 100
"""Brackets around what is wanted; these are gone into by recursion, which Python allows no more than a thousand of."""

Wanted = Mapping[str, "Wanted | None"]
"""The members to keep of an object, and of every element of a list: None keeps a value whole."""

EACH: Final = "*"
"""In a `Wanted`, stands for every member that it does not name."""

MOST_KEPT: Final = 16 << 20
"""Bytes that are kept of one text, in all."""
_MOST_KEY: Final = 64 << 10

_NO_SPACE: Final = re.compile(rb"[^ \t\r\n]")
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{}\\]', re.DOTALL)
"""
A string as a whole, a bracket, the quotation mark of a string that does not end here, or a backslash outside of any.
"""
_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")
_SHORT: Final = re.compile(rb'(?:"[^"\\]*+"|[-+.0-9A-Za-z]++|\{\}|\[\])(?=[\s,\]}])')
"""A value without anything in it that needs a closer look, with what follows it."""
_KEY: Final = re.compile(rb'"([^"\\]*+)"\s*+:\s*+(?=\S)')
_STRING: Final = re.compile(rb'["\\]')
_ATOM_END: Final = re.compile(rb"[\s,\]}]")
_CLOSES_OF: Final = {"[": "]", "{": "}"}
_CLOSES: Final = {ord(opening): ord(closing) for opening, closing in _CLOSES_OF.items()}
_WITHIN: Final = "it ends too early, within brackets"
_FIRST_STRETCH: Final = 1 << 10
_LAST_STRETCH: Final = 1 << 18
"""Bytes that are stepped over at a time: few at first, since most values are short."""


def skim(chunks: Iterable[bytes], wanted: Wanted) -> Any:
    """What is wanted of the one JSON value that `chunks` hold. Raises `ValueError` that says where it is not JSON."""
    text = _Text(chunks)
    found = text.value(wanted)
    text.end()
    return found


def skim_elements(chunks: Iterable[bytes], member: str, wanted: Wanted) -> Iterator[Any]:
    """What is wanted of each element of the list that is the top-level `member`; null or no such member holds none."""
    text = _Text(chunks)
    for key in text.members():
        if key != member or text.peek() != "[":
            text.step_over()
            continue
        for _ in text.elements():
            text.forget()
            yield text.value(wanted)
    text.end()


class _Text:
    """A place in a JSON text: what is before it is gone, what is after it has not been read."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._now = b""
        self._at = 0
        self._before = 0
        self._kept = 0
        self._depth = 0

    def forget(self) -> None:
        """Begin to count anew what is kept."""
        self._kept = 0

    def fault(self, what: str) -> ValueError:
        """An error that says where."""
        return ValueError(f"is not JSON at byte {self._before + self._at}: {what}")

    def _more(self) -> bool:
        """Read the next piece, once this one is used up; False at the end."""
        for chunk in self._chunks:
            if chunk:
                self._before += len(self._now)
                self._now, self._at = chunk, 0
                return True
        return False

    def peek(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            if found := _NO_SPACE.search(self._now, self._at):
                self._at = found.start()
                return chr(self._now[self._at])
            self._at = len(self._now)
            if not self._more():
                return ""

    def _expect(self, wanted: str) -> None:
        found = self.peek()
        if not found or found not in wanted:
            raise self.fault(f"it ends too early; expected {wanted!r}" if not found else f"{found!r}, not {wanted!r}")
        self._at += 1

    def end(self) -> None:
        """Raise unless nothing is left."""
        if self.peek():
            raise self.fault("something follows the value")

    def members(self) -> Iterator[str]:
        """The keys of the object that begins here; the caller takes or steps over the value after each."""
        self._expect("{")
        seen: set[str] = set()
        while self.peek() != "}":
            if seen:
                self._expect(",")
            key = self._key()
            if key in seen:
                raise self.fault(f"the key {key[:100]!r} is there twice")
            seen.add(key)
            yield key
        self._expect("}")

    def elements(self) -> Iterator[None]:
        """The elements of the list that begins here; the caller takes or steps over each."""
        self._expect("[")
        first = True
        while self.peek() != "]":
            if not first:
                self._expect(",")
            first = False
            yield None
        self._expect("]")

    def _key(self) -> str:
        """The key that begins here, and the colon after it."""
        if self.peek() != '"':
            raise self.fault("expected a key in quotation marks")
        if found := _KEY.match(self._now, self._at):
            self._at = found.end()
            return str(self._load(found[1].join((b'"', b'"'))))
        key = str(self._load(self._take(_MOST_KEY)))
        self._expect(":")
        return key

    def value(self, wanted: Wanted | None) -> Any:
        """What is wanted of the value that begins here."""
        begins = self.peek()
        if wanted is None or begins not in {"{", "["}:
            return self._load(self._take(MOST_KEPT - self._kept))
        self._depth += 1
        if self._depth > _MOST_WANTED:
            raise self.fault(f"nested deeper than {_MOST_WANTED}, where something is looked for")
        found = self._object(wanted) if begins == "{" else [self.value(wanted) for _ in self.elements()]
        self._depth -= 1
        return found

    def _object(self, wanted: Wanted) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key in self.members():
            if key in wanted or EACH in wanted:
                self._kept += len(key)
                kept[key] = self.value(wanted[key] if key in wanted else wanted[EACH])
            else:
                self.step_over()
        return kept

    def _load(self, data: bytes) -> Any:
        self._kept += len(data)
        try:
            return _DECODER.decode(data.decode("utf-8"))
        except RecursionError:
            raise self.fault("nested too deep") from None
        except ValueError as error:
            raise self.fault(str(error)[:200]) from None

    def _take(self, most: int) -> bytes:
        if (found := _SHORT.match(self._now, self._at)) and found.end() - self._at <= most:
            self._at = found.end()
            return found[0]
        kept: list[bytes] = []
        size = 0
        for piece in self._pieces():
            size += len(piece)
            if size > most:
                raise self.fault(f"more than {MOST_KEPT >> 20} MiB where only short values are expected")
            kept.append(piece)
        return b"".join(kept)

    def step_over(self) -> None:
        """Step over the value that begins here: its brackets and quotation marks must be in order, no more is asked."""
        begins = self.peek()
        if found := _SHORT.match(self._now, self._at):
            self._at = found.end()
            return
        if begins not in _CLOSES_OF:
            for _ in self._pieces():
                pass
            return
        stepper = Stepper()
        stepper.open_ones.append(ord(_CLOSES_OF[begins]))
        self._at += 1
        size = _FIRST_STRETCH
        while stepper.over(stretch := self._now[self._at : self._at + size]):
            self._at += len(stretch)
            if self._at == len(self._now) and not self._more():
                raise self.fault("it ends too early, within a text" if stepper.in_string else _WITHIN)
            size = min(size * 2, _LAST_STRETCH)
        # The value ends within this stretch, or something is wrong with it: it is looked at bracket by bracket.
        if stepper.in_string:
            for _ in self._rest_of_string(escaped=stepper.escaped):
                pass
        for _ in self._nested(stepper.open_ones):
            pass

    def _pieces(self) -> Iterator[bytes]:
        """The bytes of the value that begins here, as they come."""
        match self.peek():
            case "":
                raise self.fault("it ends too early")
            case "{" | "[" as opening:
                yield self._piece_to(self._at + 1)
                yield from self._nested(bytearray(_CLOSES_OF[opening].encode()))
            case '"':
                yield from self._quoted()
            case _:
                yield from self._atom()

    def _piece_to(self, end: int) -> bytes:
        piece = self._now[self._at : end]
        self._at = end
        return piece

    def _nested(self, open_ones: bytearray) -> Iterator[bytes]:
        """The rest of a value whose `open_ones` are the brackets that are to come, the innermost last."""
        while True:
            begin, now = self._at, self._now
            for found in _TOKEN.finditer(now, begin):
                self._at = found.end()
                mark = now[found.start()]
                if mark == _QUOTE:
                    if self._at - found.start() > 1:
                        continue
                    break
                self._fit(mark, open_ones)
                if not open_ones:
                    yield now[begin : self._at]
                    return
            else:
                self._at = len(now)
                yield now[begin:]
                if not self._more():
                    raise self.fault(_WITHIN)
                continue
            # A string that does not end in this piece.
            yield now[begin : self._at]
            yield from self._rest_of_string()

    def _fit(self, mark: int, open_ones: bytearray) -> None:
        """Open or close a bracket; raise for one that doesn't fit, and for a backslash, which no string is around."""
        if mark == _BACKSLASH:
            raise self.fault("a backslash outside a text")
        if mark in _CLOSES:
            open_ones.append(_CLOSES[mark])
            if len(open_ones) > MOST_DEPTH:
                raise self.fault(f"nested deeper than {MOST_DEPTH}")
        elif open_ones.pop() != mark:
            raise self.fault(f"{chr(mark)!r} closes another bracket")

    def _quoted(self) -> Iterator[bytes]:
        yield self._piece_to(self._at + 1)
        yield from self._rest_of_string()

    def _rest_of_string(self, *, escaped: bool = False) -> Iterator[bytes]:
        """What follows within a string, up to its end; if `escaped`, a backslash is right before."""
        while True:
            if escaped and self._at < len(self._now):
                yield self._piece_to(self._at + 1)
                escaped = False
            found = _STRING.search(self._now, self._at)
            yield self._piece_to(found.end() if found else len(self._now))
            if found is None:
                if not self._more():
                    raise self.fault("it ends too early, within a text")
            elif self._now[found.start()] == ord('"'):
                return
            else:
                escaped = True

    def _atom(self) -> Iterator[bytes]:
        while True:
            found = _ATOM_END.search(self._now, self._at)
            yield self._piece_to(found.start() if found else len(self._now))
            if found or not self._more():
                return


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)[:100]!r} is there twice")
    return record


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_once)
