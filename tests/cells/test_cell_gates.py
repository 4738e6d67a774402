"""A run whose cells have gates: one that refuses voids its cell and ends the session, and what was seen is recorded."""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from typing import Any

import pytest

from cells import run as run_module
from cells.run import run
from fences.cell_gate import GateReading
from harness.errors import GateRefused
from harness.record import read_entries
from harness.values import Void
from harness.walls import KillProof
from tests.cells.houses import OpenGate, Quiet, fake_backend, fakes, frozen_run, outcomes
from tests.fake_workspace import FakeWorkspace
from tests.resting import Rest

pytestmark = pytest.mark.anyio


def entries(folder) -> list[Any]:
    """The record."""
    return list(read_entries(folder / "record.jsonl"))


def with_gate(monkeypatch, gate: OpenGate) -> None:
    """The gate of every cell."""
    monkeypatch.setattr(run_module, "gate_of_cells", lambda _house, _qualification: nullcontext(gate))


@pytest.mark.parametrize("at", ["before", "after"])
async def test_a_gate_that_refuses_voids_the_cell_and_stops_the_run(tmp_path, monkeypatch, at):
    """The cell is VOID(fence), the session is closed as refused, and no other cell is started."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        with_gate(monkeypatch, OpenGate(refuses="probe 'net': SERVED", at=at))
        frozen = await frozen_run(tmp_path, concurrency=1)
        with pytest.raises(GateRefused, match="probe 'net': SERVED"):
            await run(frozen.folder, watcher=Quiet())
    (only,) = outcomes(frozen.folder)
    assert isinstance(only.end, Void)
    assert only.end.cause == "fence"
    assert only.exhibit is None
    record = entries(frozen.folder)
    assert [entry.kind for entry in record].count("cell.started") == 1
    assert record[-1].kind == "session.closed"
    assert record[-1].body["how"] == "refused"
    assert "probe 'net': SERVED" in record[-1].body["detail"]


async def test_cells_under_way_behind_the_same_fence_are_cut_off(tmp_path, monkeypatch):
    """Whatever was in flight ends as VOID(interrupted), so that the next session plays it again."""

    class OneRefuses(OpenGate):
        async def before(self, room, task):
            self.at = "before" if room.name.endswith("-0") else ""
            if not self.at:
                import anyio

                await anyio.sleep_forever()
            return await super().before(room, task)

    with fakes(monkeypatch, fake_backend(tmp_path)):
        with_gate(monkeypatch, OneRefuses(refuses="open"))
        frozen = await frozen_run(tmp_path, concurrency=2)
        monkeypatch.setattr(run_module, "run_controls", no_controls)
        with pytest.raises(GateRefused, match="open"):
            await run(frozen.folder, watcher=Quiet())
    assert sorted(outcome.end.cause for outcome in outcomes(frozen.folder)) == ["fence", "interrupted"]


async def no_controls(*_: Any) -> None:
    """Rooms are counted from the first cell on."""


@pytest.mark.parametrize(("alive", "cause"), [(0, None), (2, "fence"), (None, None)])
async def test_the_kill_is_proved_in_the_record(tmp_path, monkeypatch, alive, cause):
    """What was counted stands in the outcome; something alive voids the cell and stops the run; unknown is told as that."""

    class Room(FakeWorkspace):
        @asynccontextmanager
        async def remains(self):
            yield Rest(self, KillProof(before=3, alive=alive, witness="pid namespace", seconds=0.25))

    backend = fake_backend(tmp_path, make=lambda name: Room(name=name))
    with fakes(monkeypatch, backend):
        frozen = await frozen_run(tmp_path, concurrency=1)
        if cause is None:
            assert await run(frozen.folder, watcher=Quiet()) == "finished"
        else:
            with pytest.raises(GateRefused, match="2 processes of the seat's were alive"):
                await run(frozen.folder, watcher=Quiet())
    first = outcomes(frozen.folder)[0]
    assert first.room["kill"] == {"before": 3, "alive": alive, "witness": "pid namespace", "seconds": 0.25}
    assert getattr(first.end, "cause", None) == cause


async def test_a_cells_room_is_described_in_its_outcome(tmp_path, monkeypatch):
    """Both readings of the gate, what was swept, and the load of the machine at both ends, as bare numbers."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path)
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
    for outcome in outcomes(frozen.folder):
        room = outcome.room
        assert set(room) >= {"gate", "swept", "kill", "load", "dropped", "dropped_count"}
        assert set(room["gate"]) == {"before", "after"}
        for load in room["load"].values():
            assert set(load) == {"load_1m", "runnable", "cpus", "free_memory_bytes", "cells"}
            assert load["cpus"] >= 1
            assert 1 <= load["cells"] <= 2
            assert load["free_memory_bytes"] > 0


async def test_a_seat_that_ended_void_keeps_its_cause(tmp_path, monkeypatch):
    """An engine that fails at the end of a room says nothing about why the model server failed before."""

    class Room(FakeWorkspace):
        async def sweep(self):
            from harness.errors import WorkspaceError

            raise WorkspaceError("the engine is gone")

    backend = fake_backend(tmp_path, make=lambda name: Room(name=name))
    with fakes(monkeypatch, backend):
        frozen = await frozen_run(tmp_path, model="[models.options]\nfail = [{}]", retries=0)
        await run(frozen.folder, watcher=Quiet())
    first = outcomes(frozen.folder)[0]
    assert isinstance(first.end, Void)
    assert first.end.cause != "workspace"
    assert "the engine is gone" in first.findings[-1]


async def test_walls_that_could_not_be_looked_at_in_the_end_are_a_finding(tmp_path, monkeypatch):
    """A seat that leaves no room to look loses nothing, and whoever reads its outcome is told."""

    class Blind(OpenGate):
        async def after(self, room):
            return GateReading(findings={}, unclear={"gate": "the program was killed"}, ms={})

    with fakes(monkeypatch, fake_backend(tmp_path)):
        with_gate(monkeypatch, Blind())
        frozen = await frozen_run(tmp_path, concurrency=1)
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
    for outcome in outcomes(frozen.folder):
        assert any("how 1 of its walls stood: gate: the program was killed" in said for said in outcome.findings)
