"""Commands about referees: new, list, check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cells.cli.door import ExitCode, end, print_json, run_async

if TYPE_CHECKING:
    from harness.conformance.rows import Conformance, Row

__all__ = ["add_to"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
TaskFolder = Annotated[
    Path | None, typer.Option("--task", help="A task folder, or a folder of them, for this referee.")
]
Experiment = Annotated[
    Path | None, typer.Option("--experiment", help="An experiment file: its tasks, options, image and arms.")
]
Backend = Annotated[str, typer.Option("--backend", help="docker, bubblewrap, a plugin's, or auto.")]
Image = Annotated[str, typer.Option("--image", help="The image of the rooms, where no task names one.")]
Options = Annotated[
    list[str] | None, typer.Option("--option", help="An option of the referee, as KEY=VALUE; may be repeated.")
]
Rules = Annotated[list[str] | None, typer.Option("--rule", help="Show this rule alone; may be repeated.")]
Bound = Annotated[float, typer.Option("--bound", help="Seconds that one judgement may take.")]
Hostile = Annotated[Path | None, typer.Option("--hostile", help="A folder of folders: endless candidates of your own.")]


def add_to(app: typer.Typer) -> None:
    """Add the group to the command line."""
    group = typer.Typer(
        help="Start, list and check referees.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("new")(new_referee)
    group.command("list")(list_referees)
    group.command("check")(check)
    app.add_typer(group, name="referee")


def new_referee(
    name: Annotated[str, typer.Argument(help="The referee's name, in small letters and hyphens.")],
    folder: Annotated[Path, typer.Option("--folder", help="Where the package's folder is made.")] = Path(),
) -> None:
    """Write a package with a new referee, its card, a task, and a test that it conforms."""
    from cells.referee_scaffold import new_referee as work

    written = work(name, folder)
    for path in written:
        typer.echo(f"wrote {path}")
    package = written[0].parent
    typer.echo(
        f"next: python -m pytest {package}, then pip install -e {package}, then "
        f"proctor referee check {name} --task {package / 'task'}"
    )


def list_referees(*, as_json: AsJson = False) -> None:
    """List the registered referees with where they come from and their class tables."""
    from cells.conforming import listed

    rows = listed()
    if as_json:
        print_json(rows)
        return
    for row in rows:
        typer.echo(f"{row['name']}: {row['target']} ({row['distribution']} {row['version']})")
        for standing in ("accepted", "rejected", "unscorable"):
            readings = [reading for reading, said in row["classes"].items() if said == standing]
            typer.echo(f"  {standing}: {', '.join(readings) or 'none'}")


def check(
    name: Annotated[str, typer.Argument(help="A registered referee.")],
    *,
    task: TaskFolder = None,
    experiment: Experiment = None,
    backend: Backend = "auto",
    image: Image = "proctor-seat",
    options: Options = None,
    bound: Bound = 300.0,
    hostile: Hostile = None,
    rules: Rules = None,
    as_json: AsJson = False,
) -> None:
    """Hold a referee to the conformance suite, live in sealed rooms, a row a rule."""
    from cells.conforming import Asked, check_registered
    from harness.clock import SystemClock

    asked = Asked(
        referee=name,
        place=_place(task, experiment),
        is_experiment=experiment is not None,
        backend=backend,
        image=image,
        options=_read(options or []),
        bound_s=_bound(bound),
        hostile=hostile,
        rules=tuple(rules or ()),
    )
    found = run_async(lambda: check_registered(asked, clock=SystemClock(), say=_note, seen=_seen))
    if as_json:
        print_json([one.to_json() for one in found])
    else:
        for one in found:
            _print_rows(one.rows, f"{one.referee} on {one.task}")
            typer.echo(_conclusion(one))
    if not all(one.conforms for one in found):
        end(ExitCode.GATE_REFUSED)


def _conclusion(one: Conformance) -> str:
    if not one.conforms:
        return f"refused:\n{one.refusal}"
    if not one.left_out:
        return f"{one.referee} conforms on {one.task}"
    shown = f"{len(one.rows)} of {len(one.rows) + len(one.left_out)} rules"
    return f"{one.referee} holds {shown} on {one.task}; the others were left out"


def _place(task: Path | None, experiment: Path | None) -> Path:
    from harness.errors import UsageError

    place = task or experiment
    if place is None or (task and experiment):
        raise UsageError("expected --task FOLDER or --experiment FILE, and not both: a referee is checked on a task")
    return (place / "experiment.toml" if experiment and place.is_dir() else place).resolve()


def _bound(seconds: float) -> float:
    from harness.errors import UsageError

    if not 0 < seconds < float("inf"):
        raise UsageError(f"--bound is {seconds}: expected seconds, more than 0, that one judgement may take")
    return seconds


def _note(text: str) -> None:
    typer.echo(text, err=True)


def _seen(row: Row) -> None:
    _note(f"  {row.rule}: {_word(row)}")


def _word(row: Row) -> str:
    return "told" if row.held is None else "held" if row.held else "NOT HELD"


def _read(options: list[str]) -> dict[str, Any]:
    """Options as TOML has them: `2`, `2.5`, `true`, `"text"`; anything else is text."""
    import tomllib

    from harness.errors import UsageError
    from harness.written import toml_of

    found: dict[str, Any] = {}
    given: dict[str, str] = {}
    for option in options:
        key, equals, text = option.partition("=")
        if not equals or not key:
            raise UsageError(f"--option {option!r}: expected KEY=VALUE")
        if key in given:
            raise UsageError(f"--option {key} is given twice, as {given[key]!r} and as {text!r}: expected each once")
        given[key] = text
        try:
            found[key] = toml_of(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            found[key] = text
    return found


def _print_rows(rows: tuple[Row, ...], where: str) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=where, title_justify="left")
    for column in ("rule", "held", "seen", "expected"):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(row.rule, _word(row), row.seen[:400], row.expected)
    Console(width=None if Console().is_terminal else 160, markup=False).print(table)
