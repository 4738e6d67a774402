"""
The gates of a run: the fence is qualified, the table recorded, and must hold before anything scored starts; then each
cell has a gate of its own.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from cells.house import House
from cells.journal import Journal
from fences.cell_gate import CellGate, open_cell_gate
from fences.gate import refusal_text
from fences.qualification import Qualification, Qualified, qualify
from fences.rendering import check_requires
from fences.rows import ProbeRow, row_line, rows_to_json
from harness.errors import FenceError, GateRefused

__all__ = ["gate_of_cells", "pass_the_gate"]


async def pass_the_gate(house: House, journal: Journal) -> Qualification:
    """
    The qualification of the run's own fence: the kept one of this very engine, image, policy and set of probes, or a
    new one. It is recorded either way. Raises `GateRefused` unless all of it holds.
    """
    parts, image = house.parts, house.parts.experiment.workspace.image
    check_requires(parts.policy, await parts.backend.guarantees())

    def show(row: ProbeRow) -> None:
        journal.watcher.note(row_line(row))

    try:
        found = await qualify(
            parts.backend, parts.policy, image, run=house.registration.id, clock=house.clock, progress=show
        )
    except FenceError as error:
        raise GateRefused("fence", str(error)) from error
    await journal.add("fence.probed", _entry(found))
    if found.reused:
        journal.watcher.note(f"the fence was qualified at {found.qualification.taken_at}; nothing has changed since")
    if found.passed_over:
        journal.watcher.note(f"the fence was qualified anew, since {found.passed_over}")
    if found.faults:
        raise GateRefused("fence", refusal_text(found.faults))
    return found.qualification


def _entry(found: Qualified) -> dict[str, object]:
    table = found.qualification
    return {
        "receipt": table.receipt.to_json(),
        "receipt_digest": table.receipt.digest,
        "rows": rows_to_json(table.rows),
        "reused": found.reused,
        "taken_at": table.taken_at,
        "digest": table.digest,
    }


def gate_of_cells(house: House, qualification: Qualification) -> AbstractAsyncContextManager[CellGate]:
    """The gate of this session's cells, with what was pinned of the fence; decoys are up until the block is left."""
    pins = house.registration.pins
    names = ("policy", "walls", "tool rules", "gateway")
    return open_cell_gate(
        house.parts.backend,
        house.parts.policy,
        house.parts.experiment.workspace.image,
        rows=qualification.rows,
        pinned={**{name: pins[name] for name in names}, "image": pins["image"]["digest"]},
        clock=house.clock,
    )
