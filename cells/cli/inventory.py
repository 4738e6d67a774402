"""Commands about what experiments are made of: models, arms, plugins; images and tasks have files of their own."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cells.cli.arms import arm_check, arm_list, arm_new
from cells.cli.door import print_json
from cells.cli.images import image_build, image_list, image_lock, image_remove

__all__ = ["add_to"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def add_to(app: typer.Typer) -> None:
    """Add the groups to the command line."""
    groups = (
        (
            "image",
            "Build and list the images that workspaces start from.",
            (image_build, image_list, image_lock, image_remove),
        ),
        ("model", "List and fetch embedded models.", (model_list, model_fetch)),
        ("arm", "Start, list and check arms.", (arm_new, arm_list, arm_check)),
    )
    for name, about, commands in groups:
        group = typer.Typer(help=about, no_args_is_help=True, rich_markup_mode=None)
        for command in commands:
            group.command(command.__name__.removeprefix(f"{name}_"))(command)
        app.add_typer(group, name=name)
    app.command("plugins")(plugins_list)


def _note(text: str) -> None:
    typer.echo(text, err=True)


def model_list(*, as_json: AsJson = False) -> None:
    """List the embedded models that can be fetched, and which are here."""
    from harness.models.catalogue import catalogue, stored_path

    rows: list[dict[str, Any]] = [
        {
            "name": entry.name,
            "bytes": entry.bytes,
            "licence": entry.licence,
            "sha256": entry.sha256,
            "here": stored_path(entry).exists(),
        }
        for entry in catalogue().values()
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        here = "here" if row["here"] else "not fetched"
        typer.echo(f"{row['name']}: {row['bytes'] / 1e6:.0f} MB, {row['licence']}, {here}")


def model_fetch(name: Annotated[str, typer.Argument(help="A name that `proctor model list` prints.")]) -> None:
    """Fetch an embedded model and check it against its pinned digest."""
    from cells.preparing import fetch_model

    fetch_model(name, typer.echo)


def plugins_list(
    kind: Annotated[
        str, typer.Argument(help="arms, referees, probes, seats, models or workspaces; default: all.")
    ] = "",
    *,
    as_json: AsJson = False,
) -> None:
    """List the registered plugins of each kind with the distribution they come from."""
    from dataclasses import asdict

    from harness.errors import UsageError, unknown_name
    from harness.plugins import KINDS, table

    if kind and kind not in KINDS:
        raise UsageError(unknown_name("kind", kind, KINDS))
    infos = [info for each in KINDS if kind in {"", each} for info in table(each).values()]
    if as_json:
        print_json([asdict(info) for info in infos])
        return
    for info in infos:
        typer.echo(f"{info.kind}/{info.name}: {info.target} ({info.distribution} {info.version})")
