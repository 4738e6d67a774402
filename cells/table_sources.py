"""What tables are made of: each reading of each run, and each reading of a declared set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cells.amended import amended_plan
from cells.boards import boards
from cells.plan import read_run
from cells.settled import settle
from cells.table_rows import TableSource
from harness.registration import load_registration

if TYPE_CHECKING:
    from cells.declared.side_by_side import SideBySide

__all__ = ["declared_sources", "run_sources"]


def run_sources(folder: Path) -> Iterator[TableSource]:
    """The reading `frozen` of a run and, if it was amended, the reading `amended` beside it."""
    registration = load_registration(folder)
    progress, head = read_run(folder)
    found = boards(registration, progress, head=None if head is None else str(head))
    plan = amended_plan(registration, found.amendments)
    outcomes, added = progress.outcomes(), set(plan.added)
    yield TableSource(
        source=registration.id,
        reading="frozen",
        board=found.frozen,
        settled=settle(registration.cells, [outcome for outcome in outcomes if outcome.cell not in added]),
        probes=[
            {**row, "source": registration.id}
            for row in (progress.fences["rows"] if progress.fences is not None else ())
        ],
    )
    if found.amended is not None:
        inside = set(plan.cells)
        yield TableSource(
            source=registration.id,
            reading="amended",
            board=found.amended,
            settled=settle(plan.cells, [outcome for outcome in outcomes if outcome.cell in inside]),
        )


def declared_sources(found: SideBySide, name: str) -> Iterator[TableSource]:
    """The readings of a declared set, which is called `name`."""
    for reading in found.readings:
        settled = settle(reading.found.cells, reading.found.outcomes)
        yield TableSource(source=name, reading=reading.name, board=reading.board, settled=settled)
