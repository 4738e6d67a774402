"""`proctor audit`: whether a record keeps every invariant, and what the gates of its run refused, by arm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cells.cli.door import ExitCode, end, print_json, run_folder

if TYPE_CHECKING:
    from cells.audit.auditing import AuditReading
    from cells.gate_trips import GateTrips, Refusal

__all__ = ["add_to"]

_SHOWN = 50


def add_to(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(audit)


def audit(
    place: Annotated[
        Path, typer.Argument(help="A run folder, a registration's id, or an experiment file frozen once.")
    ],
    runs: Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")] = Path("runs"),
    *,
    head: Annotated[str | None, typer.Option("--head", help="A head kept outside the run: SEQ:SHA256.")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Write the verdict into the record.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Hold a run's record to every invariant, count what each gate refused by arm, and re-read its refusals."""
    from cells.audit.auditing import audit_run, keep_audit
    from cells.cli.heads import witness_of
    from harness.clock import SystemClock

    folder = run_folder(place, runs)
    found = audit_run(folder, witness=witness_of(head))
    gates = None if found.unchecked else _gates(folder, found)
    kept = keep_audit(folder, found, clock=SystemClock()).seq + 1 if keep else None
    if as_json:
        print_json({**found.to_json(), "gates": _gates_json(gates), "kept_at_line": kept})
    else:
        _tell(found, gates, kept)
    if found.verdict != "CLEAN":
        end(ExitCode.VERIFICATION_FAILED)


def _gates(folder: Path, audited: AuditReading) -> GateTrips | None:
    """What the gates refused; None of a record that can't be read for it, which then is a finding of the audit."""
    from cells.gate_trips import audit_gates
    from harness import plugins
    from harness.errors import IntegrityError
    from harness.experiment import Experiment
    from harness.registration import load_registration

    entry = Experiment.model_validate(dict(load_registration(folder).experiment)).referee
    classes = plugins.load("referees", entry.name)(entry.options).classes
    try:
        return audit_gates(folder, classes)
    except IntegrityError:
        if not audited.findings:
            raise
        return None


def _gates_json(gates: GateTrips | None) -> dict[str, Any] | None:
    from dataclasses import asdict

    if gates is None:
        return None
    return {**asdict(gates), "doubtful": [asdict(refusal) for refusal in gates.doubtful]}


def _tell(found: AuditReading, gates: GateTrips | None, kept: int | None) -> None:
    typer.echo(f"audit: {found.verdict}: {len(found.findings)} findings by {len(found.invariants)} invariants")
    typer.echo(f"  record read up to head {found.head}")
    for finding in found.findings[:_SHOWN]:
        typer.echo(f"  {finding.invariant}: {finding.where}: {finding.what}")
    if len(found.findings) > _SHOWN:
        typer.echo(f"  and {len(found.findings) - _SHOWN} more: --json has all")
    if found.unchecked:
        typer.echo(f"  not looked at, since the chain is broken: {', '.join(found.unchecked)}")
    for name, counts in found.counts.items():
        for what, count in counts.items():
            if count:
                typer.echo(f"  counted ({name}): {what}: {count}")
    if kept is not None:
        typer.echo(f"  kept as line {kept} of the record")
    if gates is not None:
        _tell_gates(gates)


def _tell_gates(found: GateTrips) -> None:
    typer.echo("gate trips by arm" + ("" if found.counts else ": none"))
    for count in found.counts:
        typer.echo(f"  {count.gate}, arm {count.arm}: {count.trips} of {count.of}")
    for sentence in found.unequal:
        typer.echo(f"  {sentence}")
    typer.echo(
        f"exhibits refused: {len(found.refusals)}; would have been accepted without the gate: {len(found.doubtful)}"
    )
    for refusal in found.doubtful[:_SHOWN]:
        _show(refusal)
    if len(found.doubtful) > _SHOWN:
        typer.echo(f"  and {len(found.doubtful) - _SHOWN} more: --json has all")
    lost = [refusal for refusal in found.refusals if not refusal.kept]
    for refusal in lost:
        typer.echo(f"  {refusal.cell}, try {refusal.attempt}: its exhibit {refusal.exhibit} is not whole in the run")


def _show(refusal: Refusal) -> None:
    typer.echo(f"  {refusal.cell}, try {refusal.attempt}: {refusal.gate}, without it {refusal.would_be}")
    typer.echo(f"    {refusal.why}")
    typer.echo(f"    exhibit {refusal.exhibit}: a cheat that works, or a false positive")
