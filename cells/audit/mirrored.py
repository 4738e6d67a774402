"""The invariant of mirrored arms, across transcripts: what was sent in each round is a copy of what the source had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from cells.audit.findings import AuditedRun, Events, Finding, Invariant, line_of
from cells.audit.remade import Materials, Round, rounds_of
from harness.errors import IntegrityError, MirrorBroken, TokensShown
from harness.mirror import arm_state
from harness.mirror_audit import audit_packet
from harness.outcome import CellOutcome
from harness.record import Entry
from harness.seats.mirroring import as_seen
from harness.values import CellKey
from harness.views import MirrorState

__all__ = ["MirrorsHold"]


class MirrorsHold(Invariant):
    """
    Two arms of a unit differ in what their names say, and in nothing else. The states are made again from the source's
    own transcript and pool, and each prompt is read as it was sent: what the seats noted of either is only compared.
    """

    name = "mirrors-hold"
    says = (
        "in each unit and round of mirrored arms the prompts that were sent show the source's fact block and code, by "
        "SHA-256, as its own rounds and pool make them; generic bullets are as many as the facts, and have no word of "
        "the task"
    )

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._made = Materials(run)
        self._sources: dict[CellKey, tuple[str, CellOutcome]] = {}

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        outcome = self.run.outcome(entry)
        events = None if outcome is None else self.run.events(entry, outcome)
        if outcome is None or events is None or not any(event.get("event") == "round" for event in events):
            return
        try:
            faults = list(self._faults(entry, outcome, events))
        except IntegrityError:
            return  # a blob that is gone or damaged is what `files` reports
        for what in faults:
            yield self.found(line_of(entry), f"{outcome.cell}, try {outcome.attempt}: {what}")

    def _faults(self, entry: Entry, outcome: CellOutcome, events: Events) -> Iterator[str]:
        arm = outcome.cell.arm
        source = self._made.sources.get(arm)
        if source is None and arm not in self._made.sources.values():
            if any(event.get("event") == "mirror" for event in events):
                yield f"it has the state of a mirror, and arm {arm!r} mirrors none and is mirrored by none"
            return
        if not outcome.is_final:
            return  # a VOID is nobody's result, and what it mirrored may have been another try
        if source is None:
            self._sources[outcome.cell] = (line_of(entry), outcome)
            yield from self._publishes(outcome.cell, list(rounds_of(events, self._made.pool(outcome.cell))))
        else:
            yield from self._copies(outcome.cell, replace(outcome.cell, arm=source), list(rounds_of(events)))

    def _publishes(self, cell: CellKey, rounds: list[Round]) -> Iterator[str]:
        """A source's rounds, against the states that its own candidates make."""
        for told in rounds:
            yield from self._held(cell, told, self._state(cell, told))

    def _copies(self, cell: CellKey, source: CellKey, rounds: list[Round]) -> Iterator[str]:
        """A mirror's rounds, against the states of its source."""
        states = self._states(source)
        if states is None:
            yield f"the record has no final outcome of {source}, which it mirrors, before it, or its transcript is gone"
            return
        for told in rounds:
            state = states.get(told.number)
            if state is None and _goes_on(self.run):
                state = states[max(states)] if states else None
            if state is None:
                yield f"round {told.number} was played, and {source} has no such round"
            else:
                yield from self._held(cell, told, state)
                self.counts["rounds held against their source's"] += 1

    def _states(self, source: CellKey) -> dict[int, MirrorState] | None:
        """The states of a source's final try, from its transcript."""
        found = self._sources.get(source)
        events = None if found is None else self.run.transcript(found[1])
        if events is None:
            return None
        return {told.number: self._state(source, told) for told in rounds_of(events, self._made.pool(source))}

    def _state(self, source: CellKey, told: Round) -> MirrorState:
        """What a source had before a round: the facts of its incumbent, or what its controller says of it."""
        return arm_state(self._made.arms[source.arm], self._made.view(source, told))

    def _held(self, cell: CellKey, told: Round, state: MirrorState) -> Iterator[str]:
        """One round against the state that it was made from: what was noted of it, and what was sent."""
        differing = _differing(told.mirror, state)
        if differing:
            yield (
                f"the state noted in round {told.number} is not the one that the rounds of {state.source!r} make: "
                f"{', '.join(differing)}"
            )
        if told.sent is None:
            return
        arm = self._made.arms[cell.arm]
        view = as_seen(arm, self._made.view(cell, told), state)
        try:
            audit_packet(arm, view, state, told.sent)
        except (MirrorBroken, TokensShown) as error:
            yield str(error)
        else:
            if cell.arm in self._made.sources and self._made.is_pinned(cell.arm) and arm.render(view) != told.sent:
                yield f"the prompt of round {told.number} is not what arm {cell.arm!r} makes of its source's state"


def _differing(noted: Mapping[str, Any] | None, state: MirrorState) -> list[str]:
    """The fields in which a noted state is another."""
    if noted is None:
        return ["none was noted"]
    return [name for name, value in asdict(state).items() if noted.get(name) != value]


def _goes_on(run: AuditedRun) -> bool:
    """Whether a mirrored seat goes on with its source's last state once that one has no more rounds."""
    return bool((run.pin("seat options") or {}).get("after_source") == "last")
