"""
A candidate's text as the verifier reads it: newlines, comments, strings and words, and how deep it is nested.

The judge writes into the room the very text that was read here, in one encoding with one kind of newline, so that what
the screen saw is what the verifier gets. Where the two could still differ, the verifier finds no word and the text does
not build.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

__all__ = ["Token", "Unreadable", "bodies", "modules", "read_text", "tokens"]

_MOST_BYTES = 256 << 10
_DEEPEST = 400
"""Brackets in brackets: the verifier's own parser overflows its stack at some 20,000 and more."""
_LONGEST = 4000
"""Words in one expression, with what stands around it: of some 40,000 (`!` before `!`, `if` in `else`) it dies."""
_GOES_ON = frozenset({"as", "else", "in", "then"})
"""Words with which an expression goes on after a brace."""

_CHARACTER = re.compile(r"'(?:[^'\\\n]|\\['\"\\0nrt]|\\u[0-9a-fA-F]{4})'")
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<line>//[^\n]*)"
    r"|(?P<block>/\*)"
    r'|(?P<verbatim>@"(?:[^"]|"")*")'
    r'|(?P<string>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<word>[A-Za-z_?'][A-Za-z0-9_?']*)"
    r"|(?P<number>0x[0-9a-fA-F](?:_?[0-9a-fA-F])*|[0-9](?:_?[0-9])*)"
    r"|(?P<mark>\.\.\.|<?==>|=>|[-~]>|:=|:\||::|.)"
)
_BLOCK = re.compile(r"/\*|\*/")
_DECLARES = frozenset(
    (
        *("class", "colemma", "const", "constructor", "datatype", "function", "ghost", "import", "inductive"),
        *("iterator", "lemma", "method", "module", "newtype", "predicate", "protected", "static", "trait", "twostate"),
        *("type", "var"),
    )
)


class Unreadable(Exception):  # noqa: N818 - it says what the text is
    """The text is none that the verifier would be given; the message says why."""


@dataclass(frozen=True, slots=True)
class Token:
    """One word, number, string or mark; `start` counts characters, `line` starts at 1."""

    kind: str
    text: str
    start: int
    line: int


def read_text(data: bytes) -> str:
    """
    The text that is judged: UTF-8, newlines as one character. Raises `Unreadable` for text over 256 KiB, for bytes that
    are no plain text, and for lines that the verifier's preprocessor would take as its own.
    """
    if len(data) > _MOST_BYTES:
        raise Unreadable(f"{len(data)} bytes: at most {_MOST_BYTES} are read")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 text: {error.reason} at byte {error.start}") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    odd = next((char for char in text if (char < " " and char not in "\n\t") or char in "\x7f\ufeff\ufffe"), None)
    if odd is not None:
        raise Unreadable(f"holds the character {odd!r}")
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip().startswith("#"):
            raise Unreadable(f"line {number} starts with '#', which the verifier's preprocessor reads")
    return text


def tokens(text: str) -> list[Token]:
    """
    Everything in the text but blanks and comments. Raises `Unreadable` for brackets nested too deep and for expressions
    that are too long, of which the verifier would die.
    """
    found = list(_scan(text))
    counts, total = [0], 0
    for token, after in zip_longest(found, found[1:]):
        if token.text in ("(", "[", "{"):
            counts.append(0)
        elif token.text in (")", "]", "}") and len(counts) > 1:
            total -= counts.pop()
        if token.text in (";", ",") or (token.text == "}" and _ends(after)):
            total, counts[-1] = total - counts[-1], 0
        counts[-1], total = counts[-1] + 1, total + 1
        if len(counts) > _DEEPEST + 1:
            raise Unreadable(f"line {token.line} is {_DEEPEST} brackets deep")
        if total > _LONGEST:
            raise Unreadable(f"line {token.line}: {_LONGEST} words without one of `;`, `,` or a body's brace")
    return found


def _ends(after: Token | None) -> bool:
    """Whether what was closed by a brace ends there, by the token behind it."""
    return after is None or after.text == "}" or (after.kind == "word" and after.text not in _GOES_ON)


def _scan(text: str) -> Iterator[Token]:
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:  # pragma: no cover - the last mark matches any character but a newline, which is a blank
            raise Unreadable(f"line {line} can't be read")
        kind, end = str(match.lastgroup), match.end()
        if kind == "block":
            end = _block_end(text, end)
        elif kind == "word" and text[at] == "'":
            # The longer of the two wins, and a character of three signs is no word.
            character = _CHARACTER.match(text, at)
            if character is not None and character.end() >= end:
                kind, end = "character", character.end()
        elif kind == "mark" and text[at] == "'":
            character = _CHARACTER.match(text, at)
            kind, end = ("character", character.end()) if character else (kind, end)
        if kind not in ("space", "line", "block"):
            yield Token(kind, text[at:end], at, line)
        line += text.count("\n", at, end)
        at = end


def _block_end(text: str, at: int) -> int:
    """Where the comment that was opened just before `at` is closed; comments nest."""
    depth = 1
    while depth:
        match = _BLOCK.search(text, at)
        if match is None:
            return len(text)
        depth += 1 if match.group() == "/*" else -1
        at = match.end()
    return at


def modules(found: Sequence[Token]) -> list[str]:
    """The names of the modules that the text declares, at whatever depth; `A.B` is a module `B` inside of `A`."""
    names: list[str] = []
    for place, token in enumerate(found):
        if (token.kind, token.text) == ("word", "module"):
            names += _path(_after_attributes(found[place + 1 :]))
    return names


def _path(found: Iterator[Token]) -> Iterator[str]:
    """The words of a name with dots, from the first token on."""
    while (word := next(found, None)) is not None and word.kind == "word":
        yield word.text
        if (dot := next(found, None)) is None or dot.text != ".":
            return


def _after_attributes(found: Sequence[Token]) -> Iterator[Token]:
    """The tokens from the first one on that stands in no group in braces."""
    depth = 0
    for token in found:
        depth += token.text == "{"
        if not depth:
            yield token
        depth -= token.text == "}"


def bodies(found: Sequence[Token]) -> list[tuple[int, int]]:
    """
    Where the bodies of the members of a text of one module stand, as pairs of characters: each is a group in braces,
    directly in the module, after which another declaration or the module's end comes.
    """
    spans: list[tuple[int, int]] = []
    opened: list[int] = []
    for token, after in zip_longest(found, found[1:]):
        if token.text == "{":
            opened.append(token.start)
        elif token.text == "}" and opened:
            start = opened.pop()
            last = after is None or after.text == "}" or after.text in _DECLARES
            if len(opened) == 1 and last:
                spans.append((start, token.start + 1))
    return spans
