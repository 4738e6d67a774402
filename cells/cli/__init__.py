"""
The command line. A command's own libraries are loaded when it runs, so that `--help` and errors are there at once.

Exit codes: 0 all that was asked for is done (for `run`: every cell has its outcome); 1 incomplete, run again;
2 usage error; 3 a gate refused; 4 verification failed; 5 a registered stop rule ended the run.
"""

from __future__ import annotations

import gc
from typing import Annotated

import typer

from cells.cli import amending as _amending
from cells.cli import experiments as _experiments
from cells.cli import fences as _fences
from cells.cli import importing as _importing
from cells.cli import inventory as _inventory
from cells.cli import judging as _judging
from cells.cli import pools as _pools
from cells.cli import predicting as _predicting
from cells.cli import promoting as _promoting
from cells.cli import rates as _rates
from cells.cli import referees as _referees
from cells.cli import reporting as _reporting
from cells.cli import results as _results
from cells.cli import revising as _revising
from cells.cli import run_auditing as _run_auditing
from cells.cli import scoring as _scoring
from cells.cli import tabling as _tabling
from cells.cli import tasks as _tasks
from cells.cli.door import guarded

__all__ = ["app", "main"]

app = typer.Typer(
    name="proctor",
    help="Experiments on coding agents whose outcome a machine referee decides.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _room in (
    *(_experiments, _amending, _promoting, _results, _scoring, _importing, _predicting, _reporting, _tabling, _judging),
    *(_run_auditing, _revising, _fences, _inventory, _referees, _rates, _tasks, _pools),
):
    _room.add_to(app)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    """Experiments on coding agents whose outcome a machine referee decides."""
    if version:
        from harness.code import proctor_version

        typer.echo(proctor_version())
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line; the entry point `proctor`."""
    # Commands keep nearly all that they make until they end: looking for cycles in it finds none, over and over.
    gc.set_threshold(100_000)
    guarded(app)
