"""`proctor promote`: an effect of a finished discovery goes to one confirmation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cells.cli.door import print_json, run_async, run_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cells.promotion.promoting import Made

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(promote)


def promote(
    place: Annotated[
        Path,
        typer.Argument(help="The discovery: a run folder, a registration's id, or an experiment file frozen once."),
    ],
    contrast: Annotated[str, typer.Argument(help="The registered contrast whose effect is promoted.")],
    runs: Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")] = Path("runs"),
    *,
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="The confirmation's experiment file.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Promote an effect of a finished, clean discovery run to a confirmation that is not frozen yet; once."""
    from cells.promotion.promoting import promote as work
    from harness.clock import SystemClock

    folder = run_folder(place, runs)
    target = (to / "experiment.toml" if to.is_dir() else to).resolve()
    say = _silent if as_json else _err
    made = run_async(lambda: work(folder, contrast, target, clock=SystemClock(), say=say, dry_run=dry_run))
    if as_json:
        line = None if made.promoted is None else made.promoted.line
        print_json({**made.content.model_dump(mode="json"), "line": line, "file": str(made.file), "again": made.again})
        return
    _tell(made, target, dry_run=dry_run)


def _tell(made: Made, target: Path, *, dry_run: bool) -> None:
    said, reading = made.content, made.content.figures.reading
    typer.echo(f"effect {said.effect.contrast!r} of {said.discovery}, {len(said.effect.units)} units, audit CLEAN")
    typer.echo(f"  discovery, no evidence in what follows: {_figures(reading)}")
    typer.echo(
        f"  to {said.confirmation.contrast!r} of {said.confirmation.name}, namespace "
        f"{said.confirmation.seed_namespace!r}, {said.confirmation.shared_units} units shared"
    )
    if made.promoted is None:
        typer.echo("it could be promoted: nothing was written")
        return
    typer.echo(
        f"{'it was promoted already' if made.again else 'promoted'}: line {made.promoted.entry.seq + 1} of the record"
    )
    typer.echo(f"  head {made.promoted.line}")
    if dry_run:
        typer.echo("nothing was written")
        return
    typer.echo(f"  written to {made.file}")
    typer.echo(f"next: proctor freeze {target}")


def _figures(reading: Mapping[str, Any]) -> str:
    """The discovery's counts and raw p-value on one line: of pairs, or of passes where the arms are not paired."""
    pairs, groups = reading["pairs"], reading["groups"]
    counts = f"b01 {pairs['treatment_only']}, b10 {pairs['control_only']}"
    if groups is not None:
        counts = f"passed {groups['passed'][0]} and {groups['passed'][1]}"
    return counts + (", p undefined" if reading["p_value"] is None else f", p {reading['p_value']:.4g}")


def _silent(_text: str) -> None:
    pass


def _err(text: str) -> None:
    typer.echo(text, err=True)
