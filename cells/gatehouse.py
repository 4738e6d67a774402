"""
The gates of a run: the fence is qualified, the table recorded, and must hold before anything scored starts; then each
cell has a gate of its own.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from cells.house import House
from cells.journal import Journal
from fences.cell_gate import CellGate, open_cell_gate
from fences.gate import refusal_text
from fences.qualification import Qualification, Qualified, qualify
from fences.rendering import check_requires
from fences.rows import ProbeRow, row_line, rows_to_json
from harness.errors import Blamed, FenceError, GateRefused
from harness.tree import Tree

__all__ = ["gate_of_cells", "pass_the_gate", "repeat_the_probes"]


async def pass_the_gate(house: House, journal: Journal) -> Qualification:
    """
    The qualification of the run's own fence: the kept one of this very engine, image, policy and set of probes, or a
    new one. It is recorded either way, and so is that of each further image that exhibits are judged in.

    Raises `GateRefused` unless all of it holds.
    """
    parts, image = house.parts, house.parts.experiment.workspace.image
    check_requires(parts.policy, await parts.backend.guarantees())
    for judging in house.referee_images:
        if judging != image:
            beside = await _qualified(house, journal, judging)
            await journal.add("judging.probed", _entry(beside))
            _refuse_faults(beside)
    found = await _qualified(house, journal, image)
    await journal.add("fence.probed", _entry(found))
    _refuse_faults(found)
    return found.qualification


async def _qualified(house: House, journal: Journal, image: str) -> Qualified:
    parts, watcher = house.parts, journal.watcher

    def show(row: ProbeRow) -> None:
        watcher.note(row_line(row))

    try:
        found = await qualify(
            parts.backend, parts.policy, image, run=house.registration.id, clock=house.clock, progress=show
        )
    except FenceError as error:
        raise GateRefused("fence", f"image {image!r}: {error}") from error
    if found.reused:
        watcher.note(f"{image}: the fence was qualified at {found.qualification.taken_at}; nothing has changed since")
    if found.passed_over:
        watcher.note(f"{image}: the fence was qualified anew, since {found.passed_over}")
    return found


def _refuse_faults(found: Qualified) -> None:
    if found.faults:
        raise GateRefused("fence", refusal_text(found.faults))


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


async def repeat_the_probes(house: House, journal: Journal, gate: CellGate) -> None:
    """
    Try every structural probe once more when a session's last cell has ended, in a fresh room behind the same fence,
    and record what was found: one room and one program, as each cell's own gate.

    Raises `GateRefused` when something is not as it was when the fence was qualified. Where no room can be had nothing
    could be looked at, and the record says that.
    """
    found: dict[str, Any] = {"holds": None, "why": "", "findings": {}, "ms": {}}
    try:
        async with house.seat_room() as room:
            reading = await gate.before(room, Tree())
        found |= {"holds": True, "findings": dict(reading.findings), "ms": dict(reading.ms)}
    except FenceError as error:
        found |= {"holds": False, "why": str(error)}
    except Blamed as error:
        found |= {"why": f"{error.cause}: {error}"}
    await journal.add("fence.repeated", found)
    if found["holds"] is False:
        raise GateRefused("fence", f"the fence does not hold any more at the end of the session: {found['why']}")
