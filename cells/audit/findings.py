"""What an invariant is, what it finds, and the run that it looks at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from harness.blobs import BlobStore
from harness.canonical import digest_bytes
from harness.errors import IntegrityError
from harness.experiment import Experiment
from harness.outcome import CellOutcome, outcome_from_json
from harness.record import Entry
from harness.registration import Registration, load_registration
from harness.transcript import read_transcript, transcript_path

__all__ = ["AuditedRun", "Events", "Finding", "Invariant", "line_of"]

Events: TypeAlias = tuple[Mapping[str, Any], ...]
"""The events of one transcript, in order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Where an invariant does not hold (a line of the record, a cell and its try, a pin) and what is wrong there."""

    invariant: str
    where: str
    what: str


@dataclass(kw_only=True)
class AuditedRun:
    """
    A run that is looked at: its folder, its registration, and each outcome and transcript as it comes by.

    The last outcome and the last transcript are kept, since several invariants ask for them one after the other.
    """

    folder: Path
    registration: Registration
    experiment: Experiment
    store: BlobStore
    _outcome: tuple[int, CellOutcome | None] = field(default=(-1, None), init=False)
    _events: tuple[int, Events | None] = field(default=(-1, None), init=False)

    @classmethod
    def of(cls, folder: Path) -> AuditedRun:
        """The run in `folder`. Raises `IntegrityError` when its registration is not what it was."""
        registration = load_registration(folder)
        experiment = Experiment.model_validate(dict(registration.experiment))
        return cls(folder=folder, registration=registration, experiment=experiment, store=BlobStore(folder / "blobs"))

    def pin(self, name: str) -> Any:
        """A pin of the registration, None where there is none."""
        return self.registration.pins.get(name)

    def outcome(self, entry: Entry) -> CellOutcome | None:
        """The outcome that an entry holds; None where it holds none, which one invariant alone reports."""
        if entry.kind != "cell.ended":
            return None
        if self._outcome[0] != entry.seq:
            self._outcome = (entry.seq, _read(entry.body))
        return self._outcome[1]

    def events(self, entry: Entry, outcome: CellOutcome) -> Events | None:
        """The transcript of an outcome; None where it has none or the file is another, which `files` reports."""
        if self._events[0] != entry.seq:
            self._events = (entry.seq, self.transcript(outcome))
        return self._events[1]

    def transcript(self, outcome: CellOutcome) -> Events | None:
        """As `events`, of an outcome whose entry went by already: it is read again."""
        path = transcript_path(self.folder, outcome.cell, outcome.attempt)
        if outcome.transcript is None or not path.is_file() or digest_bytes(path.read_bytes()) != outcome.transcript:
            return None
        try:
            return tuple(read_transcript(path))
        except IntegrityError:
            return None


def _read(body: Any) -> CellOutcome | None:
    try:
        return outcome_from_json(body)
    except ValueError:
        pass
    try:  # a VOID that carries a verdict is reported as that, and is else an outcome like any other
        if body["end"]["kind"] == "VOID":
            return outcome_from_json({**body, "verdict": None, "would_be": None, "candidates": []})
    except (KeyError, TypeError, ValueError):
        pass
    return None


class Invariant:
    """
    Something that is true of every honest record. It is made for one run, sees each entry once, in order, and says
    where it does not hold; `counts` are diagnostics: what was seen that is worth a figure and is no fault.
    """

    name: ClassVar[str]
    says: ClassVar[str]

    def __init__(self, run: AuditedRun) -> None:
        self.run = run
        self.counts: Counter[str] = Counter()

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry of the record; what is found in it is told at once."""
        del entry
        return ()

    def ended(self) -> Iterable[Finding]:
        """The record has ended: what can be said of the whole of it alone."""
        return ()

    def found(self, where: str, what: str) -> Finding:
        """A finding of this invariant."""
        return Finding(invariant=self.name, where=where, what=what)


def line_of(entry: Entry) -> str:
    """Where an entry stands, as `proctor verify` calls it."""
    return f"line {entry.seq + 1}"
