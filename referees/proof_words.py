"""
The screen of the proof referees: words and commands that a task forbids, each named in its instruction.

Comments, which nest, and strings do not count. For Rocq a phrase with a capital letter is a command and counts where a
sentence starts, after attributes and prefixes (`Local`, `Time`, `Fail`), or is an option and counts after `Set` and
`Unset`; any other counts wherever it stands. What declares a variable of a section (`Variable`, `Hypothesis`,
`Context`) counts outside of sections only. The screen is there for the reader's sake and for the seat's: no proof is
accepted because it found nothing.

A file of Rocq may add signs to its own language. After `Notation "x =( y"`, the text `=(*` opens no comment: a file
with such signs is read once with the comments that it seems to have, and once without those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["LEAN", "ROCQ", "Syntax", "screened"]

_PREFIXES = frozenset(
    {"Local", "Global", "Export", "Polymorphic", "Monomorphic", "Program", "Cumulative", "Private", "Time", "Fail"}
    | {"Succeed", "Instructions", "Timeout"}
)
_OF_SECTIONS = frozenset({"Variable", "Variables", "Hypothesis", "Hypotheses", "Context"})
_BULLETS = frozenset("{}-+*")
_SELECTORS = frozenset({",", "-", "all", "par", "!"})
_MOST_READINGS = 8
_MOST_SIGNS = 64
"""Of a file's own signs; one with more is refused unread, since each costs time at each comment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Syntax:
    """What the screen must know of a language. `commands`: whether phrases in capitals are commands of sentences."""

    opens: str
    closes: str
    line: str | None
    string: re.Pattern[str]
    strings_in_comments: bool
    commands: bool


ROCQ = Syntax(
    opens="(*",
    closes="*)",
    line=None,
    string=re.compile(r'"(?:[^"]|"")*"?'),
    strings_in_comments=True,
    commands=True,
)
LEAN = Syntax(
    opens="/-",
    closes="-/",
    line="--",
    string=re.compile(r"r(#*)\".*?(?:\"\1|\Z)|\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\\n]|\\[^\n]{1,8}?)'", re.DOTALL),
    strings_in_comments=False,
    commands=False,
)

_WORD = re.compile(r"[^\W\d][\w'\u00a0]*|\d+|\S")
"""A blank that does not break is a letter of a name to Rocq, and an error to Lean."""


@dataclass(frozen=True, slots=True)
class _Token:
    """A word, a number or a single sign; `glued` when nothing stands between it and the token before it."""

    text: str
    line: int
    glued: bool
    string: str = ""


def screened(text: str, forbidden: Sequence[str], syntax: Syntax) -> str | None:
    """The first forbidden phrase of a file's text and its line, as a sentence's beginning; None where there is none."""
    phrases = _by_first_word(forbidden)
    signs: frozenset[str] = frozenset()
    for _ in range(_MOST_READINGS):
        tokens = list(_tokens(text, syntax, signs))
        if (found := _refused(tokens, phrases, syntax)) is not None:
            return found
        more = signs | _own_signs(tokens) if syntax.commands else signs
        if more == signs:
            return None
        if len(more) > _MOST_SIGNS:
            break
        signs = more
    return "notations with signs like '=(' take the meaning of '(*' from the file, which the screen can't follow"


def _refused(
    tokens: Sequence[_Token], phrases: Mapping[str, Sequence[tuple[str, list[str]]]], syntax: Syntax
) -> str | None:
    starts = dict(_starts(tokens)) if syntax.commands else {}
    for at, token in enumerate(tokens):
        for phrase, words in phrases.get(token.text, ()):
            if [found.text for found in tokens[at : at + len(words)]] != words:
                continue
            command = syntax.commands and phrase[0].isupper()
            if not command or (at in starts and not (starts[at] and phrase in _OF_SECTIONS)):
                return f"line {token.line} has {phrase!r}, which the instruction forbids"
    return None


def _own_signs(tokens: Sequence[_Token]) -> frozenset[str]:
    """Signs in strings that a notation may declare and of which the opening of a comment may be a part."""
    parts = (part.strip("'") for token in tokens if token.string for part in token.string.split())
    return frozenset(part for part in parts if "(" in part[1:])


def _by_first_word(phrases: Sequence[str]) -> dict[str, list[tuple[str, list[str]]]]:
    found: dict[str, list[tuple[str, list[str]]]] = {}
    for phrase in phrases:
        if words := _WORD.findall(phrase):
            found.setdefault(words[0], []).append((phrase, words))
    return found


def _tokens(text: str, syntax: Syntax, signs: frozenset[str] = frozenset()) -> Iterator[_Token]:
    at, end, line, counted = 0, -1, 1, 0
    while at < len(text):
        if text.startswith(syntax.opens, at) and not _in_a_sign(text, at, signs):
            at = _comment_end(text, at, syntax)
        elif syntax.line is not None and text.startswith(syntax.line, at):
            stop = text.find("\n", at)
            at = len(text) if stop < 0 else stop
        elif text[at].isspace():
            at += 1
        else:
            line, counted = line + text.count("\n", counted, at), at
            string = syntax.string.match(text, at)
            found = string or _WORD.match(text, at)
            assert found is not None  # any sign that is no space is a word by itself
            yield _Token('"' if string else found[0], line, at == end, found[0].strip('"') if string else "")
            at = end = found.end()


def _in_a_sign(text: str, at: int, signs: frozenset[str]) -> bool:
    """Whether the bracket at `at` may belong to one of the file's own signs, which began before it."""
    return any(
        sign[place] == "(" and text.startswith(sign, at - place)
        for sign in signs
        for place in range(1, min(len(sign), at + 1))
    )


def _comment_end(text: str, at: int, syntax: Syntax) -> int:
    """Where the comment that opens at `at` is over; comments nest, and one that is not closed goes to the end."""
    depth = 0
    while at < len(text):
        if text.startswith(syntax.opens, at):
            depth, at = depth + 1, at + len(syntax.opens)
        elif text.startswith(syntax.closes, at):
            depth, at = depth - 1, at + len(syntax.closes)
            if depth == 0:
                return at
        elif syntax.strings_in_comments and text[at] == '"':
            found = syntax.string.match(text, at)
            at = found.end() if found else at + 1
        else:
            at += 1
    return at


def _starts(tokens: Sequence[_Token]) -> Iterator[tuple[int, bool]]:
    """The places where a sentence's command stands, and whether a section is open there."""
    scopes: list[str] = []
    at = 0
    while at < len(tokens):
        at = _past_prefixes(tokens, at)
        if at >= len(tokens):
            return
        yield at, "Section" in scopes
        if tokens[at].text in {"Set", "Unset"}:
            yield at + 1, "Section" in scopes
        end = _sentence_end(tokens, at)
        words = [token.text for token in tokens[at:end]]
        if words[0] == "Section" or (words[0] == "Module" and ":=" not in _joined(tokens[at:end])):
            scopes.append(words[0])
        elif words[0] == "End" and scopes:
            scopes.pop()
        at = end + 1


def _joined(tokens: Sequence[_Token]) -> list[str]:
    """Each pair of signs that stand together."""
    return [first.text + second.text for first, second in pairwise(tokens) if second.glued]


def _past_prefixes(tokens: Sequence[_Token], at: int) -> int:
    """Past bullets, attributes (`#[...]`), goals in focus (`1: {`) and words that stand before a command."""
    while at < len(tokens):
        text = tokens[at].text
        if text == "#" and at + 1 < len(tokens) and tokens[at + 1].text == "[":
            at = next((n + 1 for n in range(at, len(tokens)) if tokens[n].text == "]"), len(tokens))
        elif text in _BULLETS or text in _PREFIXES or (text.isdigit() and at and tokens[at - 1].text == "Timeout"):
            at += 1
        elif (inside := _focused(tokens, at)) is not None:
            at = inside
        else:
            return at
    return at


def _focused(tokens: Sequence[_Token], at: int) -> int | None:
    """The place behind `2: {` or `[name]: {`, which have no dot; None where no such thing stands."""
    n = at + 3 if tokens[at].text == "[" else at
    while n < len(tokens) and (tokens[n].text.isdigit() or tokens[n].text in _SELECTORS):
        n += 1
    return n + 2 if n > at and [token.text for token in tokens[n : n + 2]] == [":", "{"] else None


def _sentence_end(tokens: Sequence[_Token], at: int) -> int:
    """
    The dot that ends the sentence at `at`: one, or the last of three, with nothing glued behind it; two are part of a
    notation. Else one past the last token.
    """
    dots = 0
    for n in range(at, len(tokens)):
        dots = (dots + 1 if tokens[n].glued else 1) if tokens[n].text == "." else 0
        if dots in {1, 3} and (n + 1 == len(tokens) or not tokens[n + 1].glued):
            return n
    return len(tokens)
