"""
Arms of the `revise` seat that differ in the evidence that a revision is shown, and in nothing else.

Each has the task and, where there is evidence, the same words about it: the stale condition must not tell that it is
stale, or it would be another question. `evidence` names the stream that the seat takes it from, and `guarded` lets the
seat reject or refresh what is stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from arms.text import with_extras
from harness.canonical import canonical_bytes
from harness.quoting import fenced
from harness.views import RoundView

__all__ = ["RENDERER", "CurrentEvidence", "GuardedEvidence", "NoEvidence", "StaleEvidence"]

RENDERER = 1
"""Raised with every change of how templates become a prompt, so that the change shows in the digest of each arm."""

_BASE: Mapping[str, str] = {
    "opening": "The task below has a solution that you may revise.",
    "separator": "\n\n",
}
_EVIDENCE: Mapping[str, str] = {
    **_BASE,
    "evidence": "Checks of the task were run. This is what they said:",
    "language": "text",
}


class _EvidenceArm:
    """What is pinned: the name, the stream, whether it is guarded, every string of a prompt, the renderer's version."""

    seats = frozenset({"revise"})
    evidence: Literal["none", "current", "carried"]
    guarded = False

    def __init__(self, name: str, templates: Mapping[str, str]) -> None:
        self.name = name
        self._templates = dict(templates)

    @property
    def content(self) -> bytes:
        """Canonical JSON of all that makes this arm another than its fellows."""
        return canonical_bytes(
            {
                "evidence_arm": self.name,
                "evidence": self.evidence,
                "guarded": self.guarded,
                "renderer": RENDERER,
                "templates": self._templates,
            }
        )

    def render(self, view: RoundView) -> str:
        """The arm's part of a revision's prompt: the task, and the evidence if there is any and it has words for it."""
        words = self._templates
        parts = [words["opening"], with_extras(view)]
        shown = None if view.revision is None else view.revision.evidence
        if shown is not None and "evidence" in words:
            parts += [words["evidence"], fenced(shown.text, words["language"])]
        return words["separator"].join(parts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(renderer={RENDERER})"


class CurrentEvidence(_EvidenceArm):
    """Evidence taken on the very state that is to be revised."""

    evidence = "current"

    def __init__(self) -> None:
        super().__init__("current", _EVIDENCE)


class StaleEvidence(_EvidenceArm):
    """Evidence carried across the last edit, in the words of `current`: what it says is of the state before."""

    evidence = "carried"

    def __init__(self) -> None:
        super().__init__("stale", _EVIDENCE)


class NoEvidence(_EvidenceArm):
    """The task and the state alone."""

    evidence = "none"

    def __init__(self) -> None:
        super().__init__("none", _BASE)


class GuardedEvidence(_EvidenceArm):
    """The stream of `stale`, of which the seat lets nothing stale through."""

    evidence = "carried"
    guarded = True

    def __init__(self) -> None:
        super().__init__("guarded", _EVIDENCE)
