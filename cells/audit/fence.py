"""Invariants of what was proven before anything was scored: the fence's receipts, and the referee's controls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cells.audit.findings import AuditedRun, Finding, Invariant, line_of
from cells.suite_word import counting
from fences.gate import refusals
from fences.policy import FencePolicy
from fences.receipt import receipt_from_json
from fences.rows import rows_from_json
from harness.canonical import digest_json
from harness.record import Entry
from harness.values import Declared, Halt

__all__ = ["ControlsHeld", "FenceReceipts"]

_LAYERS = ("walls", "tool rules", "gateway")
_PROBE = "plugin probes/"


class FenceReceipts(Invariant):
    """Every session was probed for the very fence that it played behind."""

    name = "fence-receipts"
    says = (
        "before a session's first try its probe table holds, for the registered policy, walls, image, code and probes, "
        "on the session's own engine and machine; so do the tables of images that exhibits are judged in"
    )

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        experiment = run.experiment
        self._policy = FencePolicy.from_mapping(experiment.fence, experiment.workspace.limits.model_dump())
        self._session: Mapping[str, Any] = {}
        self._probed = self._told = False
        self._judging: set[str] = set()

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        match entry.kind:
            case "session.started":
                self._session, self._probed, self._told, self._judging = entry.body, False, False, set()
            case "fence.probed":
                self._probed = True
                pinned = (self.run.pin("image") or {}).get("digest")
                yield from self._weigh(entry, image=pinned)
            case "judging.probed":
                yield from self._judging_image(entry)
            case "cell.started" if not self._told:
                self._told = True
                yield from self._before_the_first(entry)
            case _:
                pass

    def _before_the_first(self, entry: Entry) -> Iterable[Finding]:
        if not self._probed:
            yield self.found(line_of(entry), "a try starts in a session whose fence was not probed")
        for name, pin in self.run.registration.pins.items():
            if name.startswith("judging image ") and pin["digest"] not in self._judging:
                yield self.found(line_of(entry), f"a try starts, and {name} was not probed in this session")

    def _judging_image(self, entry: Entry) -> Iterable[Finding]:
        pins = self.run.registration.pins
        known = {pin["digest"] for name, pin in pins.items() if name.startswith("judging image ")}
        image = (entry.body.get("receipt") or {}).get("image")
        self._judging.add(str(image))
        if image not in known:
            yield self.found(line_of(entry), f"image {image} was probed: no judging image is pinned by that digest")
        else:
            yield from self._weigh(entry, image=image, judging=True)

    def _weigh(self, entry: Entry, *, image: str | None, judging: bool = False) -> Iterable[Finding]:
        where = line_of(entry)
        try:
            receipt, rows = receipt_from_json(entry.body["receipt"]), rows_from_json(entry.body["rows"])
        except (KeyError, TypeError, ValueError) as error:
            yield self.found(where, f"it is no probe table: {str(error).splitlines()[0]}")
            return
        if entry.body.get("receipt_digest") != receipt.digest:
            yield self.found(where, f"its receipt has digest {receipt.digest}: it says {entry.body['receipt_digest']}")
        expected = self._expected(image, judging=judging)
        said = receipt.to_json()
        for part, value in expected.items():
            if said[part] != value:
                yield self.found(where, f"its {part} is {said[part]}: the run's is {value}")
        if digest_json(_table(entry.body)) != entry.body.get("digest"):
            yield self.found(where, "its digest is not that of its receipt, rows and date")
        names = [name.removeprefix(_PROBE) for name in self.run.registration.pins if name.startswith(_PROBE)]
        for fault in refusals(rows, self._policy, probes=names, taken_for=receipt, now=receipt):
            yield self.found(where, fault)

    def _expected(self, image: str | None, *, judging: bool) -> dict[str, object]:
        pins, session = self.run.registration.pins, self._session
        expected: dict[str, object] = {
            "policy": pins.get("policy"),
            "walls": digest_json({name: pins.get(name) for name in _LAYERS}),
            "image": image,
            "backend": self.run.experiment.workspace.backend,
            "engine": session.get("engine"),
            "guarantees": session.get("guarantees"),
            "node": session.get("node"),
            "code": (pins.get("code") or {}).get("sha256"),
        }
        if judging:  # its walls name another image, of which no layer is pinned
            del expected["walls"]
        return expected


def _table(body: Mapping[str, Any]) -> dict[str, Any]:
    """What the digest of a qualification is taken over."""
    from fences.qualification import SCHEMA

    return {"schema": SCHEMA, **{name: body.get(name) for name in ("receipt", "rows", "taken_at")}}


class ControlsHeld(Invariant):
    """Nobody is judged by a referee that was not seen to say yes and no."""

    name = "controls-held"
    says = (
        "before a task's first try the referee accepted its reference and rejected its empty exhibit, in this record, "
        "and its suite was not seen there not to hold"
    )

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._held: dict[str, str | None] = {}
        self._suites: dict[str, dict[str, Any]] = {}
        self._before: dict[str, bool] = {}

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        if entry.kind == "control.judged":
            self._held[str(entry.body.get("task"))] = _why_not(entry.body.get("rows") or [])
        elif entry.kind == "suite.characterised":
            task = str(entry.body.get("task"))
            self._suites[task] = counting(self._suites.get(task), dict(entry.body))
        outcome = self.run.outcome(entry)
        if outcome is None or not isinstance(outcome.end, (Declared, Halt)):
            return
        if outcome.verdict is None and outcome.would_be is None:
            return
        task = f"{outcome.cell.benchmark}/{outcome.cell.task}"
        why = self._held.get(task, "no control of its task is in the record before it")
        suite = self._suites.get(task)
        if why is None and suite is not None and not suite["holds"]:
            why = f"the suite of its task does not hold: {'; '.join(map(str, suite['why']))}"
        if why is not None and not self._before.setdefault(task, False):
            self._before[task] = True
            yield self.found(line_of(entry), f"{outcome.cell} was judged: {why}")


def _why_not(rows: Iterable[Mapping[str, Any]]) -> str | None:
    """Why the controls of a task do not vouch for its referee, None if they do."""
    found = {row["name"]: row for row in rows}
    for name in ("reference", "empty"):
        if name not in found:
            return f"its task's control {name!r} was not judged"
    for name, row in found.items():
        if not row["held"] or row["standing"] != ("accepted" if name == "reference" else "rejected"):
            return f"control {name!r} of its task was {row['reading']}"
    return None
