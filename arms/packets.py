"""
Arms that render a packet for each round of a `oneshot` seat, from frozen templates.

The parts of a packet stand in one order: opening, task, previous solution, failure instruction, answer format. `B`
shows the task alone; `P` adds, from the second round on, the previous solution and what became of it. Neither shows
a fact of the public tests: a packet that did would be another arm.
"""

from __future__ import annotations

from collections.abc import Mapping

from arms.text import with_extras
from harness.canonical import canonical_bytes
from harness.quoting import fenced
from harness.views import RoundView

__all__ = ["RENDERER", "PacketB", "PacketP", "fenced"]

RENDERER = 1
"""Raised with every change of how templates become a prompt, so that the change shows in the digest of each packet."""

_BASE: Mapping[str, str] = {
    "opening": "Write a Python solution to the task below.",
    "answer": "Answer with the whole solution, imports included, in one Python code block.",
    "separator": "\n\n",
    "language": "python",
}
_FAILURE: Mapping[str, str] = {
    "previous": "This earlier solution to the task was run on the task's public tests and failed them:",
    "failure": "Work out what the earlier solution gets wrong, then write a solution that puts it right.",
}


class _Packet:
    """A packet arm: what is pinned is every string that can get into a prompt, and the renderer's version."""

    seats = frozenset({"oneshot"})

    def __init__(self, name: str, templates: Mapping[str, str]) -> None:
        self.name = name
        self._templates = dict(templates)

    @property
    def content(self) -> bytes:
        """Canonical JSON of the packet's name, its renderer's version and all of its templates."""
        return canonical_bytes({"packet": self.name, "renderer": RENDERER, "templates": self._templates})

    def render(self, view: RoundView) -> str:
        """The round's prompt: the parts that this packet has, in the one order."""
        words = self._templates
        parts = [words["opening"], with_extras(view), *self._history(view), words["answer"]]
        return words["separator"].join(parts)

    def _history(self, view: RoundView) -> list[str]:
        """The previous solution and what to do about it, where the packet has words for it and one failed."""
        words, previous = self._templates, view.previous
        if "previous" not in words or view.round == 1 or previous is None:
            return []
        if previous.reading.accepted or not previous.code.strip():
            return []
        return [words["previous"], fenced(previous.code, words["language"]), words["failure"]]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(renderer={RENDERER})"


class PacketB(_Packet):
    """The task only. Every round has the same prompt; only the seed differs."""

    def __init__(self) -> None:
        super().__init__("B", _BASE)


class PacketP(_Packet):
    """
    The task and, once there is a previous solution, that solution and the instruction to repair it. The first round
    is B's, byte by byte; so is a later one where there is nothing that failed: no reply had any code, or the previous
    solution was accepted.
    """

    def __init__(self) -> None:
        super().__init__("P", {**_BASE, **_FAILURE})
