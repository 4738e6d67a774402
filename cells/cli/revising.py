"""The command that reads what revisions did: work lost, harm and repair, by arm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cells.cli.door import ExitCode, end, print_json, run_folder

if TYPE_CHECKING:
    from cells.strata import Placer

__all__ = ["add_to"]

Runs = Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")]
Place = Annotated[Path, typer.Argument(help="A run folder, a registration's id, or an experiment file frozen once.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
RUNS = Path("runs")


def add_to(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(revisions)


def revisions(
    place: Place,
    runs: Runs = RUNS,
    *,
    cluster: Annotated[str, typer.Option("--cluster", help="`task`, `unit`, or a registered grouping.")] = "task",
    as_json: AsJson = False,
) -> None:
    """Say by arm what revisions kept, lost, harmed and repaired, and which replies were no action."""
    from rich.console import Console

    from cells.revision_reading import read_revisions
    from cells.revision_view import WITHHELD, revision_sheets, revisions_to_json
    from cells.score_view import render
    from cells.table_sources import run_sources
    from harness.errors import UsageError

    folder = run_folder(place, runs)
    *_, source = run_sources(folder)
    found = read_revisions(folder, source.settled, place=_placer(folder, cluster))
    if not found.arms:
        raise UsageError(
            f"{folder.name} has no cell whose transcript tells of revisions: expected a run of seat 'revise'"
        )
    final = source.board.status == "final"
    if as_json:
        about = {"registration_id": source.source, "head": source.board.head, "status": source.board.status}
        print_json(revisions_to_json(found, final=final, cluster=cluster, **about))
    else:
        render([*revision_sheets(found, final=final), *([] if final else [[WITHHELD]])], Console())
    if not final:
        end(ExitCode.INCOMPLETE)


def _placer(folder: Path, cluster: str) -> Placer:
    """Which cluster a unit is in. Raises `UsageError` for a name that is neither a part of units nor a grouping."""
    from cells.strata import placer
    from harness.errors import UsageError, unknown_name
    from harness.experiment import Experiment
    from harness.grouping import CLUSTERS
    from harness.registration import load_registration

    groupings = Experiment.model_validate(dict(load_registration(folder).experiment)).analysis.groupings
    known = [*CLUSTERS, *(grouping.name for grouping in groupings)]
    if cluster not in known:
        raise UsageError(f"--cluster: {unknown_name('cluster', cluster, known)}")
    return placer((cluster,), groupings)
