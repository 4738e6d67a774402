"""Invariants of outcomes: every cell has one, its tries are in order, and nothing is said that could not be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cells.amended import amended_plan, amendments_in
from cells.audit.findings import AuditedRun, Finding, Invariant, line_of
from harness.outcome import CellOutcome
from harness.record import Entry
from harness.values import CellKey, Void

__all__ = ["CellsComplete", "NoVoidNumber", "OutcomeForm", "RetriesAsRegistered", "TriesInOrder"]


class OutcomeForm(Invariant):
    """Outcomes are outcomes."""

    name = "outcome-form"
    says = "every recorded outcome has the fields of one, an END of the known kinds, and what may stand beside it"

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        if entry.kind == "cell.ended" and self.run.outcome(entry) is None:
            yield self.found(
                line_of(entry), "it is no outcome: its fields, or what stands beside its END, are not right"
            )


class NoVoidNumber(Invariant):
    """A VOID has no number of any kind."""

    name = "no-void-number"
    says = "no VOID has a verdict, a would-be reading or a judged candidate"

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        outcome = self.run.outcome(entry)
        if outcome is None or not isinstance(outcome.end, Void):
            return
        for name in ("verdict", "would_be", "candidates"):
            if entry.body.get(name):
                yield self.found(line_of(entry), f"{outcome.cell}: VOID({outcome.end.cause}) with {name}")


class CellsComplete(Invariant):
    """Every declared cell has its outcome, and no other cell has one."""

    name = "cells-complete"
    says = (
        "every cell in force has an outcome, unless a registered stop rule kept it from being fired, and no other cell "
        "has one; each session was closed with as many cells left as the record says"
    )

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._tried: dict[CellKey, str] = {}
        self._final: set[CellKey] = set()
        self._amendments: list[Mapping[str, Any]] = []
        self._stopped = False

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        outcome = self.run.outcome(entry)
        if outcome is not None:
            self._tried.setdefault(outcome.cell, line_of(entry))
            if outcome.is_final:
                self._final.add(outcome.cell)
        elif entry.kind == "registration.amended":
            self._amendments.append(entry.body)
        elif entry.kind == "session.closed" and "left" in entry.body:
            left = sum(cell not in self._final for cell in self._in_force()[0])
            if entry.body["left"] != left:
                what = f"the session was closed with {entry.body['left']} cells left: the record has {left} without"
                yield self.found(line_of(entry), f"{what} an outcome that is final")
        self._stopped |= entry.kind == "run.stopped"

    def _in_force(self) -> tuple[Sequence[CellKey], Mapping[str, str]]:
        """The cells in force, and the withdrawn tasks."""
        try:
            plan = amended_plan(self.run.registration, amendments_in(self._amendments))
        except (KeyError, TypeError, ValueError):  # `amendments` reports what is none
            return self.run.registration.cells, {}
        return plan.cells, plan.withdrawn

    def ended(self) -> Iterable[Finding]:
        """The whole; see `Invariant`."""
        cells, withdrawn = self._in_force()
        known, frozen = set(cells), set(self.run.registration.cells)
        for cell in cells:
            if cell not in self._tried:
                if self._stopped:
                    self.counts["cells that a stop rule kept from being fired"] += 1
                else:
                    yield self.found(f"cell {cell}", "it is declared, and the record has no outcome of it")
        for cell, where in self._tried.items():
            if cell in known:
                continue
            if f"{cell.benchmark}/{cell.task}" in withdrawn and cell in frozen:
                self.counts["outcomes of tasks that an amendment withdrew"] += 1
            else:
                yield self.found(where, f"an outcome of {cell}, which is not declared")


class TriesInOrder(Invariant):
    """Tries are numbered, started before they end, and end with the first that is no VOID."""

    name = "tries-in-order"
    says = "each try was started once and ended once, tries are numbered 1, 2, ... and none comes after a final one"

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._ended: dict[CellKey, tuple[int, bool]] = {}
        self._open: dict[CellKey, int] = {}

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        if entry.kind == "cell.started":
            yield from self._start(entry)
        outcome = self.run.outcome(entry)
        if outcome is not None:
            yield from self._end(entry, outcome)

    def _start(self, entry: Entry) -> Iterable[Finding]:
        try:
            cell, attempt = CellKey(**entry.body["cell"]), entry.body["attempt"]
        except (KeyError, TypeError, ValueError) as error:
            yield self.found(line_of(entry), f"it starts no cell: {type(error).__name__}: {error}")
            return
        if cell in self._open:
            yield self.found(line_of(entry), f"{cell}: try {attempt} starts while try {self._open[cell]} is open")
        self._open[cell] = attempt
        self.counts["tries"] += 1

    def _end(self, entry: Entry, outcome: CellOutcome) -> Iterable[Finding]:
        cell, where = outcome.cell, line_of(entry)
        before, final = self._ended.get(cell, (0, False))
        if outcome.attempt != before + 1:
            yield self.found(where, f"{cell}: try {outcome.attempt} ends: expected try {before + 1}")
        elif final:
            yield self.found(where, f"{cell}: try {outcome.attempt} comes after one that was final")
        started = self._open.pop(cell, None)
        # A cell that a gate refuses is ended without having been started.
        if started != outcome.attempt and outcome.end.kind != "REFUSED" and outcome.attempt == before + 1:
            yield self.found(where, f"{cell}: try {outcome.attempt} ends, and {_said(started)}")
        self._ended[cell] = (max(before, outcome.attempt), final or outcome.is_final)

    def ended(self) -> Iterable[Finding]:
        """The whole; see `Invariant`."""
        for cell, attempt in self._open.items():
            yield self.found(f"cell {cell}", f"try {attempt} was started and has no outcome")


def _said(started: int | None) -> str:
    return "none was started" if started is None else f"try {started} was started"


class RetriesAsRegistered(Invariant):
    """A VOID is tried again as often as registered, and no oftener."""

    name = "retries-as-registered"
    says = "in no session is a cell tried oftener than once and the registered number of times again"

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._retries = run.experiment.retries.void
        self._tries: dict[CellKey, int] = {}

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        if entry.kind == "session.started":
            self._tries.clear()
        elif entry.kind == "registration.amended":
            more = (entry.body.get("content") or {}).get("void_retries")
            self._retries = self._retries if more is None else more
        outcome = self.run.outcome(entry)
        if outcome is None or (isinstance(outcome.end, Void) and outcome.end.cause == "interrupted"):
            return
        self._tries[outcome.cell] = self._tries.get(outcome.cell, 0) + 1
        if self._tries[outcome.cell] > self._retries + 1:
            what = f"{outcome.cell} was tried {self._tries[outcome.cell]} times in one session"
            yield self.found(line_of(entry), f"{what}: expected {self._retries + 1} at most")
