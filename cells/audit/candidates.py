"""The invariant of samples: each candidate is the code of the reply that it is said to be, and what ships is one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cells.audit.findings import AuditedRun, Finding, Invariant, line_of
from cells.audit.remade import Materials, Round, rounds_of
from cells.rulings import with_code
from harness.canonical import digest_bytes
from harness.errors import IntegrityError, StorageError
from harness.outcome import CellOutcome
from harness.record import Entry
from harness.seats.extraction import extract_code
from harness.seats.oneshot import Candidate, shipped
from harness.values import CellKey, Declared

__all__ = ["CandidatesHold"]

_ESCAPED = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}|\\u[dD][c-fC-F][0-9a-fA-F]{2}")


class CandidatesHold(Invariant):
    """From the pool and the replies to the prompts and the exhibit, every sample is the one that it is called."""

    name = "candidates-hold"
    says = (
        "the code of each round is what the extraction rule finds in its reply; its incumbent is the best of the "
        "unit's pool and the rounds before; its prompt is what the pinned arm renders of that, with nothing before "
        "it but the registered system message; what a declared end left is the candidate that ships; where each is "
        "judged that the public tests accepted, those were judged, each with its own code, and no other"
    )

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._made = Materials(run)

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        if self.run.experiment.seat.kind != "oneshot":
            return  # another seat that works in rounds has rules of its own for what is best and what ships
        outcome = self.run.outcome(entry)
        events = None if outcome is None else self.run.events(entry, outcome)
        if outcome is None or events is None or not any(event.get("event") == "round" for event in events):
            return
        try:
            told = list(rounds_of(events, self._made.pool(outcome.cell)))
            faults = [
                *self._replies(outcome.cell, told),
                *self._prompts(outcome.cell, told),
                *self._left(outcome, told),
                *self._judged(outcome, told),
            ]
        except (IntegrityError, StorageError):
            return  # a blob that is gone or damaged is what `files` reports
        for what in faults:
            yield self.found(line_of(entry), f"{outcome.cell}, try {outcome.attempt}: {what}")

    def _replies(self, cell: CellKey, rounds: list[Round]) -> Iterator[str]:
        """What was extracted, against the reply; and the incumbent, against the candidates before it."""
        entry_point = self._made.task(cell).details.get("entry_point")
        for told in rounds:
            kept, reply = told.extracted, told.reply
            if kept is not None and reply is None:
                yield f"round {told.number} has code, and no reply that it is of"
            elif kept is not None and reply is not None:
                found = {extract_code(text, entry_point).code for text in (reply, _ESCAPED.sub("\ufffd", reply))}
                if kept["code_sha256"] not in {digest_bytes(code.encode()) for code in found}:
                    yield f"the code of round {told.number} is not what the extraction rule finds in its reply"
            previous = None if told.previous is None or told.best is None else told.best.round
            if told.event["previous_round"] != previous:
                yield (
                    f"round {told.number} shows the candidate of round {told.event['previous_round']}: its best before "
                    f"is that of {previous}"
                )

    def _prompts(self, cell: CellKey, rounds: list[Round]) -> Iterator[str]:
        """What was sent, against what the arm makes of the task and the candidates."""
        system = (self.run.pin("seat options") or {}).get("system")
        for told in rounds:
            if told.sent is not None and told.head != (() if system is None else (("system", system),)):
                yield f"before the prompt of round {told.number} stands what is not registered: {told.head!r:.200}"
        if cell.arm in self._made.sources:
            return  # its prompts are made of another's rounds: `mirrors-hold` reads them
        if not self._made.is_pinned(cell.arm):
            self.counts["tries whose arm is another here, so that no prompt was rendered again"] += 1
            return
        arm = self._made.arms[cell.arm]
        for told in rounds:
            if told.sent is not None and arm.render(self._made.view(cell, told)) != told.sent:
                yield f"the prompt of round {told.number} is not what arm {cell.arm!r} makes of its incumbent"

    def _left(self, outcome: CellOutcome, rounds: list[Round]) -> Iterator[str]:
        """The file that was judged, against the candidate that ships."""
        file = (self.run.pin("seat options") or {}).get("file")
        if outcome.exhibit is None or file is None or not isinstance(outcome.end, Declared):
            return
        files = self.run.store.get_tree(outcome.exhibit).files
        found = files[file].data if file in files else None
        kept = shipped(_candidates(rounds))
        there = self._made.task(outcome.cell).environment.files.get(file)
        wanted = kept.code.encode() if kept is not None else b"" if there is None else there.data
        if found != wanted:
            yield (
                f"what was judged as {file!r} is not the candidate of any round that ships"
                if kept is None
                else (f"what was judged as {file!r} is not the candidate of round {kept.round}, which ships")
            )

    def _judged(self, outcome: CellOutcome, rounds: list[Round]) -> Iterator[str]:
        """The candidates that were judged, against those that the public tests accepted, and each one's tree."""
        file = (self.run.pin("seat options") or {}).get("file")
        if (outcome.verdict is None and outcome.would_be is None) or outcome.exhibit is None or file is None:
            return
        every = self.run.experiment.referee.judges == "any-accepted"
        wanted = {one.round: one.code for one in _candidates(rounds) if every and one.accepted}
        if [one.round for one in outcome.candidates] != list(wanted):
            yield (
                f"judged are the candidates of rounds {[one.round for one in outcome.candidates]}: expected those of "
                f"{list(wanted)}, by the public tests and the registration"
            )
        left = self.run.store.get_tree(outcome.exhibit)
        for one in outcome.candidates:
            code = wanted.get(one.round)
            if code is None:
                yield f"the transcript has no accepted candidate of round {one.round}, which was judged"
            elif (one.code_sha256, one.exhibit) != (digest_bytes(code.encode()), with_code(left, file, code).digest):
                yield f"what was judged as the candidate of round {one.round} is another one"


def _candidates(rounds: list[Round]) -> list[Candidate]:
    """The candidates of all rounds, without those of the pool."""
    if not rounds:
        return []
    return [candidate for candidate in rounds[-1].after if candidate.round > 0]
