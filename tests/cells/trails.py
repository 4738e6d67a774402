"""Made-up revisions: the events of a transcript from a few words, and a run's folder that holds them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.outcome import CellOutcome
from harness.transcript import Transcript, transcript_path
from harness.values import CellKey
from tests.cells.scoring_cases import outcome

WORDS = {"+": True, "-": False, "?": None}


def reading(word: str) -> dict[str, Any] | None:
    """`+` is accepted, `-` is not, `?` is no reading at all."""
    accepted = WORDS[word]
    return None if accepted is None else {"reading": "PASS" if accepted else "FAIL", "accepted": accepted}


def events(states: str, *, shipped: str = "", revisions: int = 2, **changes: Any) -> list[tuple[str, dict[str, Any]]]:
    """
    The events of a cell whose start and whose states after each revision are `states`, and whose certificate says
    `shipped` (none if empty). `changes` are `actions`, `notes` and `handlings`, one for each revision, and `restored`.
    """
    made: list[tuple[str, dict[str, Any]]] = [("start", {"revisions": revisions, "reading": reading(states[0])})]
    for at, word in enumerate(states[1:]):
        handling = changes.get("handlings", ["none"] * 9)[at]
        action = changes.get("actions", ["keep"] * 9)[at]
        note = changes.get("notes", [None] * 9)[at]
        evidence = {"stale": changes.get("stale", False)} if handling == "shown" else None
        made.append(("revision", {"revision": at + 1, "evidence": evidence, "evidence_handling": handling}))
        admitted = note is None if action == "patch" else None
        told = {"action": action, "note": note, "admitted": admitted, "reading": reading(word)}
        made.append(("revised", {"revision": at + 1, **told}))
    if shipped:
        made.append(("certified", {"restored": changes.get("restored", False), "reading": reading(shipped)}))
    return made


def kept(folder: Path, cell: CellKey, word: str, told: list[tuple[str, dict[str, Any]]]) -> CellOutcome:
    """An outcome whose recorded transcript lies in `folder`."""
    with Transcript(transcript_path(folder, cell, 1)) as transcript:
        for name, data in told:
            transcript.add(name, **data)
    return replace(outcome(cell, word), transcript=transcript.digest())


__all__ = ["events", "kept", "reading"]
