"""The plan minus the record: which cells are still to be played, and what a process that died left behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cells.amended import AmendedPlan, amended_plan, amendments_in
from cells.bulk import in_bulk
from cells.suite_word import counting
from harness.canonical import digest_bytes
from harness.errors import IntegrityError
from harness.outcome import CellOutcome, outcome_from_json
from harness.record import Entry, Head, read_entries
from harness.registration import Registration
from harness.table_faults import expected
from harness.values import CellKey

__all__ = ["Progress", "declared", "read_run", "remaining", "unsaid"]


@dataclass
class Progress:
    """
    What a record says so far. `tries` are the outcomes of each cell, in order; `started` the attempts that have no
    outcome yet: after a start, those of a process that died. `fences` and `controls` are the bodies of the last such
    entries, `suites` of those that count (the latter two by task), `amendments` and `audits` those of every one.
    `not_enforced` are the promises of a workspace that some session's backend did not keep, each with why.
    """

    tries: dict[CellKey, list[CellOutcome]] = field(default_factory=dict)
    started: dict[CellKey, int] = field(default_factory=dict)
    fences: dict[str, Any] | None = None
    controls: dict[str, dict[str, Any]] = field(default_factory=dict)
    suites: dict[str, dict[str, Any]] = field(default_factory=dict)
    amendments: list[dict[str, Any]] = field(default_factory=list)
    audits: list[dict[str, Any]] = field(default_factory=list)
    not_enforced: dict[str, str] = field(default_factory=dict)
    sessions: int = 0
    stopped: dict[str, Any] | None = None

    def add(self, kind: str, body: Any) -> None:
        """Fold one entry."""
        match kind:
            case "cell.started":
                self.started[CellKey(**body["cell"])] = body["attempt"]
            case "cell.ended":
                outcome = outcome_from_json(body)
                self.tries.setdefault(outcome.cell, []).append(outcome)
                self.started.pop(outcome.cell, None)
            case "fence.probed":
                self.fences = body
            case "control.judged":
                self.controls[body["task"]] = body
            case "suite.characterised":
                self.suites[body["task"]] = counting(self.suites.get(body["task"]), body)
            case "registration.amended":
                self.amendments.append(body)
            case "run.audited":
                self.audits.append(body)
            case "session.started":
                self.sessions += 1
                promises = body.get("guarantees") or {}
                self.not_enforced |= {name: why for name, why in promises.items() if why is not None}
            case "run.stopped":
                self.stopped = body
            case _:
                pass

    def outcomes(self) -> list[CellOutcome]:
        """Every try, cell by cell."""
        return [outcome for tries in self.tries.values() for outcome in tries]

    def final(self, cell: CellKey) -> CellOutcome | None:
        """The outcome that a cell is done with, if it is."""
        return next((outcome for outcome in self.tries.get(cell, ()) if outcome.is_final), None)

    def next_attempt(self, cell: CellKey) -> int:
        """The number of the next try of a cell, from 1."""
        done = max((outcome.attempt for outcome in self.tries.get(cell, ())), default=0)
        return max(done, self.started.get(cell, 0)) + 1


@in_bulk()
def read_run(folder: Path) -> tuple[Progress, Head | None]:
    """
    What the record of a run folder says so far, and its head; empty and None before the first entry.

    Raises `IntegrityError` when a line does not verify, when it says what no entry of its kind can, when the record is
    another registration's, or when it ends before the line that its own head names.
    """
    path, progress, head = folder / "record.jsonl", Progress(), None
    expected = _local_head(folder)  # before the record is read, which may grow meanwhile
    for entry in read_entries(path) if path.exists() else ():
        if entry.seq == 0 and entry.prev != _genesis(folder):
            raise IntegrityError(f"{path}, line 1: it does not belong to this run's registration")
        if what := unsaid(progress, entry):
            raise IntegrityError(f"{path}, line {entry.seq + 1}: {what}")
        head = Head(entry.seq, entry.sha256)
    last = -1 if head is None else head.seq
    if expected is not None and last < expected.seq:
        raise IntegrityError(f"{path}: lines {last + 2} to {expected.seq + 1} are missing; its head is {expected}")
    return progress, head


def unsaid(progress: Progress, entry: Entry) -> str | None:
    """Fold an entry into what the record says so far; what is wrong with it, where no entry of its kind says this."""
    try:
        progress.add(entry.kind, entry.body)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        return f"no {entry.kind} says this: {'.'.join(map(str, fault['loc']))}: {expected(fault)}"
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return f"no {entry.kind} says this: {type(error).__name__}: {str(error).splitlines()[0]}"
    return None


def _genesis(folder: Path) -> str:
    """What the first line hangs on."""
    return digest_bytes((folder / "registration.json").read_bytes())


def _local_head(folder: Path) -> Head | None:
    path = folder / "head"
    try:
        return Head.parse(path.read_text("ascii")) if path.exists() else None
    except ValueError as error:
        raise IntegrityError(f"{path}: {error}") from None


def remaining(registration: Registration, progress: Progress) -> Sequence[CellKey]:
    """The declared cells without a final outcome, amendments and all, in the order of the plan."""
    return [cell for cell in declared(registration, progress).cells if progress.final(cell) is None]


def declared(registration: Registration, progress: Progress) -> AmendedPlan:
    """What is to be played: the frozen cells, as the record's amendments have changed them."""
    return amended_plan(registration, amendments_in(progress.amendments))
