"""The command `score`: of one run as it was registered, or of a declared set of cells from anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cells.cli.door import ExitCode, end, print_json, run_folder
from cells.cli.results import RUNS, AsJson, Runs, show_boards

__all__ = ["add_to"]

Places = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[PLACE]...", help="A run; with --declaration any number, whose cells it may name."),
]
Cells = Annotated[
    list[Path] | None,
    typer.Option("--cells", metavar="FILE", help="A CSV, JSON Lines or Parquet file of cells; may be given again."),
]
Declaration = Annotated[
    Path | None, typer.Option("--declaration", metavar="FILE", help="What the cells are, and which of them are read.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (score, declare):
        app.command()(command)


def score(
    places: Places = None,
    runs: Runs = RUNS,
    *,
    cells: Cells = None,
    declaration: Declaration = None,
    pins: Annotated[
        Path | None,
        typer.Option("--pins", metavar="DIR", help="Write each reading's cells there, with the digests of their rows."),
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option("--since", metavar="STORED.json", help="Name the bounds in an earlier --json that have expired."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the scoreboard: every class, cost, and the registered contrasts."""
    from harness.errors import UsageError

    if declaration is not None:
        folders = [run_folder(place, runs) for place in places or []]
        if pins is not None:
            _pin(declaration, pins, cells or [], folders)
        _declared(declaration, cells or [], folders, since=since, as_json=as_json)
        return
    if pins is not None:
        raise UsageError(f"--pins {pins} without --declaration: expected one that names the cells")
    if cells:
        raise UsageError(
            f"--cells {cells[0]} without --declaration: expected one that says what the columns hold and which cells "
            f"are read. `proctor declare {cells[0]} declaration.toml` writes a first one"
        )
    if places is None or len(places) != 1:
        raise UsageError(f"{len(places or [])} runs: expected one, or --declaration with the cells that are read")
    _run(run_folder(places[0], runs), since=since, as_json=as_json)


def _run(folder: Path, *, since: Path | None, as_json: bool) -> None:
    """Score one run as it was registered."""
    from cells.boards import boards_of, boards_to_json

    boards = boards_of(folder)
    data = boards_to_json(boards) if as_json or since is not None else {}
    expired = {} if since is None else _expired(since, data, as_json=as_json)
    if as_json:
        print_json({**data, **expired})
    else:
        show_boards(boards)
    if boards.in_force.status != "final":
        end(ExitCode.INCOMPLETE)


def _pin(path: Path, folder: Path, cells: list[Path], runs: list[Path]) -> None:
    """Write the names of each reading's cells, with what their rows say now as a digest."""
    from cells.declared.opening import write_pins

    for target in write_pins(path, folder, files=cells, runs=runs):
        typer.echo(f"written: {target}", err=True)


def _expired(stored: Path, now: dict[str, Any], *, as_json: bool) -> dict[str, list[str]]:
    """What of a stored scoreboard's bounds has expired: said before any figure, or as a part of the JSON."""
    from cells.expiry import expired_since, expiry_lines

    expired = expired_since(stored, now)
    if not as_json:
        for line in expiry_lines(stored, expired):
            typer.echo(line)
        typer.echo()
    return {"expired": expired}


def _declared(path: Path, cells: list[Path], runs: list[Path], *, since: Path | None, as_json: bool) -> None:
    """Compute the readings of a declaration side by side."""
    from rich.console import Console

    from cells.declared.as_json import side_by_side_to_json
    from cells.declared.opening import read_declared
    from cells.declared.view import parts_of
    from cells.score_view import render

    found = read_declared(path, files=cells, runs=runs)
    data = side_by_side_to_json(found) if as_json or since is not None else {}
    expired = {} if since is None else _expired(since, data, as_json=as_json)
    if as_json:
        print_json({**data, **expired})
    else:
        render(parts_of(found), Console())
    if not found.final:
        end(ExitCode.INCOMPLETE)


def declare(
    cells: Annotated[Path, typer.Argument(help="A CSV, JSON Lines or Parquet file of cells.")],
    out: Annotated[Path, typer.Argument(help="The declaration to write; the cells' names go beside it.")],
) -> None:
    """Write a first declaration for a file of cells, with every cell by name, for you to complete."""
    from cells.declared.draft import draft

    count, asked = draft(cells, out)
    typer.echo(f"{out}: {count} cells, in one reading")
    for place in asked:
        typer.echo(f"to be said: {place}")
