"""Commands that read a run: status, report, verify, rescore."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cells.cli.door import ExitCode, end, print_json, run_async, run_folder

if TYPE_CHECKING:
    from cells.readings import Scoreboard

__all__ = ["RUNS", "AsJson", "Runs", "add_to", "board_of", "show_board", "write_report"]

Runs = Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")]
Place = Annotated[Path, typer.Argument(help="A run folder, a registration's id, or an experiment file frozen once.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
RUNS = Path("runs")


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (status, report, verify, rescore):
        app.command()(command)


def board_of(folder: Path) -> Scoreboard:
    """The scoreboard of a run's record as it is now."""
    from cells.plan import read_run
    from cells.readings import score as read
    from harness.analysis import Analysis
    from harness.registration import load_registration

    registration = load_registration(folder)
    progress, head = read_run(folder)
    return read(
        registration.cells,
        progress.outcomes(),
        Analysis.model_validate(registration.experiment["analysis"]),
        head=None if head is None else str(head),
        registration_id=registration.id,
        not_enforced=progress.not_enforced,
    )


def show_board(board: Scoreboard) -> None:
    """Print the scoreboard on standard output."""
    from rich.console import Console

    from cells.score_view import render_scoreboard

    render_scoreboard(board, Console())


def write_report(folder: Path) -> Path:
    """Write `report.md` into the run folder and return its path."""
    from cells.gate_trips import read_trips
    from cells.plan import read_run
    from cells.report import markdown_report
    from harness.blobs import BlobStore
    from harness.registration import load_registration

    registration = load_registration(folder)
    progress, _head = read_run(folder)
    controls = [
        {"task": body["task"], **row} for _task, body in sorted(progress.controls.items()) for row in body["rows"]
    ]
    text = markdown_report(
        {**registration.__dict__, "id": registration.id},
        board_of(folder),
        probes=progress.fences["rows"] if progress.fences is not None else [],
        controls=controls,
        plan=_plan_facts(registration, progress),
        gates=read_trips(registration, progress.outcomes(), {}, BlobStore(folder / "blobs")),
    )
    target = folder / "report.md"
    target.write_text(text, "utf-8")
    return target


def _plan_facts(registration: Any, progress: Any) -> dict[str, Any]:
    """Facts about the run that no other table of the report has."""
    experiment = registration.experiment
    return {
        "cells that can be built": registration.outlook["cells"]["buildable"],
        "cells declared": registration.outlook["cells"]["declared"],
        "sessions": progress.sessions,
        "tries whose end was looked at from outside": _ends(progress),
        "workspace": f"{experiment['workspace']['backend']}, image {registration.pins['image']['digest']}",
        "seat": experiment["seat"]["kind"],
        "referee": experiment["referee"]["name"],
        "models": [
            f"{model['name']}: {model['provider']} {model['model']}, "
            f"digest {registration.pins['model ' + model['name']]['digest'] or 'none given'}"
            for model in experiment["models"]
        ],
        "seed namespace": experiment["seat"]["seed_namespace"],
    }


def _ends(progress: Any) -> str:
    """The kill proofs of all tries together; a try without a count is not one that left nothing."""
    tries = progress.outcomes()
    counts = [(outcome.room.get("kill") or {}).get("alive") for outcome in tries]
    known = [count for count in counts if count is not None]
    return f"{len(known)} of {len(tries)}; left alive: {sum(known)} in all"


def status(place: Place, runs: Runs = RUNS, *, as_json: AsJson = False) -> None:
    """Say where a run stands, while it runs and after."""
    from dataclasses import asdict

    from cells.plan import read_run
    from cells.view import status_lines, tally
    from harness.lock import RunLock
    from harness.registration import load_registration

    folder = run_folder(place, runs)
    registration = load_registration(folder)
    progress, head = read_run(folder)
    running = RunLock(folder / "record.lock").held()
    now = tally(registration, progress)
    if as_json:
        facts = {"id": registration.id, "folder": str(folder), "running": running, "head": str(head) if head else None}
        print_json({**facts, **asdict(now)})
    else:
        for line in status_lines(registration, progress, now, running=running, head=str(head) if head else None):
            typer.echo(line)
    if now.done < now.total and not running:
        end(ExitCode.INCOMPLETE)


def report(place: Place, runs: Runs = RUNS) -> None:
    """Write the report of a run as Markdown, and print its path."""
    typer.echo(str(write_report(run_folder(place, runs))))


def verify(
    place: Place,
    runs: Runs = RUNS,
    *,
    head: Annotated[str, typer.Option("--head", help="A head kept outside the run: SEQ:SHA256.")] = "",
    as_json: AsJson = False,
) -> None:
    """Check a run's registration, chain, head, blobs and transcripts from its files alone."""
    from cells.verifying import verify_run
    from harness.errors import UsageError
    from harness.record import Head

    folder = run_folder(place, runs)
    try:
        witness = Head.parse(head) if head else None
    except ValueError as error:
        raise UsageError(str(error)) from None
    found = verify_run(folder, witness=witness)
    if as_json:
        print_json(found.to_json())
    else:
        for line in found.lines():
            typer.echo(line)
    if not found.ok:
        end(ExitCode.VERIFICATION_FAILED)


def rescore(
    place: Place,
    runs: Runs = RUNS,
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Write the comparison into the record.")] = False,
    as_json: AsJson = False,
) -> None:
    """Judge the recorded exhibits again, without a model, and compare verdict by verdict."""
    from cells.rescore import Rescored, summary
    from cells.rescore import rescore as work
    from harness.clock import SystemClock

    folder = run_folder(place, runs)

    def show(row: Rescored) -> None:
        mark = "identical" if row.identical else f"DIFFERS: {row.why}"
        typer.echo(f"{row.cell} (try {row.attempt}): {row.recorded} {mark}", err=as_json)

    def tell(change: str) -> None:
        typer.echo(f"judged by another instrument than the run's: {change}", err=as_json)

    found = summary(*run_async(lambda: work(folder, clock=SystemClock(), keep=keep, seen=show, told=tell)))
    if as_json:
        print_json(found)
    else:
        typer.echo(f"{found['identical']} of {found['judged']} verdicts identical")
    if found["differing"]:
        end(ExitCode.VERIFICATION_FAILED)
