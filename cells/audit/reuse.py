"""The invariant that no output is an earlier run's: the same seed drawn for another prompt must not say the same."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from cells.audit.findings import AuditedRun, Events, Finding, Invariant, line_of
from harness.canonical import digest_json
from harness.errors import IntegrityError
from harness.record import Entry
from harness.transcript import read_transcript, transcript_path

__all__ = ["Calls", "NoReuse", "calls_by_seed", "tries_of"]


class NoReuse(Invariant):
    """Nothing of an earlier run stands in this one."""

    name = "no-reuse"
    says = (
        "no call has the output that an earlier run in the same folder of runs got with an equal seed and another "
        "prompt; an equal output to an equal prompt is only counted"
    )

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._others = tuple(_of_this_namespace(run))
        self.counts["other runs with this seed namespace"] += len(self._others)

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        outcome = self.run.outcome(entry)
        if outcome is None or not self._others:
            return
        mine = calls_by_seed(self.run.events(entry, outcome) or ())
        for folder in self._others if mine else ():
            for theirs in map(calls_by_seed, tries_of(transcript_path(folder, outcome.cell, 1))):
                yield from self._compare(f"{line_of(entry)}, {outcome.cell}", folder.name, mine, theirs)

    def _compare(self, where: str, other: str, mine: Calls, theirs: Calls) -> Iterator[Finding]:
        for drawn, (prompt, output, at) in mine.items():
            if drawn not in theirs:
                continue
            their_prompt, their_output, their_at = theirs[drawn]
            if their_output != output or their_at >= at:
                continue
            if their_prompt == prompt:
                self.counts["outputs equal to an earlier run's, to an equal prompt with an equal seed"] += 1
            else:
                yield self.found(where, f"its output with seed {drawn} is that of run {other}, to another prompt")


Calls: TypeAlias = Mapping[int, tuple[str, str, str]]
"""By seed: digests of the prompt and of the output, and when it was answered."""


def _of_this_namespace(run: AuditedRun) -> Iterator[Path]:
    """The other runs beside this one whose seeds are drawn from the same namespace: no other could have equal ones."""
    for path in sorted(run.folder.parent.glob("*/registration.json")):
        if path.parent.resolve() != run.folder.resolve() and _namespace(path) == run.experiment.seat.seed_namespace:
            yield path.parent


def _namespace(path: Path) -> object:
    """The seed namespace of a registration; None for a file that is none, of which `proctor verify` says more."""
    try:
        return json.loads(path.read_bytes())["experiment"]["seat"]["seed_namespace"]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None


def tries_of(first: Path) -> Iterator[Events]:
    """The transcript of each try of one cell in another run; `first` is where that of its first try is."""
    for path in sorted(first.parent.glob(first.name.removesuffix(".1.jsonl") + ".*.jsonl")):
        try:
            yield tuple(read_transcript(path))
        except (IntegrityError, OSError):
            continue


def calls_by_seed(events: Events) -> Calls:
    """The answered calls of a transcript by their seed, in the order that they were answered in."""
    asked: dict[int, Mapping[str, Any]] = {}
    found: dict[int, tuple[str, str, str]] = {}
    for event in events:
        if event.get("event") == "request":
            asked[event["call"]] = event
        elif event.get("event") == "completion" and event["call"] in asked:
            request = asked[event["call"]]
            output = digest_json([event.get("text"), event.get("tool_calls")])
            found[request["seed"]] = (digest_json(request.get("messages")), output, str(event.get("at")))
    return found
