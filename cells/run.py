"""
The main path: a registered experiment, from its frozen pins to its last outcome.

    reopen the registration -> take the record -> probe the fences -> judge the controls -> play what is left
    -> probe once more
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

import anyio

from cells.controls import run_controls, withdrawn
from cells.freeze import Frozen, reopen
from cells.gatehouse import gate_of_cells, pass_the_gate, repeat_the_probes
from cells.house import House, open_models
from cells.journal import Journal, Watcher
from cells.leak_gate import search_the_image
from cells.plan import remaining
from cells.recover import charge_past_tries, close_open_tries
from cells.schedule import play_all
from cells.session_facts import session_facts
from cells.stopping import stop_if_met, stop_line
from harness.clock import Clock, SystemClock
from harness.errors import GateRefused, unwrapped
from harness.outcome import CellOutcome, Spend, outcome_to_json
from harness.record import Record
from harness.values import CellKey, Refused

__all__ = ["Finished", "run"]

Finished: TypeAlias = Literal["finished", "stopped", "incomplete", "interrupted"]
"""How a session ended: every cell has its outcome, a stop rule kept the rest, some have none, or somebody ended it."""


async def run(
    folder: Path, *, watcher: Watcher, clock: Clock | None = None, stop: anyio.Event | None = None
) -> Finished:
    """
    Play what is left of the run in `folder`. Harmless when nothing is left.

    `stop` ends it early and cleanly. Raises `DriftError` when a pin no longer holds, `BusyError` when another process
    has the run, `GateRefused` when a fence, also that of a single cell, does not hold; each is recorded, but for the
    first two.
    """
    clock = clock or SystemClock()
    frozen = await reopen(folder, clock=clock)
    with Record(folder, registration_digest=frozen.registration.digest, clock=clock) as record:
        journal = Journal(record, watcher)
        house = House.of(frozen, clock=clock)
        await _open_session(frozen, house, journal)
        todo = remaining(frozen.registration, journal.progress)
        if not todo:
            watcher.note("every cell has its outcome: nothing is left to run")
            return "finished"
        if journal.progress.stopped is not None:
            watcher.note(stop_line(journal.progress.stopped))
            return "stopped"
        try:
            how = await _until_stopped(house, journal, todo, stop)
        except GateRefused as refusal:
            await close_open_tries(house, journal)
            await journal.add("session.closed", {"how": "refused", "gate": refusal.gate, "detail": refusal.detail})
            raise
        await close_open_tries(house, journal)
        await journal.add("session.closed", {"how": how, "left": len(remaining(frozen.registration, journal.progress))})
        return how


async def _open_session(frozen: Frozen, house: House, journal: Journal) -> None:
    """Begin the record or take it up again: what a dead process left running is ended, what it left open is closed."""
    registration = frozen.registration
    if journal.record.head is None:
        await journal.add("run.opened", {"registration": registration.id})
    for name in await frozen.parts.backend.reap():
        journal.watcher.note(f"removed what a run that died had left behind: {name}")
    interrupted = await close_open_tries(house, journal)
    if interrupted:
        journal.watcher.note(f"{interrupted} tries were cut off when the last session ended; they are run again")
    charge_past_tries(house, journal)
    await stop_if_met(house, journal)


async def _until_stopped(house: House, journal: Journal, todo: Sequence[CellKey], stop: anyio.Event | None) -> Finished:
    """Play the session, or as much of it as there is before `stop` is set."""
    try:
        return await _one_session(house, journal, todo, stop)
    except BaseExceptionGroup as group:
        raise unwrapped(group) from group


async def _one_session(house: House, journal: Journal, todo: Sequence[CellKey], stop: anyio.Event | None) -> Finished:
    stopped = False
    with anyio.CancelScope() as session:

        async def wait_for_stop() -> None:
            nonlocal stopped
            if stop is not None:
                await stop.wait()
                stopped = True
                session.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_for_stop)
            await _play_session(house, journal, todo)
            tasks.cancel_scope.cancel()
    if stopped:
        return "interrupted"
    if journal.progress.stopped is not None and remaining(house.registration, journal.progress):
        return "stopped"
    return "finished" if not remaining(house.registration, journal.progress) else "incomplete"


async def _play_session(house: House, journal: Journal, todo: Sequence[CellKey]) -> None:
    """Fences, controls, then the cells, then the fence again: nothing scored happens before the first two hold."""
    await journal.add("session.started", {**await session_facts(house), "cells": len(todo)})
    qualification = await pass_the_gate(house, journal)
    await search_the_image(house.parts, journal, run=house.registration.id)
    await run_controls(house, journal, sorted({f"{cell.benchmark}/{cell.task}" for cell in todo}))
    playable = await _withdraw(journal, todo)
    async with open_models(house), gate_of_cells(house, qualification) as gate:
        if playable:
            await play_all(replace(house, gate=gate), journal, playable)
            await repeat_the_probes(house, journal, gate)


async def _withdraw(journal: Journal, todo: Sequence[CellKey]) -> list[CellKey]:
    """Refuse every cell of a task whose controls do not hold, in all arms alike."""
    bad = withdrawn(journal)
    playable = []
    for cell in todo:
        why = bad.get(f"{cell.benchmark}/{cell.task}")
        if why is None:
            playable.append(cell)
            continue
        outcome = CellOutcome(
            cell=cell,
            attempt=journal.progress.next_attempt(cell),
            end=Refused(gate="controls", detail=why),
            spend=Spend.nothing("the cell was not built"),
        )
        await journal.add("cell.ended", outcome_to_json(outcome))
    return playable
