"""
Lines of a given shape that say nothing of any task: what a shape placebo has in the place of a controller's lines.

A line is put together from clauses until it is of the length class of the line whose place it takes. Clauses that hold
a word of the task are left out, so that none of it can get in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from harness.mirror import length_class
from harness.mirror_audit import stands_in

__all__ = ["CLAUSES", "generic_lines"]

_HEADS = (
    "whatever comes back must have the documented kind",
    "everything that may be passed in must be handled",
    "the same must always lead to the same",
    "where one thing comes before another, keep to it",
    "rare situations deserve as much care as common ones",
    "behaviour that was promised must hold to the letter",
    "nothing beyond what was asked for is needed",
    "each branch should be reachable and meaningful",
    "names ought to say plainly what they stand for",
    "unclear wording is best read in its simplest sense",
    "every path has to end properly",
    "what is assumed should be assumed knowingly",
)
_TAILS = (
    "in every situation",
    "without exceptions of any kind",
    "from beginning to end",
    "however unusual it may seem",
    "even if nobody looks",
    "carefully and completely",
    "as was described above",
    "whoever may use it later",
    "no more and no less",
    "today as well as tomorrow",
)
_BULLET, _COMMA = "- ", ", "
CLAUSES: Mapping[str, str] = {
    **{f"generic head {number}": words for number, words in enumerate(_HEADS, start=1)},
    **{f"generic tail {number}": words for number, words in enumerate(_TAILS, start=1)},
}
"""All clauses by name, as an arm pins them. A head alone is of the least length class; a tail is much shorter."""


def generic_lines(shaped: Sequence[str], forbidden: Collection[str]) -> list[str]:
    """As many lines as `shaped` has, each of the length class of its own, without a word that is `forbidden`."""
    heads = _free(_HEADS, forbidden)
    tails = _free(_TAILS, forbidden)
    return [_line(_turned(heads, at)[0], _turned(tails, at), length_class(line)) for at, line in enumerate(shaped)]


def _free(clauses: Sequence[str], forbidden: Collection[str]) -> list[str]:
    """The clauses without a forbidden word; all of them where each has one, and an audit has to stop the packet."""
    return [words for words in clauses if not any(stands_in(token, words) for token in forbidden)] or list(clauses)


def _turned(clauses: Sequence[str], by: int) -> list[str]:
    start = by % len(clauses)
    return [*clauses[start:], *islice(clauses, start)]


def _line(head: str, tails: Sequence[str], wanted: int) -> str:
    line, at = _BULLET + head, 0
    while length_class(line) < wanted:
        line += _COMMA + tails[at % len(tails)]
        at += 1
    return line
