"""
Arms that render a packet for each round of a `oneshot` seat, from frozen templates.

The parts of a packet stand in one order: opening, task, previous solution, requirements, failure instruction, answer
format. `B` shows the task alone; `BI` adds the failure instruction; `P` adds the previous solution and what became of
it. None of them shows a fact of the public tests: those that do are in `arms/packets_facts.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from arms.text import with_extras
from harness.canonical import canonical_bytes
from harness.quoting import fenced
from harness.views import RoundView

__all__ = ["BASE", "FAILURE", "PREVIOUS", "RENDERER", "Packet", "PacketB", "PacketBI", "PacketP", "fenced"]

RENDERER = 1
"""Raised with every change of how templates become a prompt, so that the change shows in the digest of each packet."""

BASE: Mapping[str, str] = {
    "opening": "Write a Python solution to the task below.",
    "answer": "Answer with the whole solution, imports included, in one Python code block.",
    "separator": "\n\n",
    "language": "python",
}
"""What every packet has."""

PREVIOUS: Mapping[str, str] = {
    "previous": "This earlier solution to the task was run on the task's public tests and failed them:",
}
"""What stands above code that failed."""

FAILURE: Mapping[str, str] = {
    "failure": "Work out what the earlier solution gets wrong, then write a solution that puts it right.",
}
"""What is asked where an earlier solution failed."""


class Packet:
    """A packet arm: what is pinned is every string that can get into a prompt, and the renderer's version."""

    seats = frozenset({"oneshot"})

    def __init__(self, name: str, templates: Mapping[str, str]) -> None:
        self.name = name
        self.words = dict(templates)

    @property
    def content(self) -> bytes:
        """Canonical JSON of the packet's name, its renderer's version and all of its templates."""
        return canonical_bytes({"packet": self.name, "renderer": RENDERER, "templates": self.words})

    def render(self, view: RoundView) -> str:
        """The round's prompt: the parts that this packet has, in the one order."""
        parts = [self.words["opening"], with_extras(view), *self.between(view), self.words["answer"]]
        return self.words["separator"].join(parts)

    def between(self, view: RoundView) -> list[str]:
        """The parts between the task and the answer format."""
        del view
        return []

    def quoted(self, code: str) -> list[str]:
        """The previous solution, said to have failed, in its fence."""
        return [self.words["previous"], fenced(code, self.words["language"])]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(renderer={RENDERER})"


class PacketB(Packet):
    """The task only. Every round has the same prompt; only the seed differs."""

    def __init__(self) -> None:
        super().__init__("B", BASE)


class PacketBI(Packet):
    """The task and, where P would show a failed solution, P's instruction to repair it without the solution itself."""

    def __init__(self) -> None:
        super().__init__("BI", {**BASE, **FAILURE})

    def between(self, view: RoundView) -> list[str]:
        """The failure instruction, once something failed."""
        return [] if _failed(view) is None else [self.words["failure"]]


class PacketP(Packet):
    """
    The task and, once there is a previous solution, that solution and the instruction to repair it. Where there is
    nothing that failed it is B's, byte by byte: no reply had any code, or the previous solution was accepted.
    """

    def __init__(self) -> None:
        super().__init__("P", {**BASE, **PREVIOUS, **FAILURE})

    def between(self, view: RoundView) -> list[str]:
        """The previous solution and what to do about it, where one failed."""
        code = _failed(view)
        return [] if code is None else [*self.quoted(code), self.words["failure"]]


def _failed(view: RoundView) -> str | None:
    """The code of the previous solution, if there is one and the public tests did not accept it."""
    previous = view.previous
    if previous is None or previous.reading.accepted or not previous.code.strip():
        return None
    return previous.code
