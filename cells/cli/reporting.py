"""`proctor report`: the report of a run or of a declared set, as Markdown and as a page."""

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
    from cells.report import document_of
    from cells.report_facts import run_facts
    from cells.report_files import write_document

    return write_document(document_of(run_facts(folder)), folder if out is None else out)


def _declared(declaration: Path, cells: list[Path], folders: list[Path], out: Path | None) -> dict[str, Path]:
    from cells.declared.opening import read_declared
    from cells.report_declared import declared_document, declared_facts
    from cells.report_files import write_document

    found = read_declared(declaration, files=cells, runs=folders)
    document = declared_document(declared_facts(found, declaration.stem))
    return write_document(document, declaration.parent if out is None else out)


def report(
    places: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PLACE]...", help="A run; with --declaration any number, whose cells it may name."),
    ] = None,
    runs: Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")] = Path("runs"),
    *,
    out: Annotated[Path | None, typer.Option("--out", help="The folder to write into; default: the run's own.")] = None,
    cells: Annotated[
        list[Path] | None, typer.Option("--cells", metavar="FILE", help="A file of cells for the declaration.")
    ] = None,
    declaration: Annotated[
        Path | None, typer.Option("--declaration", metavar="FILE", help="Report a declared set, reading by reading.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Write the report of a run, or of a declared set, as Markdown and as a page, and print their paths."""
    from harness.errors import UsageError

    folders = [run_folder(place, runs) for place in places or []]
    if declaration is not None:
        written = _declared(declaration, cells or [], folders, out)
    elif cells:
        raise UsageError(f"--cells {cells[0]} without --declaration: expected one that says what the columns hold")
    elif len(folders) != 1:
        raise UsageError(f"{len(folders)} runs: expected one, or --declaration with the cells that are read")
    else:
        written = write_report(folders[0], out)
    if as_json:
        print_json({name: str(path) for name, path in written.items()})
        return
    for path in written.values():
        typer.echo(str(path))
    if "html" not in written:
        typer.echo("no page: it needs jinja2; install it with `pip install 'proctor[report]'`", err=True)
