"""Commands about fences: show, probe, qualify, replay, new-probe; audit stands in `auditing.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cells.cli.auditing import audit
from cells.cli.door import ExitCode, end, print_json, run_async, run_folder

if TYPE_CHECKING:
    from fences.rows import ProbeRow

__all__ = ["add_to"]

Runs = Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Experiment = Annotated[
    Path | None, typer.Argument(help="An experiment file whose fence to take; without one, the default fence.")
]
Backend = Annotated[str, typer.Option("--backend", help="docker, bubblewrap, a plugin's, or auto.")]
Image = Annotated[str, typer.Option("--image", help="The image to probe in, where no experiment is named.")]
RUNS = Path("runs")


def add_to(app: typer.Typer) -> None:
    """Add the group to the command line."""
    group = typer.Typer(
        help="Show, probe, qualify, replay and audit fences, and start a new probe.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for command in (show, probe, qualify, replay, audit):
        group.command()(command)
    group.command("new-probe")(new_probe)
    app.add_typer(group, name="fence")


def show(
    experiment: Experiment = None, backend: Backend = "auto", image: Image = "proctor-seat", *, as_json: AsJson = False
) -> None:
    """Print each layer that the policy renders, and where each rule came from."""
    from dataclasses import asdict

    from cells.probing import probing
    from fences.rendering import provenance

    what = run_async(lambda: probing(experiment, backend=backend, image=image))
    rows = provenance(what.policy)
    options = dict(what.backend.options(what.fence.walls))
    promises = run_async(what.backend.guarantees)
    missing = {name: why for name, why in promises.items() if why is not None}
    if as_json:
        policy, rules = what.policy.to_json(), [asdict(row) for row in rows]
        print_json({"policy": policy, "rules": rules, "not_enforced": missing, "options": options})
        return
    typer.echo(f"policy {what.policy.digest}")
    for row in rows:
        typer.echo(f"  {row.layer}: {row.rule}   <- {row.came_from}")
    for name, why in missing.items():
        typer.echo(f"  not enforced by {what.backend.name}: {name}: {why}")
    typer.echo(f"options for {what.backend.name}")
    print_json(options)


def probe(
    experiment: Experiment = None, backend: Backend = "auto", image: Image = "proctor-seat", *, as_json: AsJson = False
) -> None:
    """Take the whole probe table, with the fence up and down, and say whether a run could start."""
    from cells.probing import probing, take_table

    what = run_async(lambda: probing(experiment, backend=backend, image=image))
    rows, faults, receipt = run_async(lambda: take_table(what, say=_note))
    if as_json:
        from fences.rows import rows_to_json

        print_json(
            {"holds": not faults, "faults": list(faults), "receipt": receipt.to_json(), "rows": rows_to_json(rows)}
        )
    else:
        _print_rows(rows, f"{what.backend.name}, policy {what.policy.digest}")
        for fault in faults:
            typer.echo(f"does not hold: {fault}")
        typer.echo("the fence holds" if not faults else "the gate would refuse to start a run")
    if faults:
        end(ExitCode.GATE_REFUSED)


def qualify(
    experiment: Experiment = None,
    backend: Annotated[str, typer.Option("--backend", help="docker, bubblewrap, a plugin's, auto, or all.")] = "all",
    image: Image = "proctor-seat",
    *,
    again: Annotated[bool, typer.Option("--again", help="Take the table even if one is kept for the same.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show that every probe is held by the fence and fires under its weakening; kept for runs behind the very same."""
    from cells.qualifying import qualified_to_json, qualify_here

    results = run_async(lambda: qualify_here(experiment, backend=backend, image=image, again=again, say=_note))
    if as_json:
        print_json(qualified_to_json(results))
    else:
        for one in results:
            _print_rows(one.found.qualification.rows, f"{one.backend}, policy {one.found.qualification.receipt.policy}")
            for fault in one.faults:
                typer.echo(f"does not hold on {one.backend}: {fault}")
            when = f"as at {one.found.qualification.taken_at}" if one.found.reused else f"in {one.ms / 1000:.1f} s"
            typer.echo(f"{one.backend}: {'does not hold' if one.faults else 'holds'}, {when}")
    if any(one.faults for one in results):
        end(ExitCode.GATE_REFUSED)


def _note(text: str) -> None:
    typer.echo(text, err=True)


def _print_rows(rows: tuple[ProbeRow, ...], where: str) -> None:
    from rich.console import Console
    from rich.table import Table

    from fences.rows import row_line

    table = Table(title=f"probes on {where}", title_justify="left")
    for column in ("probe", "language", "fence up", "fence down", "weakening", "holds", "ms"):
        table.add_column(column, justify="right" if column == "ms" else "left", overflow="fold")
    for row in rows:
        holds = "not measured" if row.holds is None else "yes" if row.holds else "NO"
        up = f"{row.finding_up or '-'}: {row.evidence_up}"[:60] if row.kind == "breach" else row_line(row)
        down = row.finding_down or ("not measured" if row.kind == "breach" else "-")
        table.add_row(row.probe, row.language, up, str(down), row.weakening, holds, f"{row.ms:.0f}")
    Console(width=None if Console().is_terminal else 160).print(table)


def replay(
    place: Annotated[Path, typer.Argument(help="A run folder or a registration's id.")],
    runs: Runs = RUNS,
    *,
    node: Annotated[
        bool, typer.Option("--node", help="Another machine is expected: compare findings, only name conditions.")
    ] = False,
    image: Annotated[str, typer.Option("--image", help="Take the table in this image instead of the run's.")] = "",
    as_json: AsJson = False,
) -> None:
    """Take a run's probe table again, here, and compare it with the recorded one row by row."""
    from cells.probing import replay_table

    folder = run_folder(place, runs)
    found: dict[str, Any] = run_async(lambda: replay_table(folder, image=image or None, other_node=node, say=_note))
    if as_json:
        print_json(found)
    else:
        for line in _replay_lines(found):
            typer.echo(line)
    if not found["identical"]:
        end(ExitCode.VERIFICATION_FAILED)


def _replay_lines(found: dict[str, Any]) -> list[str]:
    lines = [f"recorded at entry {found['entry']}, replayed in image {found['image']}: {found['rows']} rows"]
    lines += [
        f"other conditions: {item['part']}: recorded {item['recorded']}, here {item['replayed']}"
        for item in found["receipt_differences"]
    ]
    for item in found["differences"]:
        why = ", ".join(item["explained_by"])
        why = why if why == "unexplained" else f"explained by {why}"
        what = f"{item['probe']}: {item['field']}"
        lines.append(f"differs: {what}: recorded {item['recorded']}, replayed {item['replayed']} ({why})")
    same = "the findings are identical" if found["compared"] == "findings" else "identical"
    return [*lines, same if found["identical"] else "not identical"]


def new_probe(
    name: Annotated[str, typer.Argument(help="The probe's name, in small letters and hyphens.")],
    language: Annotated[
        str, typer.Option("--language", help="What the attempt is written in: python or shell.")
    ] = "python",
    folder: Annotated[Path, typer.Option("--folder", help="Where the package's folder is made.")] = Path(),
) -> None:
    """Write a package with a new probe, its weakening and its tests."""
    from fences.scaffold import new_probe as work

    written = work(name, language, folder)
    for path in written:
        typer.echo(f"wrote {path}")
    package = written[0].parent
    typer.echo(f"next: python -m pytest {package}, then pip install -e {package}, then proctor fence qualify")
