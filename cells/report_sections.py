"""The sections that tell of a registration, of what was checked before a cell was played, and of what gates refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from cells.audit.kept import audit_lines
from cells.figures import UNDEFINED
from cells.gate_trips import GateTrips
from cells.population import Flow
from cells.report_document import Facts, Part, Prose
from cells.report_facts import ReportFacts, amendment_facts
from cells.score_tables import Sheet
from harness.repository import dirt_text

__all__ = [
    "PROBE_COLUMNS",
    "audit_parts",
    "control_parts",
    "fence_parts",
    "gate_parts",
    "plan_parts",
    "registration_parts",
    "rows_sheet",
    "written",
]

PROBE_COLUMNS = ("probe", "language", "expected", "finding_up", "evidence_up", "weakening", "finding_down", "holds")
"""What is shown of a probe's row, by its names in the record."""

BY_TASK = ("task ", "suite ")
"""Pins of which there is one a task: they are counted, and stand in the registration."""


def written(value: object) -> str:
    """A value of a record's row: words as they are, lists joined, the rest as JSON; None is undefined."""
    if value is None:
        return UNDEFINED
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(written, value)) or "none"
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def rows_sheet(title: str, rows: Sequence[Mapping[str, Any]]) -> Sheet:
    """Rows of one kind, under the names that their fields have in the record."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return Sheet(
        title=title,
        header=tuple(column.replace("_", " ") for column in columns),
        rows=tuple(tuple(written(row.get(column)) for column in columns) for row in rows),
        left=len(columns),
    )


def registration_parts(facts: ReportFacts) -> list[Part]:
    """What was frozen, and what pins it: everything but the tasks by name, which are counted."""
    registration = facts.registration
    lines = [f"id {registration.get('id', facts.board.registration_id)}"]
    for name, label in (("digest", "digest of its bytes"), ("frozen_at", "frozen at"), ("source", "from")):
        if registration.get(name) is not None:
            lines.append(f"{label} {registration[name]}")
    lines += _repository(registration.get("repository"))
    pins = registration.get("pins", {})
    shown = {name: pin for name, pin in pins.items() if not name.startswith(BY_TASK)}
    if len(shown) < len(pins):
        lines.append(f"tasks and suites pinned: {facts.counts['tasks_and_suites_pinned']}, each in the registration")
    parts: list[Part] = [Facts(lines=tuple(lines))]
    if shown:
        rows = tuple((name, _pin_text(pin)) for name, pin in sorted(shown.items()))
        parts.append(Sheet(title="What was pinned", header=("pin", "digest or facts"), rows=rows, left=2))
    amendments = [amendment_facts(item) for item in facts.amendments]
    return [*parts, rows_sheet("Amendments", amendments) if amendments else Prose(text="There is no amendment.")]


def _repository(found: Mapping[str, Any] | None) -> list[str]:
    """The commit that the experiment file stood in, and what of the tree was not committed."""
    if found is None:
        return ["git commit: none, the experiment file stood in no repository"]
    commit = [f"git commit {found['commit']}"] if found.get("commit") else []
    return [*commit, *dirt_text(found)]


def audit_parts(facts: ReportFacts) -> list[Part]:
    """The verdicts of the audits that the record keeps: none of them takes the place of another, or of a test's."""
    return [
        Prose(text="The audit's verdict is of the record, and no part of any test's."),
        Facts(lines=tuple(audit_lines(facts.audits))),
    ]


def _pin_text(pin: object) -> str:
    """A pin's digest where it has one, else all of it."""
    if isinstance(pin, Mapping):
        found = pin.get("sha256") or pin.get("digest")
        return written(found) if found else ", ".join(f"{name} {written(item)}" for name, item in sorted(pin.items()))
    return written(pin)


def fence_parts(facts: ReportFacts) -> list[Part]:
    """The probes, each with the fence up and down."""
    if not facts.probes:
        return [Prose(text="No probe is in the record.")]
    known = [{**row, "holds": "not measured" if row.get("holds") is None else row["holds"]} for row in facts.probes]
    counts = facts.counts
    told = (
        f"{counts['probes_that_hold']} of {counts['probes']} rows hold, {counts['probes_that_do_not_hold']} do not, "
        f"{counts['probes_not_measured']} were not measured."
    )
    shown = [{column: row.get(column) for column in PROBE_COLUMNS} for row in known]
    return [Prose(text=told), rows_sheet("Probes of the fence", shown)]


def control_parts(facts: ReportFacts) -> list[Part]:
    """How many tasks each control was judged on, by reading; those that did not hold are named one by one."""
    if not facts.controls:
        return [Prose(text="No control is in the record.")]
    kinds = Counter((row["name"], row["reading"], row["standing"], row["held"]) for row in facts.controls)
    told = f"{facts.counts['controls_that_hold']} of {facts.counts['controls']} controls hold."
    sheet = Sheet(
        title="Controls of the referee",
        header=("control", "reading", "standing", "holds", "tasks"),
        rows=tuple((*(written(part) for part in kind), str(tasks)) for kind, tasks in kinds.items()),
        left=4,
    )
    failed = [row for row in facts.controls if not row["held"]]
    return [Prose(text=told), sheet, *([rows_sheet("Controls that do not hold", failed)] if failed else [])]


def plan_parts(facts: ReportFacts) -> list[Part]:
    """Facts about the run, and the cells that a gate did not let be built; they are no part of the declared set."""
    lines = tuple(f"{name.replace('_', ' ')}: {written(value)}" for name, value in facts.plan.items())
    refused = facts.registration.get("refused", ())
    shown = [*_flow(facts), *([rows_sheet("Cells refused at freeze", refused)] if refused else [])]
    return [Facts(lines=lines), *shown]


def _flow(facts: ReportFacts) -> list[Part]:
    """How the units came about, step by step, where a pool chose them."""
    population = facts.registration.get("outlook", {}).get("population")
    if population is None:
        return []
    whose = "all units" if population["select"] == "all" else f"the units that are {population['select']}"
    steps = [item.name for item in fields(Flow)]  # the record's own order is that of letters
    flow = rows_sheet("Population", [{name: row[name] for name in steps if name in row} for row in population["flow"]])
    return [replace(flow, left=2, notes=(f"Sample {population['sample']!r} of {whose}.",))]


def gate_parts(gates: GateTrips) -> list[Part]:
    """What gates refused, by arm; the readings without the gate are a diagnostic, and in no rate."""
    if not gates.counts:
        return [Prose(text="No gate refused anything.")]
    return [
        Sheet(
            title="What gates refused, by arm",
            header=("gate", "arm", "refused", "of", "readings without the gate"),
            rows=tuple(_gate_rows(gates)),
            left=2,
            notes=gates.unequal,
        )
    ]


def _gate_rows(gates: GateTrips) -> Iterable[tuple[str, ...]]:
    for count in gates.counts:
        here = (refusal for refusal in gates.refusals if (refusal.gate, refusal.arm) == (count.gate, count.arm))
        read = Counter(refusal.would_be for refusal in here)
        would_be = ", ".join(f"{reading} {number}" for reading, number in sorted(read.items())) or "none"
        yield count.gate, count.arm, str(count.trips), str(count.of), would_be
