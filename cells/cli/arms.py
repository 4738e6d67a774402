"""Commands about arms: new, list, check."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cells.cli.door import ExitCode, end, print_json

__all__ = ["arm_check", "arm_list", "arm_new"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


class _Kind(StrEnum):
    text = "text"
    packet = "packet"


def arm_new(
    name: Annotated[str, typer.Argument(help="The arm's name, and its folder's.")],
    kind: Annotated[_Kind, typer.Option("--kind", help="A text before the task, or a packet for each round.")] = (
        _Kind.text
    ),
    placebo_for: Annotated[
        str | None, typer.Option("--placebo-for", help="The arm that this one is to have the shape of.")
    ] = None,
    *,
    package: Annotated[bool, typer.Option("--package", help="Write an installable package around the folder.")] = False,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Where it is made; default: arms, a package: here.")
    ] = None,
) -> None:
    """Write an arm to start from, which passes `proctor arm check`."""
    from cells.arm_scaffold import NewArm, new_arm

    parent = folder or (Path() if package else Path("arms"))
    asked = NewArm(name=name, kind=kind.value, placebo_for=placebo_for, package=package)
    written = new_arm(asked, parent)
    for path in written:
        typer.echo(f"wrote {path}")
    if placebo_for is not None:
        typer.echo(
            f"the text is a draft with the shape of {placebo_for}: write it anew as sentences that advise nothing"
        )
    top = written[0].parent
    if package:
        typer.echo(f"next: pip install -e {top}, then python -m pytest {top}, then proctor arm check {name}")
    else:
        typer.echo(f'next: proctor arm check {top}, then {{ folder = "{top.as_posix()}" }} among the arms')


def arm_list(
    *,
    folder: Annotated[Path | None, typer.Option("--folder", help="List the arm folders in this one too.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the registered arms with the digest of their bytes and the seats they run in."""
    from cells.arm_listing import listed

    rows = listed(folder)
    if as_json:
        print_json(rows)
        return
    for row in rows:
        more = f", placebo for {row['placebo_for']}" if row["placebo_for"] else ""
        more += ", wants its code echoed" if row["nonce"] else ""
        typer.echo(f"{row['name']}: {row['bytes']} bytes, sha256 {row['sha256']}, {row['distribution']}{more}")


def arm_check(
    name: Annotated[str, typer.Argument(help="A registered arm, an arm's folder, or a text file of your own.")],
    *,
    experiment: Annotated[
        Path | None, typer.Option("--experiment", help="Take the arm as this experiment makes it, options included.")
    ] = None,
    pool: Annotated[
        Path | None, typer.Option("--pool", help="Say on how many of this pool's candidates its controller fires.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check an arm: its bytes, what it may see, its words, a placebo against its treatment, a controller on a pool."""
    from dataclasses import asdict

    from cells.arm_listing import checked

    findings = checked(name, experiment=experiment, pool=pool)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            typer.echo(f"{finding.level}: {finding.rule}: {finding.detail}")
    if any(finding.level == "error" for finding in findings):
        end(ExitCode.GATE_REFUSED)
