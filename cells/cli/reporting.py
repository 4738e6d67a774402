"""`proctor report`: the report of a run, as Markdown and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cells.cli.door import print_json, run_folder

__all__ = ["add_to", "write_report"]


def add_to(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(report)


def write_report(folder: Path, out: Path | None = None) -> dict[str, Path]:
    """
    Write `report.md` and, where its template engine is installed, `report.html` into `out` or the run folder itself.

    The paths of what was written, by name.
    """
    from cells.cli.results import board_of
    from cells.report import document_of
    from cells.report_facts import run_facts
    from cells.report_files import write_document

    return write_document(document_of(run_facts(folder, board_of(folder))), folder if out is None else out)


def report(
    place: Annotated[
        Path, typer.Argument(help="A run folder, a registration's id, or an experiment file frozen once.")
    ],
    runs: Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")] = Path("runs"),
    *,
    out: Annotated[Path | None, typer.Option("--out", help="The folder to write into; default: the run's own.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Write the report of a run as Markdown and as a page, and print their paths."""
    written = write_report(run_folder(place, runs), out)
    if as_json:
        print_json({name: str(path) for name, path in written.items()})
        return
    for path in written.values():
        typer.echo(str(path))
    if "html" not in written:
        typer.echo("no page: it needs jinja2; install it with `pip install 'proctor[report]'`", err=True)
