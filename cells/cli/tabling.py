"""`proctor export` and `proctor query`: the tables of runs, or of a declared set, as files and by SQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cells.cli.door import print_json, run_folder

if TYPE_CHECKING:
    from cells.table_schema import Row

__all__ = ["add_to"]

Runs = Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")]
Cells = Annotated[
    list[Path] | None, typer.Option("--cells", metavar="FILE", help="A file of cells for the declaration.")
]
Declaration = Annotated[
    Path | None, typer.Option("--declaration", metavar="FILE", help="The tables of a declared set, reading by reading.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
RUNS = Path("runs")


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (export, query):
        app.command()(command)


def _tables(places: list[Path], runs: Path, cells: list[Path] | None, declaration: Path | None) -> dict[str, list[Row]]:
    """The tables of all that was named; of a declared set, runs are among its sources."""
    from cells.table_rows import tables_of
    from cells.table_sources import declared_sources, run_sources
    from harness.errors import UsageError

    folders = [run_folder(place, runs) for place in places]
    if declaration is not None:
        from cells.declared.opening import read_declared

        found = read_declared(declaration, files=cells or [], runs=folders)
        return tables_of(declared_sources(found, declaration.stem))
    if cells:
        raise UsageError(f"--cells {cells[0]} without --declaration: expected one that says what the columns hold")
    if not folders:
        raise UsageError("no run was named: expected a run folder or a registration's id, or --declaration FILE")
    sources = [source for folder in folders for source in run_sources(folder)]
    names = [(source.source, source.reading) for source in sources]
    doubled = [name for name in names if names.count(name) > 1]
    if doubled:
        raise UsageError(f"run {doubled[0][0]} is named twice: its cells would be counted twice")
    return tables_of(sources)


def export(
    places: Annotated[list[Path] | None, typer.Argument(metavar="[PLACE]...", help="Runs.")] = None,
    runs: Runs = RUNS,
    *,
    to: Annotated[Path, typer.Option("--to", help="The folder to write the tables into.")],
    form: Annotated[str, typer.Option("--format", help="csv or parquet.")] = "csv",
    cells: Cells = None,
    declaration: Declaration = None,
    as_json: AsJson = False,
) -> None:
    """Write the tables of runs as files: cells, tries, census, classes, costs, contrasts, ratios, probes."""
    from cells.export import write_tables
    from harness.errors import UsageError

    if form not in {"csv", "parquet"}:
        raise UsageError(f"format {form!r}: expected csv or parquet")
    tables = _tables(places or [], runs, cells, declaration)
    paths = write_tables(tables, to, "csv" if form == "csv" else "parquet")
    if as_json:
        print_json({name: {"path": str(path), "rows": len(tables[name])} for name, path in paths.items()})
        return
    for name, path in paths.items():
        typer.echo(f"{path}  {len(tables[name])} rows")


def query(
    words: Annotated[
        list[str], typer.Argument(metavar="[PLACE]... SQL", help="Runs, and one SELECT over their tables.")
    ],
    runs: Runs = RUNS,
    *,
    cells: Cells = None,
    declaration: Declaration = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: AsJson = False,
) -> None:
    """Answer a SELECT over the tables of runs. The SQL reaches those tables and nothing else."""
    from cells.answer_view import answer_csv, answer_json, answer_text
    from cells.query import ask
    from harness.errors import UsageError

    if as_csv and as_json:
        raise UsageError("--csv and --json: expected one of them")
    *places, sql = words
    answer = ask(_tables([Path(place) for place in places], runs, cells, declaration), sql)
    if as_json:
        print_json(answer_json(answer))
    else:
        typer.echo(answer_csv(answer) if as_csv else answer_text(answer), nl=not as_csv)
    if answer.not_finite:
        typer.echo(f"{answer.not_finite} figures were infinite or no numbers: they are shown as missing", err=True)
