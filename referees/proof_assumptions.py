"""
What each theorem rests on, as `Print Assumptions` tells it between lines that carry the judge's nonce.

The question is put to a `coqc` that has loaded the seat's compiled file, so its answer is never all there is: by then
the kernel's checker has shown that the context holds no axiom but the library's own, and which of those are used is
asked, and what else the checker does not tell. A name is printed as short as it can be; it stands for every axiom of
the context that ends in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

__all__ = ["AnswerError", "read_assumptions"]

_CLOSED = "Closed under the global context"
_AXIOMS = "Axioms:"
_BEYOND = re.compile(r"\S+ (relies on|is assumed) .*\.")


class AnswerError(ValueError):
    """An answer that is none, or is not whole."""


def read_assumptions(text: str, goals: Sequence[str], nonce: str, context: Sequence[str]) -> frozenset[str]:
    """
    The axioms of `context` that any of the goals may use, and what they rely on that is outside of the theory.

    Raises `AnswerError` for what answers nothing.
    """
    answers = dict(_answers(text, nonce))
    if list(answers) != [*goals, "end"]:
        raise AnswerError(f"it has answers for {', '.join(answers)[:300] or 'nothing'}")
    used: set[str] = set()
    for goal in goals:
        used |= _used(answers[goal], context)
    return frozenset(used)


def _answers(text: str, nonce: str) -> Iterator[tuple[str, list[str]]]:
    """The lines after each line of the judge's own."""
    goal, lines = "", list[str]()
    for line in text.split("\n"):
        if line.startswith(f"{nonce} "):
            if goal:
                yield goal, lines
            goal, lines = line.removeprefix(f"{nonce} "), []
        elif line.strip():
            lines.append(line)
    if goal:
        yield goal, lines


def _used(lines: Sequence[str], context: Sequence[str]) -> set[str]:
    if list(lines) == [_CLOSED]:
        return set()
    if lines[:1] != [_AXIOMS]:
        raise AnswerError(f"it says {' '.join(lines)[:300]!r}")
    used: set[str] = set()
    for line in lines[1:]:
        if line[0].isspace():
            continue  # the rest of a type
        if _BEYOND.fullmatch(line):
            used.add(line)
            continue
        name = line.split()[0]
        found = {axiom for axiom in context if axiom == name or axiom.endswith(f".{name}")}
        if not found:
            raise AnswerError(f"{name[:200]!r} is none of the axioms that the checker knows")
        used |= found
    return used
