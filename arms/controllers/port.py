"""
The one port of controllers: what each is given, and what it answers.

A controller is given the incumbent's code and what the public tests said of it, and of the rounds before; by type it
can have nothing else. It answers with the lines of a block, or None where it does not fire.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from harness.views import Fact, PastRound, Previous, RoundView

__all__ = ["Controller", "Seen", "form_of", "own_words", "seen", "seen_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """
    A failed incumbent: its code, the violated public assertions that can be told, how many of all passed, what kept it
    from being run at all, and the cell's own rounds that are over. Code and what it did instead are hostile text.
    """

    code: str
    facts: tuple[Fact, ...]
    passed: int
    total: int
    unbuilt: str | None = None
    past: tuple[PastRound, ...] = ()


class Controller(Protocol):
    """
    Chooses what a packet says of a failed incumbent. `lines` is a pure function of what is seen: bullets (`- ...`) of
    one printable line each, at most six, or None where it does not fire. It never raises for what a candidate did.

    `templates` are all words that it may use by name, `settings` what it was made with: both are pinned with its arm.
    `claims` are those words that say something of a task by themselves, so that a decoy must not repeat them.
    `lacks` says what it can't be used without and was not given, None when it can be used.
    """

    name: str
    templates: Mapping[str, str]
    settings: Mapping[str, Any]
    claims: frozenset[str]
    lacks: str | None

    def lines(self, given: Seen) -> Sequence[str] | None:
        """The lines of the block, or None."""
        ...


def seen(previous: Previous | None, past: tuple[PastRound, ...] = ()) -> Seen | None:
    """What a controller may see of an incumbent; None where there is none, it has no code, or it was accepted."""
    if previous is None or previous.reading.accepted or not previous.code.strip():
        return None
    reading = previous.reading
    return Seen(
        code=previous.code,
        facts=reading.facts,
        passed=reading.passed,
        total=reading.total,
        unbuilt=reading.unbuilt,
        past=past,
    )


def seen_of(view: RoundView) -> Seen | None:
    """What a controller may see of a round."""
    return seen(view.previous, view.past)


def own_words(controllers: Iterable[Controller]) -> frozenset[str]:
    """The words of the controllers' templates, which stand in their blocks whatever the task is."""
    templates = [text for controller in controllers for text in controller.templates.values()]
    return frozenset(re.findall(r"[^\W\d]\w*", " ".join(templates)))


def form_of(line: str, controllers: Iterable[Controller]) -> str:
    """
    The template that a line was made of, the wordiest that fits; empty where none does. What a candidate wrote may
    look like another template's words: a form is told for shape, and nothing rests on it.
    """
    templates = sorted(
        {text for one in controllers for text in one.templates.values() if text.startswith("- ")},
        key=lambda text: (-len(text), text),
    )
    return next((text for text in templates if _pattern(text).fullmatch(line)), "")


@cache
def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in re.split(r"\{\w+\}", template)))
