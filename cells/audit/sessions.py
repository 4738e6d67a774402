"""Invariants of sessions: what played, where, behind which fence, in which order and at what time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from cells.audit.findings import AuditedRun, Finding, Invariant, line_of
from cells.session_facts import PLUGIN
from harness.record import Entry

__all__ = ["ENTRY_KINDS", "Clock", "KnownEntries", "ProbesRepeated", "SessionPins", "Sessions"]

ENTRY_KINDS = frozenset(
    {
        *("run.opened", "run.stopped", "run.audited", "run.rescored", "session.started", "session.closed"),
        *("fence.probed", "fence.repeated", "judging.probed", "leaks.searched"),
        *("control.judged", "suite.characterised", "cell.started", "cell.ended"),
        *("registration.amended", "effect.promoted", "record.repaired"),
    }
)
"""Of the entries that Proctor writes into a record."""

_FACTS = {"distribution", "version", "sha256"}


class Sessions(Invariant):
    """A record is opened once, and cells are played in sessions."""

    name = "sessions"
    says = "the first entry opens this registration's record; every try starts and ends after a session was started"

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._started = False

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        opens = entry.kind == "run.opened"
        if opens != (entry.seq == 0):
            yield self.found(line_of(entry), f"{entry.kind}: expected run.opened as the first entry, and nowhere else")
        elif opens and entry.body.get("registration") != self.run.registration.id:
            said, is_ = entry.body.get("registration"), self.run.registration.id
            yield self.found(line_of(entry), f"it opens the record of {said}: the registration is {is_}")
        self._started |= entry.kind == "session.started"
        if entry.kind in {"cell.started", "cell.ended"} and not self._started:
            yield self.found(line_of(entry), f"{entry.kind} before any session was started")


class KnownEntries(Invariant):
    """Nothing stands in a record that nobody reads."""

    name = "known-entries"
    says = "every entry is of a kind that Proctor writes"

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        if entry.kind not in ENTRY_KINDS:
            yield self.found(line_of(entry), f"an entry of the kind {entry.kind!r}: none of those that Proctor writes")


class SessionPins(Invariant):
    """Every session was played by what was frozen."""

    name = "session-pins"
    says = "each session's code, version, backend and plugins are those that the registration pins"

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        if entry.kind != "session.started":
            return
        self.counts["sessions"] += 1
        code, body = self.run.pin("code") or {}, entry.body
        expected = {
            "proctor": code.get("version"),
            "code": code.get("sha256"),
            "backend": self.run.experiment.workspace.backend,
        }
        for name, pinned in expected.items():
            if body.get(name) != pinned:
                yield self.found(line_of(entry), f"{name} is {body.get(name)}: frozen as {pinned}")
        yield from self._plugins(entry, body.get("plugins") or {})

    def _plugins(self, entry: Entry, told: Mapping[str, Any]) -> Iterable[Finding]:
        for name, pin in self.run.registration.pins.items():
            if not name.startswith(PLUGIN):
                continue
            now = told.get(name.removeprefix(PLUGIN))
            frozen = {key: pin[key] for key in sorted(_FACTS)}
            if now != frozen:
                yield self.found(line_of(entry), f"{name} is {_short(now)}: frozen as {_short(frozen)}")


def _short(facts: Mapping[str, Any] | None) -> str:
    if facts is None:
        return "not there"
    return f"{facts['distribution']} {facts['version']}, sha256 {facts['sha256'][:12]}"


class ProbesRepeated(Invariant):
    """What the probes found before the first cell they find after the last."""

    name = "probes-repeated"
    says = "a session that played its cells out tried the structural probes again, and each found what it had found"

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._qualified: dict[str, str] = {}
        self._played = self._repeated = False

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        match entry.kind:
            case "session.started":
                self._played = self._repeated = False
            case "fence.probed":
                rows = entry.body.get("rows") or []
                self._qualified = {row["probe"]: row["finding_up"] for row in rows}
            case "cell.started":
                self._played = True
            case "fence.repeated":
                self._repeated = True
                yield from self._compare(entry)
            case "session.closed":
                yield from self._close(entry)
            case _:
                pass

    def _compare(self, entry: Entry) -> Iterable[Finding]:
        body = entry.body
        if body.get("holds") is None:
            self.counts["sessions at whose end no room could be had to probe in"] += 1
            return
        if body["holds"] is not True:
            yield self.found(line_of(entry), f"the fence did not hold at the end of the session: {body.get('why')}")
        for probe, finding in (body.get("findings") or {}).items():
            if self._qualified.get(probe) != finding:
                was = self._qualified.get(probe, "not tried")
                yield self.found(line_of(entry), f"probe {probe!r} was {finding} at the end, and {was} at the start")

    def _close(self, entry: Entry) -> Iterable[Finding]:
        how = entry.body.get("how")
        if not self._played or self._repeated:
            return
        if how in {"finished", "incomplete"}:
            yield self.found(line_of(entry), f"the session was closed as {how}, and its probes were not tried again")
        else:
            self.counts[f"sessions without a repetition of the probes: {how}"] += 1


class Clock(Invariant):
    """The machine's clock only went forwards."""

    name = "clock"
    says = "no entry is dated before the freeze or the entry before it; a transcript is within its try"

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._last, self._told = run.registration.frozen_at, "the freeze"
        self._started: dict[str, str] = {}

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        if not _is_time(entry.at):
            yield self.found(line_of(entry), f"it is dated {entry.at!r}: expected RFC 3339 in UTC")
            return
        if entry.at < self._last:
            yield self.found(line_of(entry), f"it is dated {entry.at}: {self._told} is of {self._last}")
        self._last, self._told = max(self._last, entry.at), "an entry before it"
        if entry.kind == "cell.started":
            self._started[_key(entry.body)] = entry.at
        outcome = self.run.outcome(entry)
        if outcome is not None:
            began = self._started.pop(_key(entry.body), None)
            yield from self._transcript(entry, self.run.events(entry, outcome) or (), began)

    def _transcript(self, entry: Entry, events: Iterable[Mapping[str, Any]], began: str | None) -> Iterable[Finding]:
        last = began or ""
        for event in events:
            at = str(event.get("at"))
            if at < last or at > entry.at:
                where = f"{line_of(entry)}, event {event.get('n')} of its transcript"
                yield self.found(where, f"it is dated {at}: expected from {last or 'its start'} to {entry.at}")
                return
            last = at


def _key(body: Any) -> str:
    cell = body.get("cell") if isinstance(body, Mapping) else None
    return f"{sorted(cell.items())}" if isinstance(cell, Mapping) else ""


def _is_time(text: object) -> bool:
    try:
        return isinstance(text, str) and text.endswith("Z") and datetime.fromisoformat(text) is not None
    except ValueError:
        return False
