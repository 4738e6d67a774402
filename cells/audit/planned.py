"""Invariants of the plan and of the figures made from it: keys pair, amendments are legal, parts make the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from cells.audit.findings import AuditedRun, Finding, Invariant, line_of
from cells.boards import boards
from cells.plan import Progress
from cells.readings import Scoreboard
from harness.amendment import Amendment
from harness.errors import IntegrityError, ProctorError
from harness.outcome import CellOutcome
from harness.record import Entry

__all__ = ["Amendments", "PairingKeys", "PooledIsSum"]


class PairingKeys(Invariant):
    """Cells can be paired: each key once, of parts that the experiment has."""

    name = "pairing-keys"
    says = "no two planned cells have one key, and each is of an arm, model, extras and replicate of the experiment"

    def ended(self) -> Iterable[Finding]:
        """The whole; see `Invariant`."""
        experiment, registration = self.run.experiment, self.run.registration
        keys = Counter([*map(str, registration.cells), *(row["cell"] for row in registration.refused)])
        for key, times in keys.items():
            if times > 1:
                yield self.found(f"cell {key}", f"it is planned {times} times: expected once")
        known: dict[str, set[Any]] = {
            "arm": set(experiment.arm_names()),
            "model": {model.name for model in experiment.models},
            "extras": set(experiment.extras),
            "replicate": set(range(1, experiment.replicates + 1)),
        }
        for cell in registration.cells:
            for part, values in known.items():
                if getattr(cell, part) not in values:
                    yield self.found(f"cell {cell}", f"{part} {getattr(cell, part)!r} is none of the experiment's")
            if self.run.pin(f"task {cell.benchmark}/{cell.task}") is None:
                yield self.found(f"cell {cell}", f"no task {cell.benchmark}/{cell.task} is pinned")


class Amendments(Invariant):
    """Amendments are dated additions to what was there when they were made."""

    name = "amendments"
    says = (
        "amendments are numbered 1, 2, ..., say no more than one may, were dated when they were appended, count the "
        "outcomes before them, and every check of theirs held"
    )

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._outcomes = self._number = 0

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        if entry.kind == "cell.ended":
            self._outcomes += 1
        elif entry.kind == "registration.amended":
            self._number += 1
            self.counts["amendments"] += 1
            for what in self._faults(entry):
                yield self.found(line_of(entry), f"amendment {self._number}: {what}")

    def _faults(self, entry: Entry) -> Iterable[str]:
        body: Mapping[str, Any] = entry.body if isinstance(entry.body, Mapping) else {}
        try:
            content = Amendment.model_validate(body["content"])
            dated, outcomes, number, checks = (body[name] for name in ("dated", "outcomes", "number", "checks"))
        except (KeyError, TypeError, ValidationError) as error:
            yield f"it is none: {type(error).__name__}: {str(error).splitlines()[0]}"
            return
        if body.get("registration") != self.run.registration.digest:
            yield f"it is of registration {body.get('registration')}, and this is {self.run.registration.digest}"
        if number != self._number:
            yield f"it calls itself number {number}"
        if outcomes != self._outcomes:
            yield f"it says that {outcomes} outcomes stood before it: {self._outcomes} do"
        if not _same_moment(str(dated), entry.at):
            yield f"it is dated {dated}, and was appended at {entry.at}"
        try:
            self.run.store.get(str(body.get("file")))
        except IntegrityError as error:
            yield f"its file: {error}"
        told = {check["name"]: check["holds"] for check in checks}
        for check in content.checks:
            if told.get(check.name) is not True:
                yield f"check {check.name!r} did not hold when it was made"


def _same_moment(dated: str, at: str) -> bool:
    """Whether a date was taken just before an entry was written: within a minute, and never after."""
    from datetime import datetime

    try:
        seconds = (datetime.fromisoformat(at) - datetime.fromisoformat(dated)).total_seconds()
    except ValueError:
        return False
    return 0 <= seconds <= 60


class PooledIsSum(Invariant):
    """Whatever is counted of all is the sum of what is counted of the parts."""

    name = "pooled-is-sum"
    says = (
        "each scoreboard's arms are the sums of their conditions, and the pairs of a contrast add up to those declared"
    )

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._progress = Progress()
        self._readable = True

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        outcome = self.run.outcome(entry)
        if outcome is not None:
            self._take(outcome)
        elif entry.kind != "cell.ended":
            try:
                self._progress.add(entry.kind, entry.body)
            except (AttributeError, KeyError, TypeError, ValueError):  # reported by those whose entry it is
                self._readable = False
        return ()

    def _take(self, outcome: CellOutcome) -> None:
        """Of a cell's VOIDs the last alone is counted: memory grows with the cells, and not with their tries."""
        tries = self._progress.tries.setdefault(outcome.cell, [])
        if tries and not tries[-1].is_final:
            del tries[-1]
        tries.append(_slim(outcome))
        self._progress.started.pop(outcome.cell, None)

    def ended(self) -> Iterable[Finding]:
        """The whole; see `Invariant`."""
        if not self._readable:
            return
        try:
            found = boards(self.run.registration, self._progress, head=None)
        except ProctorError as error:
            yield self.found("scoreboard", f"no scoreboard can be made: {error}")
            return
        except (KeyError, TypeError, ValueError):  # an amendment that is none: `amendments` reports it
            return
        for label, board in (("frozen", found.frozen), ("amended", found.amended)):
            if board is not None:
                for what in _sums(board):
                    yield self.found(f"{label} scoreboard", what)


def _slim(outcome: CellOutcome) -> CellOutcome:
    """An outcome without what no figure is made of: one of every cell is held in memory."""
    verdict, would_be = (
        None if said is None else replace(said, tests=(), tiers=(), detail="", limits={})
        for said in (outcome.verdict, outcome.would_be)
    )
    return replace(outcome, room={}, findings=(), verdict=verdict, would_be=would_be, candidates=())


_COUNTED = ("planned", "buildable", "fired", "judged", "passed", "halted", "void", "unscorable", "refused", "missing")


def _sums(board: Scoreboard) -> Iterable[str]:
    for arm in board.arms:
        group = arm.group
        parts = [
            item
            for item in board.conditions
            if (item.group.arm, item.group.extras, item.group.model) == (group.arm, group.extras, group.model)
        ]
        for name in _COUNTED:
            total = sum(getattr(part, name) for part in parts)
            if getattr(arm, name) != total:
                yield f"{name} of arm {group.label} is {getattr(arm, name)}: its conditions have {total}"
        if sum(arm.classes.values()) != arm.planned:
            yield f"the classes of arm {group.label} add up to {sum(arm.classes.values())} of {arm.planned}"
    for contrast in (*board.contrasts, *board.added):
        pairs = contrast.pairs
        if pairs.judged + pairs.halted + pairs.without_verdict != pairs.declared:
            yield f"the pairs of {contrast.name!r} do not add up to the {pairs.declared} declared"
