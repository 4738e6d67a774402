"""Commands that read a run: status, verify, rescore."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cells.cli.door import ExitCode, end, print_json, run_async, run_folder

if TYPE_CHECKING:
    from cells.boards import Boards
    from cells.readings import Scoreboard

__all__ = ["RUNS", "AsJson", "Runs", "add_to", "board_of", "show_board", "show_boards"]

Runs = Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")]
Place = Annotated[Path, typer.Argument(help="A run folder, a registration's id, or an experiment file frozen once.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
RUNS = Path("runs")


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (status, verify, rescore):
        app.command()(command)


def board_of(folder: Path) -> Scoreboard:
    """The scoreboard of a run's record as it is now, over what is in force."""
    from cells.boards import boards_of

    return boards_of(folder).in_force


def show_board(board: Scoreboard) -> None:
    """Print the scoreboard on standard output."""
    from rich.console import Console

    from cells.score_view import render_scoreboard

    render_scoreboard(board, Console())


def show_boards(boards: Boards) -> None:
    """Print the frozen scoreboard, the amended one below it if there is one, and what audits said beside both."""
    from cells.audit.kept import audit_lines
    from cells.figures import printable

    _show_both(boards)
    for line in audit_lines(boards.audits):
        typer.echo(printable(line))


def _show_both(boards: Boards) -> None:
    from cells.figures import printable

    if boards.amended is None:
        show_board(boards.frozen)
        return
    typer.echo("AS FROZEN")
    show_board(boards.frozen)
    typer.echo("\nAS AMENDED")
    for item in boards.amendments:
        typer.echo(printable(f"{item.label}, after {item.outcomes} outcomes: {item.content.changes}"))
        typer.echo(printable(f"  because: {item.content.reason}"))
    show_board(boards.amended)


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
        print_json({**facts, "stopped": progress.stopped, **asdict(now)})
    else:
        for line in status_lines(registration, progress, now, running=running, head=str(head) if head else None):
            typer.echo(line)
    if now.done < now.total and not running:
        end(ExitCode.INCOMPLETE if progress.stopped is None else ExitCode.STOPPED)


def verify(
    place: Place,
    runs: Runs = RUNS,
    *,
    head: Annotated[str | None, typer.Option("--head", help="A head kept outside the run: SEQ:SHA256.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check a run's registration, chain, head, blobs and transcripts from its files alone."""
    from cells.cli.heads import witness_of
    from cells.verifying import verify_run

    found = verify_run(run_folder(place, runs), witness=witness_of(head))
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

    progress = {"done": 0, "of": 0}

    def begin(total: int) -> None:
        progress["of"] = total

    def show(row: Rescored) -> None:
        progress["done"] += 1
        mark = "identical" if row.identical else f"DIFFERS: {row.why}"
        count = f"[{progress['done']}/{progress['of']}]"
        which = f"try {row.attempt}" + ("" if row.round is None else f", round {row.round}")
        typer.echo(f"{count} {row.cell} ({which}): {row.recorded} {mark}", err=as_json)

    def tell(change: str) -> None:
        typer.echo(f"judged by another instrument than the run's: {change}", err=as_json)

    found = summary(*run_async(lambda: work(folder, clock=SystemClock(), keep=keep, seen=show, told=tell, begun=begin)))
    if as_json:
        print_json(found)
    else:
        differing = found["differing"]
        same = sum(row["now"] == row["recorded"] for row in differing)
        more = f"; {same} of the {len(differing)} that differ have the same reading" if differing else ""
        typer.echo(f"{found['identical']} of {found['judged']} verdicts identical{more}")
    if found["differing"]:
        end(ExitCode.VERIFICATION_FAILED)
