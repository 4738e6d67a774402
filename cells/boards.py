"""
The scoreboards of one run: as it was frozen, and beside it, if it was amended, as it stands now.

An amended verdict never takes the frozen one's place: both are made from the same record, and both are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cells.amended import Amended, added_contrasts, amended_analysis, amended_plan, amendments_in
from cells.bulk import in_bulk
from cells.confounds import facts_of_run
from cells.plan import Progress, read_run
from cells.predictions import with_registered
from cells.readings import Scoreboard, score, scoreboard_to_json
from cells.stopping import stop_of
from harness.experiment import Experiment
from harness.registration import Registration, load_registration

__all__ = ["Boards", "boards", "boards_of", "boards_to_json"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Boards:
    """
    `amended` is None while there is no amendment; `in_force` is the board that says what is still to be done. `audits`
    are the bodies of the audits that the record keeps, in order: their verdicts are beside those of the boards.
    """

    frozen: Scoreboard
    amended: Scoreboard | None
    amendments: tuple[Amended, ...]
    audits: tuple[Mapping[str, Any], ...] = ()

    @property
    def in_force(self) -> Scoreboard:
        """The amended board if there is one, else the frozen."""
        return self.amended or self.frozen


@in_bulk()
def boards_of(folder: Path) -> Boards:
    """The scoreboards of a run's record as it is now."""
    progress, head = read_run(folder)
    return boards(load_registration(folder), progress, head=None if head is None else str(head))


def boards(registration: Registration, progress: Progress, *, head: str | None) -> Boards:
    """
    Read one record twice: over the cells that were frozen, and over those in force.

    Outcomes of cells that an amendment added are no part of the frozen reading; outcomes of a task that one withdrew
    are no part of the amended. O(outcomes).
    """
    amendments = amendments_in(progress.amendments)
    experiment = Experiment.model_validate(dict(registration.experiment))
    plan = amended_plan(registration, amendments)
    outcomes, added = progress.outcomes(), set(plan.added)
    frozen = score(
        registration.cells,
        [outcome for outcome in outcomes if outcome.cell not in added],
        # A notice corrects a number that is read: it stands at the frozen number too.
        amended_analysis(experiment.analysis, [_notices_alone(item) for item in amendments]),
        head=head,
        registration_id=registration.id,
        refused=registration.refused,
        not_enforced=progress.not_enforced,
        of_run=facts_of_run(registration),
        stop=stop_of(progress, registration.cells),
    )
    frozen = with_registered(frozen, experiment)
    if not amendments:
        return Boards(frozen=frozen, amended=None, amendments=(), audits=tuple(progress.audits))
    amended = score(
        plan.cells,
        [outcome for outcome in outcomes if f"{outcome.cell.benchmark}/{outcome.cell.task}" not in plan.withdrawn],
        amended_analysis(experiment.analysis, amendments),
        head=head,
        registration_id=registration.id,
        refused=registration.refused,
        added=added_contrasts(amendments),
        not_enforced=progress.not_enforced,
        of_run=facts_of_run(registration),
        stop=stop_of(progress, plan.cells),
    )
    amended = with_registered(replace(amended, withdrawn=plan.withdrawn), experiment)
    return Boards(frozen=frozen, amended=amended, amendments=amendments, audits=tuple(progress.audits))


def boards_to_json(found: Boards) -> dict[str, Any]:
    """The frozen scoreboard as JSON data, with `amended` (null without an amendment), `amendments` and `audits`."""
    return {
        **scoreboard_to_json(found.frozen),
        "amended": None if found.amended is None else scoreboard_to_json(found.amended),
        "audits": [dict(audit) for audit in found.audits],
        "amendments": [
            {
                "number": item.number,
                "dated": item.dated,
                "outcomes": item.outcomes,
                "reason": item.content.reason,
                "changes": item.content.changes,
                "checks": [dict(check) for check in item.checks],
            }
            for item in found.amendments
        ],
    }


def _notices_alone(item: Amended) -> Amended:
    return replace(item, content=item.content.model_copy(update={"ratios": (), "contrasts": ()}))
