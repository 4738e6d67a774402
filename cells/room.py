"""
One cell's room, from its gate to what is left of it: the walls are looked at before the seat sits down and again when
it has ended, nothing of it may be alive, and only then its files are taken out.

What was observed is written into `notes`, which the outcome carries as `room`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fences.cell_gate import CellGate
from harness.errors import FenceError
from harness.ports import Workspace
from harness.tree import Exhibit, Tree, TreeCaps
from harness.walls import KillProof
from harness.workspaces.exhibits import collect

__all__ = ["enter", "leave"]

_SHOWN = 100
"""So many of the entries that an exhibit does not take are named in the record; all are counted."""


async def enter(gate: CellGate, workspace: Workspace, task: Tree, notes: dict[str, Any]) -> None:
    """Pass the cell's own gate, with the task's files laid in. Raises `FenceError` when it refuses."""
    notes["gate"] = {"before": (await gate.before(workspace, task)).to_json()}


async def leave(gate: CellGate, workspace: Workspace, notes: dict[str, Any], *, take: bool) -> Exhibit | None:
    """
    End everything of the seat's, look at the walls once more, count what is alive, and `take` what was left.

    Raises `FenceError` when a wall is open now, or when something of the seat's could not be ended.
    """
    notes["swept"] = await workspace.sweep()
    fault: FenceError | None = None
    try:
        notes["gate"]["after"] = (await gate.after(workspace)).to_json()
    except FenceError as error:
        fault = error  # the kill is proved all the same, and nothing is taken out
    async with workspace.remains() as rest:
        notes["kill"] = asdict(rest.proof)
        alive = _alive(rest.proof)
        if fault is not None or alive is not None:
            raise FenceError("; ".join(str(item) for item in (fault, alive) if item is not None))
        exhibit = await collect(rest, TreeCaps()) if take else None
    if exhibit is not None:
        notes["dropped"] = [{"path": item.path, "why": item.why} for item in exhibit.dropped[:_SHOWN]]
        notes["dropped_count"] = len(exhibit.dropped)
    return exhibit


def _alive(proof: KillProof) -> str | None:
    """Why a proof voids its cell, or None. Where nobody could look, the record says so and no more is concluded."""
    if not proof.alive:
        return None
    return f"{proof.alive} processes of the seat's were alive after everything was ended (seen by: {proof.witness})"
