"""The invariant of revisions: an admitted patch alone changes a state, evidence is what it says, certificates hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cells.audit.findings import AuditedRun, Events, Finding, Invariant, line_of
from harness.canonical import digest_bytes
from harness.errors import IntegrityError, StorageError
from harness.outcome import CellOutcome
from harness.record import Entry
from harness.values import Declared

__all__ = ["RevisionsHold"]

_KINDS = frozenset({"start", "revision", "revised", "certified"})


class RevisionsHold(Invariant):
    """What the revision contract promises, as far as a transcript and an exhibit can show it."""

    name = "revisions-hold"
    says = (
        "revisions run from 1 on the state that the last one left; it changes by an admitted patch alone, to that "
        "patch's SHA-256; evidence is stale if its code is another; the certificate is of the last or the retained "
        "state, and of the bytes that were judged"
    )

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        outcome = self.run.outcome(entry)
        events = None if outcome is None else self.run.events(entry, outcome)
        told = [event for event in events or () if event.get("event") in _KINDS]
        if outcome is None or not told:
            return
        try:
            faults = [*_states(told), *_asked(events or ()), *_judged(told, outcome, self.run)]
        except (KeyError, TypeError, AttributeError) as error:
            faults = [f"an event of its revisions is not whole: {type(error).__name__}: {error}"]
        for what in faults:
            yield self.found(line_of(entry), f"{outcome.cell}, try {outcome.attempt}: {what}")


def _sha(code: str) -> str:
    return digest_bytes(code.encode())


def _states(told: list[Mapping[str, Any]]) -> Iterator[str]:
    """The states, one from another."""
    start, *others = told
    if start["event"] != "start":
        yield f"its revisions begin with {start['event']!r}: expected the start"
        return
    state = start["code_sha256"]
    kept = {state} if _accepted(start) else set[str]()
    number = 0
    if _sha(start["code"]) != state:
        yield "its start has another SHA-256 than it says"
    for event in others:
        match event["event"]:
            case "revision":
                number += 1
                yield from _evidence(event, state, number)
            case "revised":
                yield from _change(event, state, number)
                state = event["after_sha256"]
                kept |= {state} if _accepted(event) else set()
            case "certified":
                if event["code_sha256"] not in {state, *kept}:
                    yield "its certificate is of a state that is neither the last nor was ever accepted"
                if event["restored"] is not (event["code_sha256"] != state):
                    yield f"its certificate says restored: {event['restored']}, and the last state says otherwise"
            case _:
                yield "it starts more than once"


def _accepted(event: Mapping[str, Any]) -> bool:
    return event["reading"] is not None and event["reading"]["accepted"] is True


def _evidence(event: Mapping[str, Any], state: str, number: int) -> Iterator[str]:
    if event["revision"] != number:
        yield f"revision {event['revision']} stands where {number} should"
    if event["state_sha256"] != state:
        yield f"revision {number} was asked of another state than the last one left"
    evidence = event["evidence"]
    if evidence is not None and evidence["stale"] is not (evidence["code_sha256"] != event["state_sha256"]):
        yield f"the evidence of revision {number} says stale: {evidence['stale']}, and its code says otherwise"


def _change(event: Mapping[str, Any], state: str, number: int) -> Iterator[str]:
    if event["revision"] != number:
        yield f"revision {event['revision']} is over where {number} should be"
    if event["before_sha256"] != state:
        yield f"revision {number} began with another state than the last one left"
    wanted = _sha(event["code"]) if event["admitted"] is True else event["before_sha256"]
    if event["after_sha256"] != wanted:
        yield f"revision {number} left another state than its action makes"


def _asked(events: Events) -> Iterator[str]:
    """Each revision's prompt against the request that followed."""
    waiting: Mapping[str, Any] | None = None
    for event in events:
        if event.get("event") == "revision":
            waiting = event
        elif event.get("event") == "request" and waiting is not None:
            sent = event["messages"][-1]["content"] if event["messages"] else ""
            if _sha(sent) != waiting["prompt_sha256"]:
                yield f"the request of revision {waiting['revision']} has another prompt than it names"
            waiting = None


def _judged(told: list[Mapping[str, Any]], outcome: CellOutcome, run: AuditedRun) -> Iterator[str]:
    """The certificate against the file that was judged."""
    certificate = next((event for event in told if event["event"] == "certified"), None)
    if certificate is None or outcome.exhibit is None or not isinstance(outcome.end, Declared):
        return
    file = (run.pin("seat options") or {}).get("file", "")
    try:
        files = run.store.get_tree(outcome.exhibit).files
    except (IntegrityError, StorageError, ValueError):
        return  # a blob that is gone or damaged is what `files` reports
    found = digest_bytes(files[file].data) if file in files else None
    if found != certificate["code_sha256"]:
        yield f"what was judged as {file!r} is not what its certificate is of"
