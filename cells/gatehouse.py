"""The gate of a run: the probe table is taken, recorded, and must hold before anything scored starts."""

from __future__ import annotations

from cells.house import House
from cells.journal import Journal
from fences.gate import gate
from fences.receipt import registered_probes, take_receipt
from fences.rendering import check_requires
from fences.rows import ProbeRow, row_line, rows_to_json
from fences.table import probe_all
from harness.errors import FenceError, GateRefused

__all__ = ["pass_the_gate"]


async def pass_the_gate(house: House, journal: Journal) -> None:
    """Take the probe table of the run's own fence, record it, and raise `GateRefused` unless all of it holds."""
    parts, image = house.parts, house.parts.experiment.workspace.image
    check_requires(parts.policy, await parts.backend.guarantees())
    receipt = await take_receipt(parts.backend, parts.policy, image)

    def show(row: ProbeRow) -> None:
        journal.watcher.note(row_line(row))

    try:
        rows = await probe_all(
            parts.backend, parts.policy, image, run=house.registration.id, progress=show, clock=house.clock
        )
    except FenceError as error:
        raise GateRefused("fence", str(error)) from error
    await journal.add(
        "fence.probed", {"receipt": receipt.to_json(), "receipt_digest": receipt.digest, "rows": rows_to_json(rows)}
    )
    names = [probe.name for probe in registered_probes()]
    now = await take_receipt(parts.backend, parts.policy, image)
    gate(rows, parts.policy, probes=names, taken_for=receipt, now=now)
