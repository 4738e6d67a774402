"""
A first draft of a placebo: the treatment's shape, word for word, and none of its sense.

Every word is replaced by another of its length, a verb by a verb, so that lengths, imperatives and the order of
sections are the treatment's own. It is there to be written anew: what a subject is to read should be sentences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from harness.text_shape import LEADS, VERBS

__all__ = ["draft_placebo"]

_PLAIN = (
    "a i of in at by on up sea oak fog hay elm fir lamp roof moss pond lake fern river cloud stone grass cedar heron"
    " meadow garden winter valley harbor pebble orchard morning village country gallery bicycle mountain daylight"
    " rainfall hillside elephant seashore waterfall afternoon mushrooms coastline lighthouse riverbanks snowflakes"
    " blackbirds"
)
_CALM = "go say see put let name mark hold walk look watch count group stand repeat notice observe mention remember"
_WORD = re.compile(r"\w+(?:['\u2019-]\w+)*")
_FENCE = re.compile(r" {0,3}(?:`{3,}|~{3,})")
_LIST_NUMBER = re.compile(r"\s*\d{1,9}[.)](?=\s)")


def _by_length(words: list[str]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for word in words:
        found.setdefault(len(word), []).append(word)
    return found


_NOUNS = _by_length([word for word in _PLAIN.split() if word not in VERBS | LEADS])
_VERBS = _by_length([word for word in _CALM.split() if word in VERBS])
_OTHER_VERBS = _by_length(sorted(VERBS - LEADS))


def draft_placebo(treatment: str) -> str:
    """`treatment` with its marks, line ends and spaces as they are, and every word replaced."""
    used: Counter[int] = Counter()
    return "".join(_line(line, used) for line in treatment.splitlines(keepends=True))


def _line(line: str, used: Counter[int]) -> str:
    """A line of the draft. A code block's fence, and the number of a list's item, are marks and not words."""
    mark = _FENCE.match(line) or _LIST_NUMBER.match(line)
    start = mark.end() if mark else 0
    return line[:start] + "".join(_pieces(line[start:], used))


def _pieces(text: str, used: Counter[int]) -> Iterator[str]:
    at = 0
    for match in _WORD.finditer(text):
        yield text[at : match.start()]
        yield _instead_of(match.group(), used)
        at = match.end()
    yield text[at:]


def _instead_of(word: str, used: Counter[int]) -> str:
    """Another word of the same length and kind; a word that only leads a verb stays."""
    small = word.casefold()
    if small in LEADS:
        return word
    size = len(word)
    used[size] += 1
    if small in VERBS:
        choices = [verb for verb in _VERBS.get(size, []) if verb != small] or [
            verb for verb in _OTHER_VERBS.get(size, []) if verb != small
        ]
        found = choices[used[size] % len(choices)] if choices else small
    else:
        found = _noun(size, used[size], small)
    return found.capitalize() if word[:1].isupper() else found


def _noun(size: int, turn: int, not_this: str) -> str:
    """A word of `size` letters, or as many words run together."""
    longest = max(_NOUNS)
    if size > longest:
        return _noun(longest, turn, "") + _noun(size - longest, turn, "")
    choices = [word for word in _NOUNS[size] if word != not_this]
    return choices[turn % len(choices)]
