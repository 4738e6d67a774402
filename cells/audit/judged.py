"""Invariants of verdicts and of who was asked: the referee's own words, on this exhibit, of the condition's model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cells.audit.findings import AuditedRun, Finding, Invariant, line_of
from harness import plugins
from harness.candidates import deciding
from harness.outcome import CellOutcome
from harness.record import Entry
from harness.values import CellKey, Declared, Verdict

__all__ = ["ServedModel", "VerdictsKnown"]


class VerdictsKnown(Invariant):
    """A verdict is one that this run's referee gives, on what the harness took out, by the registered suite."""

    name = "verdicts-known"
    says = (
        "each reading is in the referee's class table with its standing, on the recorded exhibit, by the pinned suite; "
        "where each accepted candidate is judged, the outcome's reading is of the one that decides"
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
        for what in _chosen(outcome, verdict):
            yield self.found(line_of(entry), f"{outcome.cell}: {what}")
        each: list[tuple[str | None, Verdict]] = [(one.exhibit, one.verdict) for one in outcome.candidates]
        for exhibit, said in each or [(outcome.exhibit, verdict)]:
            for what in self._unknown(outcome.cell, said, exhibit):
                yield self.found(line_of(entry), f"{outcome.cell}: {what}")

    def _unknown(self, cell: CellKey, verdict: Verdict, exhibit: str | None) -> Iterator[str]:
        """One verdict, against the class table, what was judged, and the pinned suite."""
        known = self._classes.get(verdict.reading)
        if known is None:
            yield f"reading {verdict.reading!r}: the referee knows {', '.join(sorted(self._classes))}"
        elif known != verdict.standing:
            yield f"{verdict.reading} is {verdict.standing}: the referee's table says {known}"
        if verdict.evidence.code != exhibit:
            yield f"the verdict is on code {verdict.evidence.code}: the exhibit is {exhibit}"
        pinned = (self.run.pin(f"suite {cell.benchmark}/{cell.task}") or {}).get("digest")
        if verdict.evidence.suite != pinned:
            yield f"judged by suite {verdict.evidence.suite}: {pinned} is pinned"


def _chosen(outcome: CellOutcome, verdict: Verdict) -> Iterator[str]:
    """The verdict that counts, against the judged candidates that it is chosen from, where it is."""
    if not outcome.candidates:
        return
    one, last = deciding(outcome.candidates), outcome.candidates[-1]
    if verdict != one.verdict:
        yield f"it reads {verdict.reading}: of its candidates that of round {one.round} decides, {one.verdict.reading}"
    if isinstance(outcome.end, Declared) and last.exhibit != outcome.exhibit:
        yield f"its newest judged candidate is {last.exhibit}: the exhibit is {outcome.exhibit}"


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
