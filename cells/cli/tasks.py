"""The command that characterises tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cells.cli.door import ExitCode, end, print_json, run_async, run_folder

if TYPE_CHECKING:
    from cells.checking import Checked, How

__all__ = ["add_to"]

Place = Annotated[Path, typer.Argument(help="An experiment file, a task folder or a folder of them, or a run.")]
Repeat = Annotated[int, typer.Option("--repeat", min=1, help="Judge everything so many times, and compare.")]
Load = Annotated[bool, typer.Option("--load", help="Keep every CPU busy in all rounds but the first.")]
Mutants = Annotated[str, typer.Option("--mutants", help="card, or generated: those of the card and generated ones.")]
Most = Annotated[int, typer.Option("--most", min=1, help="How many mutants are generated for a task.")]
AtOnce = Annotated[int, typer.Option("--at-once", min=1, help="Candidates judged at once.")]
Only = Annotated[list[str] | None, typer.Option("--task", help="This task of a folder alone; may be repeated.")]
Referee = Annotated[str, typer.Option("--referee", help="Of a folder: who judges; default pytest.")]
Backend = Annotated[str, typer.Option("--backend", help="Of a folder: docker, bubblewrap, a plugin's; default auto.")]
Image = Annotated[str, typer.Option("--image", help="Of a folder: the rooms' image, where no task names one.")]
Keep = Annotated[bool, typer.Option("--keep", help="Of a run: append what is found to its record.")]
Every = Annotated[bool, typer.Option("--all", help="Print a line for every candidate.")]
Runs = Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def add_to(app: typer.Typer) -> None:
    """Add the group to the command line."""
    group = typer.Typer(
        help="Look at tasks and what their suites can tell apart.", no_args_is_help=True, rich_markup_mode=None
    )
    group.callback()(_tasks)
    group.command()(check)
    app.add_typer(group, name="task")


def _tasks() -> None:
    """Look at tasks and what their suites can tell apart."""


def check(
    place: Place,
    *,
    repeat: Repeat = 1,
    load: Load = False,
    mutants: Mutants = "card",
    most: Most = 60,
    at_once: AtOnce = 2,
    task: Only = None,
    referee: Referee = "",
    backend: Backend = "",
    image: Image = "",
    keep: Keep = False,
    every: Every = False,
    runs: Runs = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Characterise suites: reference, degenerate battery, mutants, dead arms, flaky tests."""
    from cells.check_view import print_checked
    from cells.checking import How
    from cells.checking import keep as keep_in_record
    from harness.clock import SystemClock
    from harness.errors import UsageError, unknown_name

    if mutants not in {"card", "generated"}:
        raise UsageError(unknown_name("kind of mutants", mutants, ("card", "generated")))
    run = _run_at(place, runs)
    if keep and run is None:
        raise UsageError(f"--keep needs a run, whose record takes what is found: {place} is none")
    how = How(rounds=repeat, load=load, at_once=at_once, generated=most if mutants == "generated" else 0)
    own = {"referee": referee, "backend": backend, "image": image}
    found = run_async(lambda: _found(place, run, how, task or [], own))
    if keep and run is not None:
        keep_in_record(run, found, clock=SystemClock())
    if as_json:
        print_json([one.to_json() for one in found])
    else:
        print_checked(found, every=every)
    if not all(one.holds for one in found):
        end(ExitCode.GATE_REFUSED)


async def _found(place: Path, run: Path | None, how: How, only: list[str], own: dict[str, str]) -> list[Checked]:
    """What is found of the tasks at `place`. `own` is what a folder of tasks does not say itself; empty is left out."""
    from cells.checking import check_tasks, folder_cases, run_cases
    from harness.clock import SystemClock
    from harness.errors import UsageError, unknown_name

    clock, source = SystemClock(), run or _experiment_at(place)
    given = {name: value for name, value in own.items() if value}
    if source is not None and given and (run or source == place.resolve()):  # noqa: ASYNC240 - a look before any work
        raise UsageError(f"--{', --'.join(given)}: for a folder of tasks only, {place} says itself what judges")
    if source is not None and not given:
        cases = await run_cases(source, is_run=run is not None, clock=clock, say=_note)
    else:
        cases = await folder_cases(place, **{"referee": "", "backend": "auto", "image": "proctor-seat", **given})
    names = {case.task.open.name for case in cases}
    for name in only:
        if name not in names:
            raise UsageError(unknown_name("task", name, names))
    chosen = [case for case in cases if not only or case.task.open.name in only]
    return await check_tasks(chosen, how, clock=clock, say=_note, seen=lambda one: _note(f"  {_short(one)}"))


def _run_at(place: Path, runs: Path) -> Path | None:
    """The run folder that `place` names; None for an experiment file, or a folder with one or with tasks."""
    if (place / "registration.json").is_file():
        return place.resolve()
    from harness.errors import UsageError

    if place.exists():
        return None
    try:
        return run_folder(place, runs)
    except UsageError as error:
        raise UsageError(f"{error}; or an experiment file, a task folder, or a folder of task folders") from None


def _experiment_at(place: Path) -> Path | None:
    """The experiment file that `place` is or holds."""
    for path in (place / "experiment.toml", place):
        if path.is_file():
            return path.resolve()
    return None


def _note(text: str) -> None:
    typer.echo(text, err=True)


def _short(one: Checked) -> str:
    from cells.check_view import counted

    return f"{'holds' if one.holds else 'DOES NOT HOLD'}: {counted(one, 'mutant')} mutants, {one.seconds:.1f} s"
