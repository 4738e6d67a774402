"""Cells of a run of Proctor's own as cells of a set: several runs may be read together, and none loses its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from cells.confounds import facts_of_run, labels_of
from cells.declared.rows import ForeignCell, ForeignKey, ForeignReading, ForeignSpend
from cells.plan import read_run
from harness.outcome import CellOutcome
from harness.registration import load_registration
from harness.values import Verdict

__all__ = ["as_cell", "recorded_cells"]


def recorded_cells(folder: Path) -> Iterator[ForeignCell]:
    """
    Every try in the record of a run folder. The run is the registration's id, the id is the cell's key as text.

    Raises `IntegrityError` where the record does not verify, `UsageError` where there is no run.
    """
    registration = load_registration(folder)
    of_run = facts_of_run(registration)
    for outcome in read_run(folder)[0].outcomes():
        yield as_cell(registration.id, outcome, labels=labels_of(outcome, of_run))


def as_cell(run: str, outcome: CellOutcome, *, labels: Mapping[str, str] = MappingProxyType({})) -> ForeignCell:
    """One recorded outcome under the name of its run; `labels` are what is known of how it was played."""
    key = outcome.cell
    return ForeignCell(
        cell=ForeignKey(
            run=run,
            id=str(key),
            benchmark=key.benchmark,
            task=key.task,
            arm=key.arm,
            extras=key.extras,
            model=key.model,
            replicate=key.replicate,
        ),
        attempt=outcome.attempt,
        end=outcome.end,
        verdict=_said(outcome.verdict),
        would_be=_said(outcome.would_be),
        spend=ForeignSpend(
            price=outcome.spend.price,
            tokens=outcome.spend.tokens,
            calls=outcome.spend.calls,
            wall_s=outcome.spend.wall_s,
        ),
        labels=dict(labels),
    )


def _said(verdict: Verdict | None) -> ForeignReading | None:
    return None if verdict is None else ForeignReading(reading=verdict.reading, standing=verdict.standing)
