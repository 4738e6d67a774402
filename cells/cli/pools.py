"""The commands of pools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cells.cli.door import ExitCode, end, print_json, run_async

__all__ = ["add_to"]

File = Annotated[Path, typer.Argument(help="A pool's file.")]
Experiment = Annotated[Path, typer.Argument(help="An experiment file or its folder.")]
Size = Annotated[int, typer.Option("--n", min=1, max=1000, help="Candidates of each task and model.")]
Out = Annotated[Path, typer.Option("--out", help="The pool's file; what is there of the same pool is gone on with.")]
ByArm = Annotated[str, typer.Option("--arm", help="The registered arm whose first packet asks for them.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def add_to(app: typer.Typer) -> None:
    """Add the group to the command line."""
    group = typer.Typer(help="Make and read pools of candidates.", no_args_is_help=True, rich_markup_mode=None)
    group.command("make")(pool_make)
    group.command("show")(pool_show)
    app.add_typer(group, name="pool")


def pool_make(experiment: Experiment, *, out: Out, n: Size = 8, arm: ByArm = "B", as_json: AsJson = False) -> None:
    """Make candidates of every task and model, and run the public tests on each; resumes where it was cut off."""
    from cells.pools.making import make_pool
    from cells.pools.showing import pool_to_json
    from harness.clock import SystemClock

    source = (experiment / "experiment.toml" if experiment.is_dir() else experiment).resolve()
    pool = run_async(lambda: make_pool(source, n=n, out=out, arm=arm, clock=SystemClock(), say=_err))
    _show(pool_to_json(pool), as_json=as_json)


def pool_show(file: File, *, as_json: AsJson = False) -> None:
    """Read a pool: its digest, dead units and rates. Exit code 1 when it is not whole yet."""
    from cells.pools.candidates import read_pool
    from cells.pools.showing import pool_to_json

    shown = pool_to_json(read_pool(file))
    _show(shown, as_json=as_json)
    if shown["missing"]:
        end(ExitCode.INCOMPLETE)


def _show(shown: dict[str, object], *, as_json: bool) -> None:
    from cells.pools.showing import pool_lines

    if as_json:
        print_json(shown)
        return
    for line in pool_lines(shown):
        typer.echo(line)


def _err(text: str) -> None:
    typer.echo(text, err=True)
