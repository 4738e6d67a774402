"""The command that holds what was registered of a result against it: predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cells.cli.door import ExitCode, end, print_json, run_folder

__all__ = ["add_to"]

Runs = Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")]
Place = Annotated[Path, typer.Argument(help="A run folder, a registration's id, or an experiment file frozen once.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
RUNS = Path("runs")


def add_to(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(predictions)


def predictions(place: Place, runs: Runs = RUNS, *, as_json: AsJson = False) -> None:
    """Say what became of each prediction, which registered outcome holds, and which adverse ones happened."""
    from cells.boards import boards_of
    from cells.foretold import foretold, foretold_lines, foretold_to_json
    from harness.experiment import Experiment
    from harness.registration import load_registration

    folder = run_folder(place, runs)
    experiment = Experiment.model_validate(dict(load_registration(folder).experiment))
    boards = boards_of(folder)
    found = foretold(experiment.predictions, boards)
    if as_json:
        print_json(foretold_to_json(found))
    else:
        for line in foretold_lines(found):
            typer.echo(line)
    if boards.in_force.status != "final":
        end(ExitCode.INCOMPLETE)
