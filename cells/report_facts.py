"""All that a report is made of, as one value and as JSON: a figure that is not in here can't be in the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cells.amended import Amended, amended_plan
from cells.boards import Boards, boards
from cells.cell_lines import CellLine, cell_lines
from cells.cost_marks import cost_marks
from cells.figures import UNDEFINED
from cells.foretold import Foretold, foretold, foretold_to_json
from cells.gate_trips import GateTrips, read_trips
from cells.plan import Progress, read_run
from cells.promotion.facts import confirmed_facts, promoted_facts
from cells.readings import Scoreboard, scoreboard_to_json
from cells.revision_reading import RevisionReading, read_revisions
from cells.revision_view import revisions_to_json
from cells.settled import Settled, settle
from cells.strata import placer
from cells.unlocks import Unlocks, read_unlocks
from harness.blobs import BlobStore
from harness.experiment import Experiment
from harness.registration import Registration, load_registration
from harness.repository import dirt_text

__all__ = ["ReportFacts", "amendment_facts", "facts_to_json", "run_facts"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportFacts:
    """
    What a report is made of.

    `registration` is the content of `registration.json`, with its `digest`. `probes` are the rows of the last fence
    probing, as the record keeps them. `controls` are the referee's: each row has `task`, `name`, `reading`, `standing`,
    `held`. `plan` holds facts about the run that stand in no other table, by name; `gates` what was refused, and how it
    would have read; `cells` a line for each declared cell; `unlocks` are empty where no seat worked in rounds,
    `revisions` None where none revised; `foretold` is what became of what was said beforehand, None if nothing was.
    `board`, and with it `cells`, is the reading as it was frozen; `amended` stands beside it where there are
    `amendments`; `audits` are the kept verdicts; `confirms` are the promotions that this run confirms, `promotions`
    those of its own effects.
    """

    registration: Mapping[str, Any]
    board: Scoreboard
    probes: Sequence[Mapping[str, Any]] = ()
    controls: Sequence[Mapping[str, Any]] = ()
    plan: Mapping[str, Any]
    gates: GateTrips
    cells: Sequence[CellLine] = ()
    unlocks: Sequence[Unlocks] = ()
    revisions: RevisionReading | None = None
    foretold: Foretold | None = None
    amended: Scoreboard | None = None
    amendments: Sequence[Amended] = ()
    audits: Sequence[Mapping[str, Any]] = ()
    confirms: Sequence[Mapping[str, Any]] = ()
    promotions: Sequence[Mapping[str, Any]] = ()

    @property
    def counts(self) -> dict[str, Any]:
        """How many rows of each kind there are, where the report says so."""
        marks = cost_marks(self.cells)
        held = Counter(row.get("holds") for row in self.probes)
        pins = self.registration.get("pins", {})
        return {
            "probes": len(self.probes),
            "probes_that_hold": held[True],
            "probes_that_do_not_hold": held[False],
            "probes_not_measured": len(self.probes) - held[True] - held[False],
            "controls": len(self.controls),
            "controls_that_hold": sum(bool(row["held"]) for row in self.controls),
            "amendments": len(self.amendments),
            "audits": len(self.audits),
            "tasks_and_suites_pinned": sum(name.startswith(("task ", "suite ")) for name in pins),
            "cells": len(self.cells),
            "cells_by_cost": {f"{name}, {arm}": len(group) for (name, arm), group in marks.rows.items()},
            "cells_without_cost": marks.unknown,
        }


def facts_to_json(facts: ReportFacts) -> dict[str, Any]:
    """The facts as JSON data."""
    return {
        "registration": dict(facts.registration),
        "scoreboard": scoreboard_to_json(facts.board),
        "probes": [dict(row) for row in facts.probes],
        "controls": [dict(row) for row in facts.controls],
        "plan": dict(facts.plan),
        "gates": asdict(facts.gates),
        "cells": [asdict(cell) for cell in facts.cells],
        "unlocks": [asdict(item) for item in facts.unlocks],
        "revisions": _revision_facts(facts),
        "foretold": None if facts.foretold is None else foretold_to_json(facts.foretold),
        "amended": None if facts.amended is None else scoreboard_to_json(facts.amended),
        "amendments": [amendment_facts(item) for item in facts.amendments],
        "audits": [dict(audit) for audit in facts.audits],
        "confirms": [dict(row) for row in facts.confirms],
        "promotions": [dict(row) for row in facts.promotions],
        "counts": facts.counts,
    }


def amendment_facts(item: Amended) -> dict[str, Any]:
    """What a report says of an amendment, with the checks that gated it, as they were found, and its commit."""
    head = {"number": item.number, "dated": item.dated, "outcomes_before_it": item.outcomes}
    checks = [
        f"{row['name']}: {UNDEFINED if row['value'] is None else format(row['value'], 'g')}" for row in item.checks
    ]
    found = item.repository or {}
    commit = [found.get("commit") or "none", *(dirt_text(found) if found else ())]
    why = {"changes": item.content.changes, "because": item.content.reason}
    return {**head, **why, "checks_that_held": checks, "git_commit": commit}


def run_facts(folder: Path) -> ReportFacts:
    """The facts of the run in `folder`: its record as it was frozen and, where it was amended, as it is now."""
    import json

    registration = load_registration(folder)
    progress, head = read_run(folder)
    found = boards(registration, progress, head=None if head is None else str(head))
    plan = amended_plan(registration, found.amendments)
    added = set(plan.added)
    settled = settle(registration.cells, [outcome for outcome in progress.outcomes() if outcome.cell not in added])
    controls = [
        {"task": body["task"], **row} for _task, body in sorted(progress.controls.items()) for row in body["rows"]
    ]
    return ReportFacts(
        registration={**json.loads(registration.to_bytes()), "digest": registration.digest},
        board=found.frozen,
        amended=found.amended,
        amendments=found.amendments,
        audits=found.audits,
        confirms=confirmed_facts(folder, registration),
        promotions=promoted_facts(folder),
        probes=progress.fences["rows"] if progress.fences is not None else [],
        controls=controls,
        plan=_plan_facts(registration, progress),
        gates=read_trips(registration, progress.outcomes(), {}, BlobStore(folder / "blobs")),
        cells=tuple(cell_lines(registration.id, settled)),
        unlocks=read_unlocks(folder, settled),
        revisions=_revisions(folder, registration, settled),
        foretold=_foretold(registration, found),
    )


def _revision_facts(facts: ReportFacts) -> dict[str, Any] | None:
    """As `proctor revisions --json` has them."""
    final = facts.board.status == "final"
    return None if facts.revisions is None else revisions_to_json(facts.revisions, final=final)


def _revisions(folder: Path, registration: Registration, settled: Settled) -> RevisionReading | None:
    """What revisions did, pairs of one task in one cluster; None of a run of another seat."""
    if registration.experiment["seat"]["kind"] != "revise":
        return None
    return read_revisions(folder, settled, place=placer(("task",), ()))


def _foretold(registration: Registration, found: Boards) -> Foretold | None:
    """What became of what was said of the result, over the frozen reading and the amended one."""
    experiment = Experiment.model_validate(dict(registration.experiment))
    later = any(item.content.predictions for item in found.amendments)
    said = experiment.predictions or experiment.outcomes or experiment.adverse or later
    return foretold(experiment.predictions, found) if said else None


def _plan_facts(registration: Registration, progress: Progress) -> dict[str, Any]:
    """Facts about the run that no other table of the report has."""
    experiment, pins = registration.experiment, registration.pins
    said = registration.outlook.get("cells") or {}
    return {
        "cells that can be built": said.get("buildable"),
        "cells declared": said.get("declared"),
        "sessions": progress.sessions,
        "tries whose end was looked at from outside": _ends(progress),
        "workspace": f"{experiment['workspace']['backend']}, image {_digest(pins, 'image') or UNDEFINED}",
        "seat": experiment["seat"]["kind"],
        "referee": experiment["referee"]["name"],
        "candidates of a cell that are judged": experiment["referee"].get("judges", "shipped"),
        "models": [
            f"{model['name']}: {model['provider']} {model['model']}, "
            f"digest {_digest(pins, 'model ' + model['name']) or 'none given'}"
            for model in experiment["models"]
        ],
        "seed namespace": experiment["seat"]["seed_namespace"],
    }


def _digest(pins: Mapping[str, Any], name: str) -> str | None:
    """The digest of a pin; None of what was not pinned, or has none."""
    found = (pins.get(name) or {}).get("digest")
    return None if found is None else str(found)


def _ends(progress: Progress) -> str:
    """The kill proofs of all tries together; a try without a count is not one that left nothing."""
    tries = progress.outcomes()
    counts = [(outcome.room.get("kill") or {}).get("alive") for outcome in tries]
    known = [count for count in counts if count is not None]
    return f"{len(known)} of {len(tries)}; left alive: {sum(known)} in all"
