"""
Mirrored arms: what one arm had before a round, as another arm copies it, and the fact block that both show.

A fact block is one line a fact, in the order of the public tests. A fact is shown whole or not at all: one that is too
long, or that would not stay on its line, is dropped and counted. An arm with a controller publishes the controller's
block in its place, by the same rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from harness.canonical import digest_bytes
from harness.ports import Arm
from harness.views import Fact, MirrorState, Previous, RoundView

__all__ = [
    "FACT_CHARS",
    "FACT_LINE",
    "LINE_CHARS",
    "MOST_FACTS",
    "FactBlock",
    "arm_state",
    "fact_block",
    "length_class",
    "line_block",
    "mirror_state",
]

FACT_LINE = "- {call} must equal {expected}"
"""How a fact is worded: the literal call and the literal expected value."""

MOST_FACTS = 6
"""The most facts that a block holds."""

FACT_CHARS = 600
"""How long a fact may be, call and value together."""

LINE_CHARS = 1280
"""How long a controller's line may be: call, expected value, what came instead, and the words around them."""

_LEAST_CLASS = 80


@dataclass(frozen=True, kw_only=True, slots=True)
class FactBlock:
    """The lines, joined by newlines and empty without a fact; how many they are, and how many facts were dropped."""

    text: str
    bullets: int
    dropped: int


def fact_block(facts: Iterable[Fact]) -> FactBlock:
    """The block of the first six facts that can be shown whole."""
    given = list(facts)
    shown = [fact for fact in given if _fits(fact)]
    lines = [FACT_LINE.format(call=fact.call, expected=fact.expected) for fact in shown[:MOST_FACTS]]
    return FactBlock(text="\n".join(lines), bullets=len(lines), dropped=len(given) - len(shown))


def _fits(fact: Fact) -> bool:
    whole = fact.call + fact.expected
    return len(whole) <= FACT_CHARS and whole.isprintable()


def mirror_state(source: str, number: int, previous: Previous | None) -> MirrorState:
    """The state of arm `source` before round `number`, whose incumbent is `previous`."""
    code = "" if previous is None else previous.code
    failed = previous is not None and not previous.reading.accepted and bool(code.strip())
    block = fact_block(previous.reading.facts if failed and previous is not None else ())
    return MirrorState(
        source=source,
        round=number,
        block=block.text,
        block_sha256=digest_bytes(block.text.encode()),
        bullets=block.bullets,
        dropped=block.dropped,
        code=code,
        code_sha256=digest_bytes(code.encode()),
        failed=failed,
    )


def line_block(lines: Iterable[str]) -> FactBlock:
    """The block of the first six of a controller's lines that are bullets and can be shown whole."""
    given = list(lines)
    shown = [line for line in given if line.startswith("- ") and len(line) <= LINE_CHARS and line.isprintable()]
    text = "\n".join(shown[:MOST_FACTS])
    return FactBlock(text=text, bullets=len(shown[:MOST_FACTS]), dropped=len(given) - len(shown))


def length_class(line: str) -> int:
    """How long a line is, coarsely: the least of 80, 160, 320, ... characters that it is not longer than."""
    most = _LEAST_CLASS
    while len(line) > most:
        most *= 2
    return most


def arm_state(arm: Arm, view: RoundView) -> MirrorState:
    """
    The state of `arm` before the round of `view`, as it is published: with the lines of its controller, if it has one
    (a method `lines(view)`, None where it does not fire), else with the facts.
    """
    state = mirror_state(arm.name, view.round, view.previous)
    lines = getattr(arm, "lines", None)
    if lines is None:
        return state
    block = line_block((lines(view) or ()) if state.failed else ())
    return replace(
        state,
        block=block.text,
        block_sha256=digest_bytes(block.text.encode()),
        bullets=block.bullets,
        dropped=block.dropped,
    )
