"""Commands that make and run an experiment: init, prepare, freeze, run, reap."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cells.cli.door import ExitCode, end, print_json, registrations_of, run_async

__all__ = ["add_to"]

Runs = Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")]
Place = Annotated[Path, typer.Argument(help="An experiment file, its folder, a run folder, or a registration's id.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
RUNS = Path("runs")


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (init, prepare, freeze, run, reap):
        app.command()(command)


def init(folder: Annotated[Path, typer.Argument(help="A folder that does not exist yet, or is empty.")]) -> None:
    """Write a commented experiment that runs."""
    from importlib.resources import files

    from harness.errors import UsageError

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not empty: name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    for item in sorted(files("cells").joinpath("templates").iterdir(), key=lambda item: item.name):
        (folder / item.name).write_bytes(item.read_bytes())
        typer.echo(f"wrote {folder / item.name}")
    typer.echo(f"next: proctor prepare {folder}, then proctor run {folder}")


def prepare(place: Place) -> None:
    """Build the image and fetch the model that an experiment needs, where they are missing."""
    from cells.preparing import prepare as work
    from harness.experiment import load_experiment

    run_async(lambda: work(load_experiment(place), say=typer.echo))


def freeze(experiment: Place, runs: Runs = RUNS, *, as_json: AsJson = False) -> None:
    """Pin everything that the result will depend on, and say what the experiment can show at best."""
    from cells.freeze import freeze as work
    from cells.freeze_view import freeze_lines
    from harness.clock import SystemClock

    source = (experiment / "experiment.toml" if experiment.is_dir() else experiment).resolve()
    say = _silent if as_json else _err
    frozen = run_async(lambda: work(source, runs.resolve(), clock=SystemClock(), say=say))
    registration = frozen.registration
    if as_json:
        print_json(
            {
                "id": registration.id,
                "folder": str(frozen.folder),
                "sha256": registration.digest,
                "outlook": registration.outlook,
                "refused": registration.refused,
                "pins": registration.pins,
            }
        )
        return
    for line in freeze_lines(frozen):
        typer.echo(line)


def _silent(_text: str) -> None:
    pass


def _err(text: str) -> None:
    typer.echo(text, err=True)


def run(place: Place, runs: Runs = RUNS, *, as_json: AsJson = False) -> None:
    """Run what is left of an experiment; freeze it first if it never was. Harmless when done twice."""
    folder = _frozen_folder(place, runs.resolve())
    from cells.cli.running import run_to_the_end

    how = run_to_the_end(folder, quiet=as_json)
    _after(folder, how, as_json=as_json)


def _frozen_folder(place: Path, runs: Path) -> Path:
    """The run folder to work in. An experiment file is frozen if it never was; if it was, its pins must still hold."""
    from cells.cli.door import run_folder

    source = (place / "experiment.toml" if place.is_dir() else place).resolve()
    if (place / "registration.json").is_file() or not source.is_file():
        return run_folder(place, runs)
    known = registrations_of(source, runs)
    if known:
        return known[-1]
    from cells.freeze import freeze as work
    from cells.freeze_view import freeze_lines
    from harness.clock import SystemClock

    frozen = run_async(lambda: work(source, runs, clock=SystemClock(), say=_err))
    for line in freeze_lines(frozen):
        _err(line)
    return frozen.folder


def _after(folder: Path, how: str, *, as_json: bool) -> None:
    """The scoreboard, the report's path, and how to go on."""
    from cells.cli.reporting import write_report
    from cells.cli.results import board_of, show_board

    board = board_of(folder)
    report = write_report(folder)
    page = report.get("html", report["md"])
    if as_json:
        from cells.readings import scoreboard_to_json

        paths = {"folder": str(folder), "report": str(page)}
        print_json({"how": how, **paths, "scoreboard": scoreboard_to_json(board)})
    else:
        show_board(board)
        typer.echo(f"report: {page}")
    if how == "finished":
        end(ExitCode.DONE)
    if how == "stopped":
        _err("stopped by a registered stop rule: nothing is left to go on with")
        end(ExitCode.STOPPED)
    _err(f"{how}: what was finished is kept. To go on: proctor run {folder}")
    end(ExitCode.INCOMPLETE)


def reap(*, as_json: AsJson = False) -> None:
    """Remove workspaces whose driver died."""
    from harness import plugins
    from harness.errors import Blamed

    removed: dict[str, Any] = {}
    for name in plugins.table("workspaces"):
        backend = plugins.load("workspaces", name)()
        try:
            removed[name] = list(run_async(backend.reap))
        except Blamed as error:
            removed[name] = f"not looked at: {error}"
    if as_json:
        print_json(removed)
        return
    for name, found in removed.items():
        text = found if isinstance(found, str) else f"{len(found)} removed{': ' + ', '.join(found) if found else ''}"
        typer.echo(f"{name}: {text}")
