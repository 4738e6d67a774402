"""Invariants of transcripts: their events are whole and in order, and every seed is the one that was registered."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from cells.audit.findings import AuditedRun, Events, Finding, Invariant, line_of
from harness.canonical import digest_bytes
from harness.errors import MirrorLost
from harness.outcome import CellOutcome
from harness.record import Entry
from harness.seeds import SeedBook, seed
from harness.values import Declared, Refused, Void

__all__ = ["RoundsComplete", "Seeds"]

_ROOM = 65
"""Seeds are numbered by round or by call: of a try with fewer calls than rounds so many are possible all the same."""


class RoundsComplete(Invariant):
    """A transcript lacks nothing of what it tells."""

    name = "rounds-complete"
    says = (
        "a transcript's events are numbered without a gap and end in the outcome's END; rounds run from 1, each with "
        "its request of the prompt it names and, once it is over, with what was extracted"
    )

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        outcome = self.run.outcome(entry)
        events = None if outcome is None else self.run.events(entry, outcome)
        if outcome is None or events is None:
            return
        for what in (*_numbered(events), *_ending(events, outcome), *_rounds(events, outcome, self.run)):
            yield self.found(line_of(entry), f"{outcome.cell}, try {outcome.attempt}: {what}")


def _numbered(events: Events) -> Iterator[str]:
    for expected, event in enumerate(events):
        if event.get("n") != expected:
            yield f"event {event.get('n')} of its transcript stands where {expected} should"
            return


def _ending(events: Events, outcome: CellOutcome) -> Iterator[str]:
    if isinstance(outcome.end, Void) and outcome.end.cause == "interrupted":
        return
    last = events[-1] if events else {}
    if last.get("event") == "end" and _by_its_source(events, outcome):
        return
    if last.get("event") != "end" or last.get("kind") != outcome.end.kind:
        told = last.get("kind") if last.get("event") == "end" else "nothing"
        yield f"it ended {outcome.end.kind}, and its transcript ends with {told}"


def _by_its_source(events: Events, outcome: CellOutcome) -> bool:
    """Whether a cell that mirrors another, and was done before it, has the other's end in the place of its own."""
    end = outcome.end
    copies = any(event.get("event") == "mirror" and event["role"] == "copied" for event in events)
    return copies and (isinstance(end, Refused) or (isinstance(end, Void) and end.cause == MirrorLost.cause))


def _rounds(events: Events, outcome: CellOutcome, run: AuditedRun) -> Iterator[str]:
    begun = [event for event in events if event.get("event") == "round"]
    if not begun:
        return
    numbers, of = [event["round"] for event in begun], begun[0]["rounds"]
    if numbers != list(range(1, len(begun) + 1)) or any(event["rounds"] != of for event in begun):
        yield f"its rounds are {numbers} of {of}: expected 1, 2, ... without a gap"
        return
    extracted = [event["round"] for event in events if event.get("event") == "extraction"]
    over = numbers if isinstance(outcome.end, Declared) else numbers[:-1]
    if extracted[: len(over)] != over or len(extracted) > len(numbers):
        yield f"of its {len(over)} rounds that are over, {len(extracted)} have what was extracted"
    if isinstance(outcome.end, Declared) and len(numbers) < of and not _done_early(events, numbers[-1], run):
        yield f"it declared itself done after round {numbers[-1]} of {of}, which the public tests did not accept"
    yield from _mirrored(events)


def _done_early(events: Events, number: int, run: AuditedRun) -> bool:
    """Whether a seat may be done before its last round: a candidate was accepted, or what it mirrors had no more."""
    copies = any(event.get("event") == "mirror" and event["role"] == "copied" for event in events)
    return copies or _accepted(events, number, run)


def _accepted(events: Events, number: int, run: AuditedRun) -> bool:
    stops = (run.pin("seat options") or {}).get("stop_on_pass", False)
    return bool(stops) and any(
        event.get("event") == "public" and event["round"] == number and event["accepted"] for event in events
    )


def _mirrored(events: Events) -> Iterator[str]:
    """What a round says of its prompt and its code, against what was sent and what was kept."""
    waiting: Mapping[str, Any] | None = None
    for event in events:
        match event.get("event"):
            case "round":
                waiting = event
            case "request" if waiting is not None:
                sent = event["messages"][-1]["content"] if event["messages"] else ""
                if digest_bytes(sent.encode()) != waiting["prompt_sha256"]:
                    yield f"the request of round {waiting['round']} has another prompt than the round names"
                waiting = None
            case "extraction" if not event["over_the_cap"]:
                if digest_bytes(event["code"].encode()) != event["code_sha256"]:
                    yield f"the code of round {event['round']} has another SHA-256 than it says"
            case _:
                pass


class Seeds(Invariant):
    """Every call was drawn with a seed of its own cell, in the registered namespace."""

    name = "seeds"
    says = (
        "each seed is the registered function of namespace, cell and call, each payload says so, and no two answered "
        "calls of a try share one"
    )

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._namespace = run.experiment.seat.seed_namespace
        self._drawn = array("Q")

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        outcome = self.run.outcome(entry)
        events = None if outcome is None else self.run.events(entry, outcome)
        if outcome is None or events is None:
            return
        book = SeedBook(self._namespace, str(outcome.cell))
        for what in (*_payloads(events, book), *self._requests(events, book, outcome)):
            yield self.found(line_of(entry), f"{outcome.cell}, try {outcome.attempt}: {what}")

    def _requests(self, events: Events, book: SeedBook, outcome: CellOutcome) -> Iterator[str]:
        asked = {event["call"]: event["seed"] for event in events if event.get("event") == "request"}
        answered = [event["call"] for event in events if event.get("event") == "completion"]
        possible = {book.seed(call) for call in range(max(_ROOM, len(asked) + 1))}
        for call, drawn in asked.items():
            if drawn not in possible:
                yield f"call {call} has seed {drawn}, which is none of its cell's in namespace {self._namespace!r}"
        drawn_by = [asked[call] for call in answered if call in asked]
        doubled = sorted({drawn for drawn in drawn_by if drawn_by.count(drawn) > 1})
        if doubled:
            yield f"seed {doubled[0]} was used for {drawn_by.count(doubled[0])} answered calls"
        if outcome.attempt == 1:  # a further try repeats the seeds of the first
            self._drawn.extend(dict.fromkeys(drawn_by))

    def ended(self) -> Iterable[Finding]:
        """Seeds are 32 bits wide: two payloads may have one by chance, and then only a figure is worth it."""
        shared = sum(one == other for one, other in pairwise(sorted(self._drawn)))
        self.counts["seeds that two payloads share by chance"] += shared
        return ()


def _payloads(events: Events, book: SeedBook) -> Iterator[str]:
    for event in events:
        if event.get("event") != "round":
            continue
        payload, drawn = event["seed_payload"], event["seed"]
        if payload != book.payload(event["round"]):
            yield f"round {event['round']} drew by {payload!r}: expected {book.payload(event['round'])!r}"
        elif drawn != seed(payload):
            yield f"round {event['round']} has seed {drawn}: its payload gives {seed(payload)}"
