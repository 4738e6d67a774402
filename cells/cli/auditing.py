"""`proctor fence audit`: what seats of a run tried, what they were served, and what nobody could see."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cells.cli.door import ExitCode, end, print_json, run_folder

if TYPE_CHECKING:
    from cells.fence_audit import Audit

__all__ = ["audit"]

_SHOWN = 50


def audit(
    place: Annotated[Path, typer.Argument(help="A run folder or a registration's id.")],
    runs: Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")] = Path("runs"),
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """List every served attempt outside the policy, count the others, and say what could not be seen."""
    from dataclasses import asdict

    from cells.fence_audit import audit_fence

    found = audit_fence(run_folder(place, runs))
    if as_json:
        print_json(asdict(found))
    else:
        _tell(found)
    if found.breaches:
        end(ExitCode.VERIFICATION_FAILED)


def _tell(found: Audit) -> None:
    typer.echo(f"{found.tries} tries read")
    for row in found.attempts:
        counts = f"{row.served} served, {row.refused} refused, {row.absent} absent, {row.failed} failed"
        typer.echo(f"  {row.way}, arm {row.arm}: {counts}")
    for title, rows in (("served outside the policy", found.breaches), ("refused", found.turned_down)):
        typer.echo(f"{title}: {len(rows)}")
        for item in rows[:_SHOWN]:
            typer.echo(f"  {item['cell']}, try {item['try']}, event {item['event']}: {item['way']}: {item['asked']!r}")
            typer.echo(f"    {item['why']}")
        if len(rows) > _SHOWN:
            typer.echo(f"  and {len(rows) - _SHOWN} more: --json has all")
    typer.echo(f"not seen: {len(found.unseen)}")
    for text in found.unseen:
        typer.echo(f"  {text}")
