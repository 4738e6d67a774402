"""
The screen of the proof referees: words and commands that a task forbids, each named in its instruction.

Comments, which nest, and strings do not count. For Rocq a phrase with a capital letter is a command and counts where a
sentence starts, after attributes and prefixes (`Local`, `Time`, `Fail`); any other counts wherever it stands. What
declares a variable of a section (`Variable`, `Hypothesis`, `Context`) counts outside of sections only. The screen is
there for the reader's sake and for the seat's: no proof is accepted because it found nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["LEAN", "ROCQ", "Syntax", "screened"]

_PREFIXES = frozenset(
    {"Local", "Global", "Export", "Polymorphic", "Monomorphic", "Program", "Cumulative", "Private", "Time", "Fail"}
    | {"Succeed", "Instructions", "Timeout"}
)
_OF_SECTIONS = frozenset({"Variable", "Variables", "Hypothesis", "Hypotheses", "Context"})
_BULLETS = frozenset("{}-+*")


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

_WORD = re.compile(r"[^\W\d][\w']*|\d+|\S")


@dataclass(frozen=True, slots=True)
class _Token:
    """A word, a number or a single sign; `glued` when nothing stands between it and the token before it."""

    text: str
    line: int
    glued: bool


def screened(text: str, forbidden: Sequence[str], syntax: Syntax) -> str | None:
    """The first forbidden phrase of a file's text and its line, as a sentence's beginning; None where there is none."""
    phrases = _by_first_word(forbidden)
    tokens = list(_tokens(text, syntax))
    starts = dict(_starts(tokens)) if syntax.commands else {}
    for at, token in enumerate(tokens):
        for phrase, words in phrases.get(token.text, ()):
            if [found.text for found in tokens[at : at + len(words)]] != words:
                continue
            command = syntax.commands and phrase[0].isupper()
            if not command or (at in starts and not (starts[at] and phrase in _OF_SECTIONS)):
                return f"line {token.line} has {phrase!r}, which the instruction forbids"
    return None


def _by_first_word(phrases: Sequence[str]) -> dict[str, list[tuple[str, list[str]]]]:
    found: dict[str, list[tuple[str, list[str]]]] = {}
    for phrase in phrases:
        if words := _WORD.findall(phrase):
            found.setdefault(words[0], []).append((phrase, words))
    return found


def _tokens(text: str, syntax: Syntax) -> Iterator[_Token]:
    at, end, line, counted = 0, -1, 1, 0
    while at < len(text):
        if text.startswith(syntax.opens, at):
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
            yield _Token('"' if string else found[0], line, at == end)
            at = end = found.end()


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
    """Past bullets, attributes (`#[...]`) and words that stand before a command."""
    while at < len(tokens):
        text = tokens[at].text
        if text == "#" and at + 1 < len(tokens) and tokens[at + 1].text == "[":
            at = next((n + 1 for n in range(at, len(tokens)) if tokens[n].text == "]"), len(tokens))
        elif text in _BULLETS or text in _PREFIXES or (text.isdigit() and at and tokens[at - 1].text == "Timeout"):
            at += 1
        else:
            return at
    return at


def _sentence_end(tokens: Sequence[_Token], at: int) -> int:
    """The dot that ends the sentence at `at`: one with nothing glued behind it. Else one past the last token."""
    for n in range(at, len(tokens)):
        if tokens[n].text == "." and (n + 1 == len(tokens) or not tokens[n + 1].glued):
            return n
    return len(tokens)
