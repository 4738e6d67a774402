"""
One try of one cell: a seat in its workspace, what it left, and the referee's word on it.

Whatever fails here on our side makes the try VOID; nothing that fails here makes it a FAIL.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import structlog

from cells.box import box_load
from cells.briefed import briefed
from cells.house import House
from cells.room import enter, leave
from cells.rulings import RULINGS, Left
from cells.sitting import sit_to_the_end
from fences.cell_gate import CellGate
from harness.boundary import MeteredModel, WatchedCheck, WatchedHelper, WatchedWorkspace
from harness.candidates import JudgedCandidate
from harness.canonical import digest_bytes
from harness.errors import Blamed, FenceError, unwrapped
from harness.meter import Meter
from harness.mirror_line import MirrorEnd, MirrorLine
from harness.outcome import CellOutcome
from harness.ports import PublicCheck, Workspace
from harness.seats.desk import Desk
from harness.seeds import SeedBook
from harness.tasks.task import Task
from harness.transcript import Transcript, transcript_path
from harness.tree import Exhibit
from harness.values import CellKey, Declared, End, Halt, Verdict, Void
from harness.workspaces.exhibits import lay
from harness.workspaces.file_helper import open_helper

__all__ = ["play", "transcript_path"]

_log = structlog.get_logger("proctor.cell")


@dataclass
class _Try:
    """What becomes known as a try goes on; whatever stops it, what is known by then is kept."""

    end: End
    mirror: MirrorLine | None = None
    exhibit: Exhibit | None = None
    verdict: Verdict | None = None
    candidates: tuple[JudgedCandidate, ...] = ()
    room: dict[str, Any] = field(default_factory=dict)
    served: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


async def play(house: House, cell: CellKey, attempt: int, *, mirror: MirrorLine | None = None) -> CellOutcome:
    """
    Play one try of `cell` to its outcome; `mirror` is its line to those in lockstep with it. Only a cancellation from
    outside comes through.
    """
    house.playing.add(str(cell))
    try:
        before = await _load(house)
        outcome = await _played(house, cell, attempt, mirror)
        return replace(outcome, room={**outcome.room, "load": {"start": before, "end": await _load(house)}})
    finally:
        house.playing.discard(str(cell))


async def _load(house: House) -> dict[str, Any]:
    return (await anyio.to_thread.run_sync(box_load, len(house.playing))).to_json()


async def _played(house: House, cell: CellKey, attempt: int, mirror: MirrorLine | None) -> CellOutcome:
    """One try, from a fresh meter to its outcome."""
    meter = house.meter(cell)
    path = transcript_path(house.folder, cell, attempt)
    tried = _Try(end=Void(cause="harness", detail="the try did not get as far as its seat"), mirror=mirror)
    with Transcript(path, clock=house.clock) as transcript:
        try:
            if getattr(house.parts.seat, "needs_model", True) and not meter.admits_call() and meter.halted is not None:
                tried.end = meter.halted  # an arm's or the run's budget is used up: the seat need not even sit down
            else:
                await _seat_part(house, cell, meter, transcript, tried)
        except Exception as error:  # noqa: BLE001 - a try that fails on our side is VOID, and the run goes on
            tried.end = _void(error, cell)
        if isinstance(tried.end, (Declared, Halt)) and tried.exhibit is not None:
            await _referee_part(house, cell, tried, path)
        transcript.add("end", kind=tried.end.kind)
    exhibit = None
    if tried.exhibit is not None:
        exhibit = await anyio.to_thread.run_sync(house.store.put_tree, tried.exhibit.tree)
    return CellOutcome(
        cell=cell,
        attempt=attempt,
        end=tried.end,
        spend=meter.spend(),
        verdict=tried.verdict if isinstance(tried.end, Declared) else None,
        would_be=tried.verdict if isinstance(tried.end, Halt) else None,
        candidates=tried.candidates,
        exhibit=exhibit,
        transcript=digest_bytes(path.read_bytes()),
        served_models=tried.served,
        findings=tried.findings,
        room=tried.room,
    )


async def _seat_part(house: House, cell: CellKey, meter: Meter, transcript: Transcript, tried: _Try) -> None:
    """The seat, from an empty workspace to an exhibit; the workspace is gone when this returns."""
    parts, gate = house.parts, house.gate
    assert gate is not None  # cells are played once the fence was qualified
    task = _task(house, cell)
    model = MeteredModel(house.models[cell.model], meter, transcript, served=house.identities[cell.model].served)
    async with house.seat_room() as workspace:
        async with (
            open_helper(workspace, event=partial(_tell_of_helper, transcript)) as helper,
            parts.referee.public_check(task.open, task.sealed, house.rooms(task)) as check,
        ):
            await helper.start()
            await lay(helper, task.open.environment)
            await enter(gate, workspace, task.open.environment, tried.room)
            desk = Desk(
                cell=str(cell),
                task=task.open,
                extras=cell.extras,
                arm=parts.arms[cell.arm],
                pool=() if parts.population is None else parts.population.candidates(cell),
                model=model,
                decoding=parts.decoding,
                workspace=WatchedWorkspace(workspace, meter),
                rules=parts.fence.rules,
                gateway=parts.fence.gateway,
                seeds=SeedBook(parts.experiment.seat.seed_namespace, str(cell)),
                transcript=transcript,
                helper=WatchedHelper(helper, meter),
                check=_watched(check, meter),
                mirror=None if tried.mirror is None else MirrorEnd(line=tried.mirror, paused=meter.paused),
            )
            tried.end = briefed(desk, await sit_to_the_end(parts.seat, desk, meter, clock=house.clock))
        tried.served, tried.findings = tuple(sorted(model.served)), model.findings()
        await _leave(gate, workspace, tried)


async def _leave(gate: CellGate, workspace: Workspace, tried: _Try) -> None:
    """The end of the room. A seat that ended VOID keeps its cause, unless it is the fence that failed."""
    try:
        tried.exhibit = await leave(gate, workspace, tried.room, take=isinstance(tried.end, (Declared, Halt)))
    except FenceError:
        raise
    except Blamed as error:
        if not isinstance(tried.end, Void):
            raise
        tried.findings += (f"the end of the room: {error.cause}: {error}",)
    unclear = tried.room.get("gate", {}).get("after", {}).get("unclear", {})
    if unclear:
        told = "; ".join(f"{name}: {why[:200]}" for name, why in sorted(unclear.items())[:5])
        tried.findings += (
            f"the cell's gate could not tell, at its end, how {len(unclear)} of its walls stood: {told}",
        )


def _task(house: House, cell: CellKey) -> Task:
    return house.parts.tasks[f"{cell.benchmark}/{cell.task}"]


def _tell_of_helper(transcript: Transcript, cause: str, said: str) -> None:
    transcript.add("helper", cause=cause, said=said)


def _watched(check: PublicCheck | None, meter: Meter) -> PublicCheck | None:
    return None if check is None else WatchedCheck(check, meter)


async def _referee_part(house: House, cell: CellKey, tried: _Try, transcript: Path) -> None:
    """Judge what the seat left. A referee that fails makes a declared end VOID; a HALT stays what it is without it."""
    assert tried.exhibit is not None
    try:
        pinned = house.registration.pins[f"suite {cell.benchmark}/{cell.task}"]["digest"]
        left = Left(task=_task(house, cell), suite=pinned, exhibit=tried.exhibit, transcript=transcript)
        ruling = await RULINGS[house.parts.experiment.referee.judges].rule(house, left)
        tried.verdict, tried.candidates = ruling.verdict, ruling.candidates
    except Exception as error:  # noqa: BLE001 - as above
        void = _void(error, cell)
        if isinstance(tried.end, Halt):
            tried.findings += (f"no would-be reading: {void.cause}: {void.detail}",)
        else:
            tried.end = void


def _void(error: Exception, cell: CellKey) -> Void:
    """The VOID that an exception of ours makes of a try."""
    leaf = unwrapped(error) if isinstance(error, BaseExceptionGroup) else error
    if isinstance(leaf, Blamed):
        return Void(cause=leaf.cause, detail=str(leaf))
    _log.error("try failed inside Proctor", cell=str(cell), exc_info=error)
    return Void(cause="harness", detail=f"{type(leaf).__name__}: {leaf}")
