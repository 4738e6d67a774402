"""Invariants of promotions: an effect goes to one confirmation, both ends say the same, and no output goes with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cells.audit.findings import AuditedRun, Events, Finding, Invariant, line_of
from cells.audit.reuse import calls_by_seed, tries_of
from cells.boards import boards
from cells.plan import read_run
from cells.promotion.confirming import confirms_of, link_faults
from cells.promotion.effect import effect_of
from cells.promotion.links import KIND, PIN, confirmations_beside, stands_in
from cells.promotion.promoted import Promoted, promoted_of, read_promotion
from cells.readings import Scoreboard, scoreboard_to_json
from harness.canonical import plain
from harness.errors import ProctorError
from harness.record import Entry
from harness.seeds import SeedBook
from harness.transcript import transcript_path

__all__ = ["DiscoveryApart", "Promotions"]


class Promotions(Invariant):
    """A promotion says what the record says, and the confirmation is what it says."""

    name = "promotions"
    says = (
        "promotions are numbered 1, 2, ..., no effect is promoted twice, each has the figures that the record gives, "
        "and a confirmation fits the promotion that it pins, which stands in its discovery where that is at hand"
    )

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._made: list[Promoted] = []
        self._number = 0

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        if entry.kind != KIND:
            return
        self._number += 1
        self.counts["promotions"] += 1
        try:
            found = promoted_of(entry)
        except ValueError as error:
            yield self.found(line_of(entry), f"promotion {self._number} is none: {str(error).splitlines()[0]}")
            return
        for what in self._faults(found):
            yield self.found(line_of(entry), f"promotion {self._number}: {what}")
        self._made.append(found)

    def _faults(self, found: Promoted) -> Iterator[str]:
        said, registration = found.content, self.run.registration
        if said.number != self._number:
            yield f"it calls itself number {said.number}"
        if (said.discovery, said.registration) != (registration.id, registration.digest):
            yield f"it is of {said.discovery} ({said.registration}): this is {registration.id} ({registration.digest})"
        if said.head != f"{found.entry.seq - 1}:{found.entry.prev}":
            yield f"it was made on head {said.head}, and hangs on {found.entry.seq - 1}:{found.entry.prev}"
        if said.effect != effect_of(registration, said.effect.contrast):
            yield f"{said.effect.contrast!r} is registered as another effect"
        for earlier in self._made:
            if earlier.content.effect.digest == said.effect.digest:
                yield f"its effect was promoted already, by promotion {earlier.content.number}"

    def ended(self) -> Iterable[Finding]:
        """The whole; see `Invariant`."""
        if self._made:
            yield from self._figures()
            yield from self._confirmations()
        yield from self._confirms()

    def _figures(self) -> Iterator[Finding]:
        """What was told of the discovery is what its record gives: nothing was played in between, and nothing since."""
        try:
            found = boards(self.run.registration, read_run(self.run.folder)[0], head=None)
        except ProctorError as error:
            yield self.found("scoreboard", f"no figure can be held against it: {error}")
            return
        for one in self._made:
            told = one.content.figures.reading
            now = _reading(found.frozen, one.content.effect.contrast)
            differ = [key for key in sorted({*told} & {*now}) if key != "qualifiers" and told[key] != now[key]]
            if differ:
                what = f"promotion {one.content.number}: {', '.join(differ)} are not what the record gives"
                yield self.found(line_of(one.entry), what)

    def _confirmations(self) -> Iterator[Finding]:
        beside = list(confirmations_beside(self.run.folder))
        for one in self._made:
            played = [
                each.id for each in beside if each.played and one.line in (pin["line"] for pin in each.pins.values())
            ]
            self.counts["promotions whose confirmation is not at hand, or not played yet"] += not played
            if len(played) > 1:
                what = f"promotion {one.content.number} was played {len(played)} times: {', '.join(played)}"
                yield self.found(line_of(one.entry), what)

    def _confirms(self) -> Iterator[Finding]:
        """The other end: what this registration confirms, by the promotions that it pins."""
        for entry in confirms_of(self.run.registration):
            name = f"{PIN}{entry.promotion}"
            pin = self.run.pin(name)
            if pin is None:
                yield self.found(name, f"it is not pinned, and {entry.contrast!r} is registered to confirm by it")
                continue
            try:
                found = read_promotion(self.run.store.get(pin["sha256"]), entry.promotion)
            except ProctorError as error:
                yield self.found(name, str(error))
                continue
            if (pin["discovery"], pin["line"]) != (found.content.discovery, found.line):
                yield self.found(name, f"it is line {found.line} of {found.content.discovery}: the pin says otherwise")
            home = self.run.folder.resolve().parent / found.content.discovery
            self.counts["discoveries that are not at hand"] += not home.exists()
            for what in (*link_faults(entry, found, self.run.registration), *stands_in(home, found.entry)):
                yield self.found(name, what)


def _reading(board: Scoreboard, contrast: str) -> Mapping[str, Any]:
    rows = scoreboard_to_json(board)["contrasts"]
    found: Mapping[str, Any] = plain(next((row for row in rows if row["name"] == contrast), {}))
    return found


class DiscoveryApart(Invariant):
    """
    A confirmation has outputs of its own.

    Its seeds are of another namespace, so by an equal payload nothing can be had twice. A model that answers an equal
    prompt alike whatever the seed is no fault, and a reader should know how often it did.
    """

    name = "discovery-apart"
    says = (
        "no call of a confirmation was drawn by a seed payload of its discovery, or has the output that the discovery "
        "got with an equal seed and another prompt; an equal output to an equal prompt is only counted"
    )

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._spaces: dict[str, str] = {}
        for entry in confirms_of(run.registration):
            pin = run.pin(f"{PIN}{entry.promotion}")
            try:
                found = read_promotion(run.store.get(pin["sha256"]), entry.promotion)
            except (ProctorError, TypeError, KeyError):  # `promotions` reports it
                continue
            self._spaces[found.content.discovery] = found.content.seed_namespace

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        outcome = self.run.outcome(entry) if self._spaces else None
        events = () if outcome is None else self.run.events(entry, outcome) or ()
        if outcome is None or not events:
            return
        where = f"{line_of(entry)}, {outcome.cell}"
        for discovery, namespace in self._spaces.items():
            for what in _foreign_payloads(events, SeedBook(namespace, str(outcome.cell))):
                yield self.found(where, f"{what} of {discovery}")
            first = transcript_path(self.run.folder.resolve().parent / discovery, outcome.cell, 1)
            for theirs in tries_of(first):
                yield from self._compare(where, discovery, events, theirs)

    def _compare(self, where: str, discovery: str, mine: Events, theirs: Events) -> Iterator[Finding]:
        ours, others = calls_by_seed(mine), calls_by_seed(theirs)
        for drawn in ours.keys() & others.keys():
            (prompt, output, _at), (their_prompt, their_output, _their_at) = ours[drawn], others[drawn]
            if output == their_output and prompt != their_prompt:
                yield self.found(where, f"its output with seed {drawn} is that of {discovery}, to another prompt")
        # Seeds differ, so calls of the same place are held together: the n-th answered call of the same cell.
        for (prompt, output, _), (their_prompt, their_output, _) in zip(ours.values(), others.values(), strict=False):
            self.counts["calls held against the discovery's of the same cell and place"] += 1
            if (prompt, output) == (their_prompt, their_output):
                self.counts["outputs equal to the discovery's, to an equal prompt"] += 1


def _foreign_payloads(events: Events, book: SeedBook) -> Iterator[str]:
    """The rounds and requests of one try that were drawn as the discovery draws for the same cell and call."""
    for event in events:
        match event.get("event"):
            case "round" if event["seed_payload"] == book.payload(event["round"]):
                yield f"round {event['round']} was drawn by the payload {event['seed_payload']!r}"
            case "request" if event["seed"] == book.seed(event["call"]):
                yield f"call {event['call']} was drawn by the seed {event['seed']}"
            case _:
                pass
