"""`proctor audit`: what the gates of a run refused, by arm, and which refusals somebody has to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cells.cli.door import ExitCode, end, print_json, run_folder

if TYPE_CHECKING:
    from cells.gate_trips import GateTrips, Refusal

__all__ = ["add_to"]

_SHOWN = 50


def add_to(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(audit)


def audit(
    place: Annotated[
        Path, typer.Argument(help="A run folder, a registration's id, or an experiment file frozen once.")
    ],
    runs: Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")] = Path("runs"),
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Count what each gate refused, by arm, and read its refusals again for false positives."""
    from dataclasses import asdict

    from cells.gate_trips import audit_gates
    from harness import plugins
    from harness.experiment import Experiment
    from harness.registration import load_registration

    folder = run_folder(place, runs)
    entry = Experiment.model_validate(dict(load_registration(folder).experiment)).referee
    found = audit_gates(folder, plugins.load("referees", entry.name)(entry.options).classes)
    if as_json:
        print_json({**asdict(found), "doubtful": [asdict(refusal) for refusal in found.doubtful]})
    else:
        _tell(found)
    if not all(refusal.kept for refusal in found.refusals):
        end(ExitCode.VERIFICATION_FAILED)


def _tell(found: GateTrips) -> None:
    typer.echo("gate trips by arm" + ("" if found.counts else ": none"))
    for count in found.counts:
        typer.echo(f"  {count.gate}, arm {count.arm}: {count.trips} of {count.of}")
    for sentence in found.unequal:
        typer.echo(f"  {sentence}")
    typer.echo(
        f"exhibits refused: {len(found.refusals)}; would have been accepted without the gate: {len(found.doubtful)}"
    )
    for refusal in found.doubtful[:_SHOWN]:
        _show(refusal)
    if len(found.doubtful) > _SHOWN:
        typer.echo(f"  and {len(found.doubtful) - _SHOWN} more: --json has all")
    lost = [refusal for refusal in found.refusals if not refusal.kept]
    for refusal in lost:
        typer.echo(f"  {refusal.cell}, try {refusal.attempt}: its exhibit {refusal.exhibit} is not whole in the run")


def _show(refusal: Refusal) -> None:
    typer.echo(f"  {refusal.cell}, try {refusal.attempt}: {refusal.gate}, without it {refusal.would_be}")
    typer.echo(f"    {refusal.why}")
    typer.echo(f"    exhibit {refusal.exhibit}: a cheat that works, or a false positive")
