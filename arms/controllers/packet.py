"""
The packets of controllers: the treatment, its shape placebo and its decoy.

A treatment shows what `P` shows, and under one heading the lines of its controller; where that does not fire it is P's
packet, byte by byte. The other two mirror it: in each round they have the code that it had then, and in the place of
its lines as many of the same lengths, which say nothing of any task, or something of another task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from arms.controllers.foreign import FOREIGN, foreign
from arms.controllers.generic import CLAUSES, generic_lines
from arms.controllers.port import Controller, form_of, own_words, seen_of
from arms.packets import BASE, FAILURE, PREVIOUS, RENDERER, Packet
from harness.canonical import canonical_bytes, digest_bytes, digest_json
from harness.errors import PluginError
from harness.mirror import arm_state, length_class, line_block
from harness.mirror_audit import forbidden_names, forbidden_tokens, stands_in
from harness.seeds import hash_order
from harness.views import MirrorState, RoundView

__all__ = ["ControlledPacket", "DecoyPacket", "ShapePacket"]

_HEADING: Mapping[str, str] = {"notes": "Take note of this:"}


class _Controlled(Packet):
    """A packet that has to do with a controller: what is pinned names it, its settings and all of its words."""

    def __init__(self, name: str, controller: Controller, more: Mapping[str, str], settings: Mapping[str, Any]) -> None:
        super().__init__(name, {**BASE, **PREVIOUS, **_HEADING, **more, **FAILURE})
        self.controller = controller
        self.lacks = controller.lacks
        self._settings = {"controller": controller.name, **controller.settings, **settings}

    @property
    def content(self) -> bytes:
        """Canonical JSON of the packet's name, its renderer's version, all of its templates, and its settings."""
        return canonical_bytes(
            {"packet": self.name, "renderer": RENDERER, "templates": self.words, "settings": self._settings}
        )

    def shown(self, state: MirrorState | None, block: str) -> list[str]:
        """Code, the block under its heading, and instruction, where something failed."""
        if state is None or not state.failed:
            return []
        notes = [f"{self.words['notes']}\n{block}"] if block else []
        return [*self.quoted(state.code), *notes, self.words["failure"]]


class ControlledPacket(_Controlled):
    """The treatment: the lines of a controller."""

    keeps = frozenset({"facts", "code"})

    def __init__(self, name: str, controller: Controller) -> None:
        super().__init__(name, controller, controller.templates, {})

    def lines(self, view: RoundView) -> list[str] | None:
        """The controller's lines for a round; None where it does not fire."""
        given = seen_of(view)
        found = None if given is None else self.controller.lines(given)
        return None if found is None else list(found)

    def fires(self, view: RoundView) -> bool:
        """Whether a round's packet has any line of the controller's."""
        return bool(arm_state(self, view).bullets)

    def between(self, view: RoundView) -> list[str]:
        """The parts between the task and the answer format."""
        state = arm_state(self, view)
        return self.shown(state, state.block)


class ShapePacket(_Controlled):
    """The shape placebo: as many lines of the same lengths, free of every word of the task."""

    keeps = frozenset({"code", "count", "lengths"})

    def __init__(self, mirrors: str, controller: Controller) -> None:
        super().__init__(f"{mirrors}-SHAPE", controller, CLAUSES, {"mirrors": mirrors})
        self.mirrors = mirrors
        self.own_words = own_words([controller])

    def between(self, view: RoundView) -> list[str]:
        """The parts between the task and the answer format."""
        state = view.mirrored
        if state is None or not state.block:
            return self.shown(state, "")
        lines = generic_lines(state.block.split("\n"), forbidden_tokens(view, state, self.own_words))
        return self.shown(state, "\n".join(lines))


class DecoyPacket(_Controlled):
    """
    The decoy: what the same controller says of other tasks, in lines of the same form and length, drawn by `seed` and
    the code. No line claims what a line of the treatment claims, as far as the controller has anything else to claim.
    `actions` are the controllers that it chooses among, where it does. Raises `PluginError` for a seed that is no text.
    """

    keeps = frozenset({"code", "foreign", "lengths"})

    def __init__(
        self, mirrors: str, controller: Controller, seed: object = "", actions: Sequence[Controller] = ()
    ) -> None:
        if not isinstance(seed, str) or not seed.isprintable():
            raise PluginError(f"arm '{mirrors}-DECOY': seed is {seed!r}: expected text of one line")
        settings = {"mirrors": mirrors, "seed": seed}
        super().__init__(f"{mirrors}-DECOY", controller, {**controller.templates, **FOREIGN}, settings)
        self.mirrors = mirrors
        self._seed = seed
        self._speakers = tuple(actions) or (controller,)
        self.own_words = own_words(self._speakers)
        self._settings["bank"] = digest_bytes("\n".join(self._bank).encode())

    @cached_property
    def _bank(self) -> Mapping[str, str]:
        """Every line that its controllers have to say of other tasks, each with its form."""
        told = [[one.name, dict(one.settings), dict(one.templates)] for one in self._speakers]
        return _bank(_Speakers(self._speakers, digest_json(told)))

    def between(self, view: RoundView) -> list[str]:
        """The parts between the task and the answer format."""
        state = view.mirrored
        if state is None or not state.block:
            return self.shown(state, "")
        forbidden = forbidden_names(view, state, self.own_words)
        taken = [claim for claim in self.controller.claims if claim in state.block]
        shaped = state.block.split("\n")
        drawn = {
            wanted: hash_order(self._free(wanted, forbidden, taken), f"{self._seed}|{state.code_sha256}")
            for wanted in {length_class(line) for line in shaped}
        }
        return self.shown(state, "\n".join(self._shaped(drawn, shaped)))

    def _free(self, wanted: int, forbidden: frozenset[str], taken: Sequence[str]) -> list[str]:
        """The lines of a length class without a name of the task or, if there are any, a claim that is taken."""
        of_class = [line for line in self._bank if length_class(line) == wanted] or list(self._bank)
        free = [line for line in of_class if not any(claim in line for claim in taken)] or of_class
        return [
            line for line in free if not any(stands_in(token, line) for token in forbidden if token in line)
        ] or free

    def _shaped(self, drawn: Mapping[int, Sequence[str]], shaped: Sequence[str]) -> list[str]:
        """For each line one of its length class, of its form and not shown yet as far as there is one, as drawn."""
        found: list[str] = []
        for line in shaped:
            form = form_of(line, self._speakers)
            fitting = drawn[length_class(line)]
            found.append(min(fitting, key=lambda one: (one in found, self._bank[one] != form)))
        return found


@dataclass(frozen=True, slots=True)
class _Speakers:
    """Controllers, equal to others that say the same."""

    controllers: tuple[Controller, ...] = field(compare=False)
    digest: str


@lru_cache(maxsize=16)
def _bank(speakers: _Speakers) -> Mapping[str, str]:
    """Made once: an experiment is put together several times while it is frozen, run and audited."""
    them = speakers.controllers
    lines = (line for one in them for given in foreign() for line in one.lines(given) or ())
    return {line: form_of(line, them) for line in lines if line_block([line]).bullets}
