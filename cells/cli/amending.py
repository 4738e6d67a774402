"""`proctor amend`: a dated addition to a frozen experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cells.cli.door import print_json, run_folder

if TYPE_CHECKING:
    from cells.amending import Made

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(amend)


def amend(
    place: Annotated[
        Path, typer.Argument(help="A run folder, a registration's id, or an experiment file frozen once.")
    ],
    amendment: Annotated[Path, typer.Argument(help="A TOML file: why, what changes, and what must hold for it.")],
    runs: Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")] = Path("runs"),
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, append nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Append an amendment to a run's record, if its checks hold now; nothing before it changes."""
    from dataclasses import asdict

    from cells.amending import amend as work
    from harness.clock import SystemClock

    folder = run_folder(place, runs)
    made = work(folder, amendment, clock=SystemClock(), dry_run=dry_run)
    if as_json:
        print_json({**asdict(made), "folder": str(folder), "appended": made.entry is not None})
        return
    _tell(folder, made)


def _tell(folder: Path, made: Made) -> None:
    for check in made.checks:
        value = "undefined" if check.value is None else f"{check.value:g}"
        typer.echo(f"check {check.name!r} holds: {value}")
    if made.entry is None:
        typer.echo(f"amendment {made.number} could be made: nothing was written")
    else:
        typer.echo(f"amendment {made.number} of {made.entry.body['dated']}: entry {made.entry.seq} of the record")
        typer.echo(f"  head {made.entry.seq}:{made.entry.sha256}")
    typer.echo(f"  {made.outcomes} outcomes stand before it and are as they were")
    if made.added_cells:
        typer.echo(f"  {made.added_cells} cells are added: proctor run {folder}")
    if made.withdrawn_cells:
        typer.echo(f"  {made.withdrawn_cells} cells leave the amended reading; the frozen one keeps them")
