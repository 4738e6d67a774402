"""
Packets that show facts of the public tests, or keep the shape of one that does.

`TC` shows the facts that its own incumbent violates. The others mirror an arm's rounds: in each round they copy the
fact block and the code that the arm had then, byte for byte, and change what their name says. A state in which nothing
failed renders B's packet in all of them; one without a fact that can be shown has no bullet in any of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from arms.packets import BASE, FAILURE, PREVIOUS, Packet
from arms.padding import PADDING, padding
from harness.mirror import FACT_LINE, mirror_state
from harness.quoting import fenced
from harness.views import MirrorState, RoundView

__all__ = ["GENERIC", "PacketCFSF", "PacketGRShape", "PacketPFacts", "PacketPad", "PacketTC"]

_REQUIREMENTS: Mapping[str, str] = {"requirements": "The solution has to meet these requirements:"}
_FACTS: Mapping[str, str] = {**_REQUIREMENTS, "fact": FACT_LINE}

GENERIC = (
    "- whatever comes back must have the documented return type",
    "- every argument that the description admits must be handled",
    "- equal arguments must always lead to equal outcomes",
    "- where the description fixes what comes before what, keep to it exactly",
    "- edge cases must be treated with as much care as ordinary ones",
    "- behaviour that the description states must hold to the letter",
)
"""What takes the place of facts, in this order: true of any task, and free of every word of one."""


class PacketTC(Packet):
    """The task and the facts that the arm's own incumbent violates; no code, and no instruction about it."""

    keeps = frozenset({"facts"})

    def __init__(self) -> None:
        super().__init__("TC", {**BASE, **_FACTS})

    def between(self, view: RoundView) -> list[str]:
        """The facts of the previous solution."""
        return _bullets(self, mirror_state(self.name, view.round, view.previous).block)


class PacketCFSF(Packet):
    """TC's facts, the code that they were taken on, and the instruction to repair it."""

    mirrors = "TC"
    keeps = frozenset({"facts", "code"})

    def __init__(self, name: str = "CF-SF") -> None:
        super().__init__(name, {**BASE, **PREVIOUS, **_FACTS, **FAILURE})

    def between(self, view: RoundView) -> list[str]:
        """Code, facts and instruction, where something failed."""
        state = _failing(view)
        if state is None:
            return []
        return [*self.quoted(state.code), *_bullets(self, state.block), self.words["failure"]]


class PacketPFacts(PacketCFSF):
    """CF-SF's packet on P's rounds: the facts of P's own code, beside that code."""

    mirrors = "P"

    def __init__(self) -> None:
        super().__init__("P-FACTS")


class PacketGRShape(Packet):
    """CF-SF's packet with as many generic requirements as there are facts: the shape of facts, and none of them."""

    mirrors = "TC"
    keeps = frozenset({"code", "count"})

    def __init__(self) -> None:
        generic = {f"generic {number}": line for number, line in enumerate(GENERIC, start=1)}
        super().__init__("GR-SHAPE", {**BASE, **PREVIOUS, **_REQUIREMENTS, **generic, **FAILURE})

    def between(self, view: RoundView) -> list[str]:
        """Code, generic requirements and instruction, where something failed."""
        state = _failing(view)
        if state is None:
            return []
        lines = "\n".join(GENERIC[: state.bullets])
        return [*self.quoted(state.code), *_bullets(self, lines), self.words["failure"]]


class PacketPad(Packet):
    """CF-SF's packet with code of no concern to the task, as long as the code whose place it takes."""

    mirrors = "TC"
    keeps = frozenset({"facts", "length"})

    def __init__(self) -> None:
        beside = {"beside": "This Python code has to do with other work:", **PADDING}
        super().__init__("PAD", {**BASE, **beside, **_FACTS, **FAILURE})

    def between(self, view: RoundView) -> list[str]:
        """Padding, facts and instruction, where something failed."""
        state = _failing(view)
        if state is None:
            return []
        code = fenced(padding(len(state.code.rstrip())), self.words["language"])
        return [self.words["beside"], code, *_bullets(self, state.block), self.words["failure"]]


def _failing(view: RoundView) -> MirrorState | None:
    """The copied state, where its code failed."""
    return view.mirrored if view.mirrored is not None and view.mirrored.failed else None


def _bullets(packet: Packet, lines: str) -> list[str]:
    """The requirements under their heading, or nothing without any."""
    return [f"{packet.words['requirements']}\n{lines}"] if lines else []
