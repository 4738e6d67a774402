"""The commands `import harbor` and `import inspect`: another harness's results as a file of cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cells.cli.door import ExitCode, end, print_json
from cells.cli.results import AsJson

if TYPE_CHECKING:
    from cells.imports.imported import ImportCensus

__all__ = ["add_to"]

Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="The file of cells to write, as JSON Lines.")]
Options = Annotated[
    Path | None, typer.Option("--options", metavar="FILE", help="A TOML file of options; those given here go before.")
]
Constants = Annotated[
    list[str] | None,
    typer.Option("--constant", metavar="PART=WORD", help="What all cells share: benchmark, task, arm, extras, model."),
]
Places = Annotated[
    list[str] | None, typer.Option("--place", metavar="PART=NAME.NAME", help="Where a part of the condition stands.")
]
Ends = Annotated[
    list[str] | None,
    typer.Option("--end", metavar="NAME=END", help="What an exception or limit means: HALT(wall), ..."),
]
AtLeast = Annotated[
    float | None, typer.Option("--at-least", metavar="NUMBER", help="From which number on a result is accepted.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    group = typer.Typer(no_args_is_help=True, help="Another harness's results as a file of cells; nothing is run.")
    group.command("harbor")(harbor)
    group.command("inspect")(inspect)
    app.add_typer(group, name="import")


def harbor(
    jobs: Annotated[list[Path], typer.Argument(metavar="JOB...", help="Folders of jobs.")],
    out: Out,
    *,
    options: Options = None,
    reward: Annotated[str | None, typer.Option("--reward", metavar="KEY", help="The reward that decides.")] = None,
    at_least: AtLeast = None,
    constant: Constants = None,
    place: Places = None,
    ends: Ends = None,
    as_json: AsJson = False,
) -> None:
    """Write the trials of Harbor's jobs as cells."""
    given = {"reward": reward, "at_least": at_least}
    _import("harbor", jobs, out, _options(options, given, constant, place, ends), as_json=as_json)


def inspect(
    logs: Annotated[list[Path], typer.Argument(metavar="LOG...", help="Logs: .eval or .json.")],
    out: Out,
    *,
    options: Options = None,
    scorer: Annotated[str | None, typer.Option("--scorer", metavar="NAME", help="The score that decides.")] = None,
    part: Annotated[str | None, typer.Option("--part", metavar="KEY", help="Its key, of a dictionary.")] = None,
    accept: Annotated[
        list[str] | None, typer.Option("--accept", help="A score that is accepted, in place of C.")
    ] = None,
    reject: Annotated[
        list[str] | None, typer.Option("--reject", help="A score that is rejected, in place of I.")
    ] = None,
    unscorable: Annotated[list[str] | None, typer.Option("--unscorable", help="A score that decides nothing.")] = None,
    at_least: AtLeast = None,
    constant: Constants = None,
    place: Places = None,
    ends: Ends = None,
    as_json: AsJson = False,
) -> None:
    """Write the samples of Inspect's logs as cells."""
    given = {"scorer": scorer, "part": part, "at_least": at_least}
    words = {"accepted": accept, "rejected": reject, "unscorable": unscorable}
    _import("inspect", logs, out, _options(options, given | words, constant, place, ends), as_json=as_json)


def _options(
    file: Path | None,
    given: dict[str, Any],
    constants: Sequence[str] | None,
    places: Sequence[str] | None,
    ends: Sequence[str] | None,
) -> dict[str, Any]:
    """The options of the file, and over them those of the command line."""
    found = _from_file(file) if file is not None else {}
    found |= {name: value for name, value in given.items() if value is not None}
    for table, pairs in (("constants", constants), ("places", places), ("ends", ends)):
        if pairs:
            found[table] = {**found.get(table, {}), **dict(_pair(table, pair) for pair in pairs)}
    return found


def _from_file(path: Path) -> dict[str, Any]:
    from harness.errors import DeclarationError
    from harness.written import toml_of

    try:
        return toml_of(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DeclarationError(f"{path} can't be read as TOML: {error}") from None


def _pair(table: str, text: str) -> tuple[str, str]:
    from harness.errors import UsageError

    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise UsageError(f"{table.removesuffix('s')} {text!r}: expected a name, an equals sign and a value")
    return name, value


def _import(name: str, paths: list[Path], out: Path, options: dict[str, Any], *, as_json: bool) -> None:
    from cells.imports.imported import Counted, Seen
    from cells.imports.importing import import_cells
    from cells.imports.lines import write_lines

    seen: list[Seen] = []
    counted = Counted()
    write_lines(counted.each(import_cells(name, paths, options, seen=seen)), out)
    census = counted.census(seen)
    if as_json:
        print_json({"out": str(out), **census.to_json()})
    else:
        for line in _told(census, out):
            typer.echo(line)
    if not census.whole:
        end(ExitCode.INCOMPLETE)


def _told(census: ImportCensus, out: Path) -> list[str]:
    """The census, a line a fact."""
    planned = "an unknown number of" if census.planned is None else census.planned
    lines = [f"{out}: {census.results} of {planned} planned results, in {census.tries} rows"]
    lines += [f"  {count:>6}  {name}" for name, count in census.classes.items()]
    for title, table in (
        ("VOID by cause and exception", census.causes),
        ("tries that were made again", census.made_again),
        ("what a halted one would have been", census.halted_would_be),
    ):
        lines += [f"{title}: " + ", ".join(f"{name} {count}" for name, count in table.items())] if table else []
    lines.append(
        f"{census.without_price} rows without a price, {census.lower_bounds} with a lower bound, "
        f"{census.without_tokens} without tokens"
    )
    if census.absent:
        named = ", ".join(census.absent_named)
        lines.append(f"{census.absent} planned and without a result" + (f": {named}" if named else ""))
    lines += [f"note: {remark}" for remark in census.remarks]
    return lines
