"""One cell's revisions as its transcript tells them: which states were correct, what was asked, what shipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.canonical import digest_bytes
from harness.outcome import CellOutcome
from harness.transcript import read_transcript, transcript_path

__all__ = ["Trail", "read_trail", "trail_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trail:
    """
    A cell's revisions. `states` says of the start and of the state after each revision whether the public tests
    accepted it, None where nobody said; `revisions` is the most that could be asked.

    `shipped` says the same of what the certificate was taken on; `certified` is whether there is a certificate at all,
    and `restored` whether what it is of is the retained state and not the last one. `notes` counts why nothing changed,
    by rule; `handlings` what became of evidence; `stale_shown` the revisions that were shown stale evidence.
    """

    revisions: int
    states: tuple[bool | None, ...]
    shipped: bool | None
    certified: bool
    restored: bool
    patches: int
    admitted: int
    escalations: int
    stale_shown: int
    notes: Mapping[str, int]
    handlings: Mapping[str, int]

    @property
    def started(self) -> bool | None:
        """Whether the start was correct."""
        return self.states[0]

    @property
    def lost(self) -> bool | None:
        """Whether a correct state was held and the last one is not correct; None where a state is unknown."""
        if None in self.states:
            return None
        return any(self.states) and not self.states[-1]


def read_trail(folder: Path, outcome: CellOutcome) -> Trail | None:
    """
    The trail of a try in the run's `folder`; None where the transcript is missing, is another than the recorded one, or
    tells of no revisions.
    """
    path = transcript_path(folder, outcome.cell, outcome.attempt)
    if outcome.transcript is None or not path.is_file() or digest_bytes(path.read_bytes()) != outcome.transcript:
        return None
    return trail_of(read_transcript(path))


def trail_of(events: Iterable[Mapping[str, Any]]) -> Trail | None:
    """The trail that a transcript's events make; None where they tell of no start."""
    revisions, states = 0, list[bool | None]()
    certificate: Mapping[str, Any] | None = None
    asked, revised = list[Mapping[str, Any]](), list[Mapping[str, Any]]()
    for event in events:
        match event.get("event"):
            case "start":
                revisions, states = event["revisions"], [_accepted(event)]
            case "revision":
                asked.append(event)
            case "revised":
                revised.append(event)
                states.append(_accepted(event))
            case "certified":
                certificate = event
            case _:
                pass
    if not states:
        return None
    return Trail(
        revisions=revisions,
        states=tuple(states),
        shipped=None if certificate is None else _accepted(certificate),
        certified=certificate is not None,
        restored=certificate is not None and certificate["restored"],
        patches=sum(event["action"] == "patch" for event in revised),
        admitted=sum(event["admitted"] is True for event in revised),
        escalations=sum(event["action"] == "escalate" for event in revised),
        stale_shown=sum(event["evidence"] is not None and event["evidence"]["stale"] for event in asked),
        notes=dict(Counter(event["note"] for event in revised if event["note"] is not None)),
        handlings=dict(Counter(event["evidence_handling"] for event in asked)),
    )


def _accepted(event: Mapping[str, Any]) -> bool | None:
    """What the public tests said of the state of an event."""
    reading = event["reading"]
    return None if reading is None else bool(reading["accepted"])
