"""Invariants of verdicts and of who was asked: the referee's own words, on this exhibit, of the condition's model."""

from __future__ import annotations

from collections.abc import Iterable

from cells.audit.findings import AuditedRun, Finding, Invariant, line_of
from harness import plugins
from harness.record import Entry

__all__ = ["ServedModel", "VerdictsKnown"]


class VerdictsKnown(Invariant):
    """A verdict is one that this run's referee gives, on what the harness took out, by the registered suite."""

    name = "verdicts-known"
    says = (
        "each reading is in the referee's class table with its standing, on the recorded exhibit, by the pinned suite"
    )

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        referee = run.experiment.referee
        self._classes = plugins.load("referees", referee.name)(referee.options).classes

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        outcome = self.run.outcome(entry)
        verdict = None if outcome is None else outcome.verdict or outcome.would_be
        if outcome is None or verdict is None:
            return
        where, cell = line_of(entry), outcome.cell
        known = self._classes.get(verdict.reading)
        if known is None:
            known_ones = ", ".join(sorted(self._classes))
            yield self.found(where, f"{cell}: reading {verdict.reading!r}: the referee knows {known_ones}")
        elif known != verdict.standing:
            yield self.found(
                where, f"{cell}: {verdict.reading} is {verdict.standing}: the referee's table says {known}"
            )
        if verdict.evidence.code != outcome.exhibit:
            yield self.found(
                where, f"{cell}: the verdict is on code {verdict.evidence.code}: the exhibit is {outcome.exhibit}"
            )
        pinned = (self.run.pin(f"suite {cell.benchmark}/{cell.task}") or {}).get("digest")
        if verdict.evidence.suite != pinned:
            yield self.found(where, f"{cell}: judged by suite {verdict.evidence.suite}: {pinned} is pinned")


class ServedModel(Invariant):
    """The model that answered is the condition's."""

    name = "served-model"
    says = "every call was served by the model that the condition's is pinned as, by the outcome and by the transcript"

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        outcome = self.run.outcome(entry)
        if outcome is None:
            return
        pinned = (self.run.pin(f"model {outcome.cell.model}") or {}).get("served")
        for name in outcome.served_models:
            if name != pinned:
                yield self.found(line_of(entry), f"{outcome.cell}: served by {name!r}: {pinned!r} is pinned")
        events = self.run.events(entry, outcome) or ()
        answered = {str(event.get("served_model")) for event in events if event.get("event") == "completion"}
        for name in sorted(answered - set(outcome.served_models)):
            what = f"{outcome.cell}: its transcript has a call served by {name!r}, and its outcome names no such model"
            # An interrupted try is closed by the next session, which does not say who had answered.
            if outcome.served_models or name != pinned:
                yield self.found(line_of(entry), what)
