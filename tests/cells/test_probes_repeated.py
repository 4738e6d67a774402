"""The probes are tried again when a session's last cell has ended, and the record says what they found then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import anyio
import pytest

from cells import run as run_module
from cells.run import run
from fences.cell_gate import GateReading
from harness.errors import FenceError, GateRefused, WorkspaceError
from harness.record import Entry, read_entries
from harness.views import Finding
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run, outcomes

pytestmark = pytest.mark.anyio


class LastGate:
    """A gate that lets six cells in, each with a look before and after, and then does what the test says."""

    def __init__(self, last: Callable[[], GateReading]) -> None:
        self.last, self.looks = last, 0

    async def before(self, _room: object, _task: object) -> GateReading:
        """Open for the cells."""
        await anyio.lowlevel.checkpoint()
        self.looks += 1
        return GateReading(findings={}, ms={}) if self.looks <= 6 else self.last()

    async def after(self, _room: object) -> GateReading:
        """Open."""
        await anyio.lowlevel.checkpoint()
        return GateReading(findings={}, ms={})


def held() -> GateReading:
    """All is as it was."""
    return GateReading(findings={"raw-socket": Finding.DENIED}, ms={"all": 3.0})


def opened() -> GateReading:
    """A wall is down now."""
    raise FenceError("probe 'raw-socket': SERVED; it was DENIED when qualified")


def gone() -> GateReading:
    """The engine went away with the last cell."""
    raise WorkspaceError("no room can be opened")


async def played(folder: Path, monkeypatch: pytest.MonkeyPatch, last: Callable[[], GateReading]) -> tuple[Path, str]:
    """A whole run whose gate does `last` at its end: its folder, and how the run ended."""
    with fakes(monkeypatch, fake_backend(folder)):
        frozen = await frozen_run(folder)
        gate = LastGate(last)
        monkeypatch.setattr(run_module, "gate_of_cells", lambda _house, _qualification: nullcontext(gate))
        try:
            how: str = await run(frozen.folder, watcher=Quiet())
        except GateRefused as refusal:
            how = f"refused by {refusal.gate}: {refusal.detail}"
    assert len(outcomes(frozen.folder)) == 6
    return frozen.folder, how


def last_two(folder: Path) -> list[Entry]:
    """The repetition, and how the session was closed."""
    return list(read_entries(folder / "record.jsonl"))[-2:]


async def test_the_repetition_stands_before_the_end_of_the_session(tmp_path, monkeypatch):
    """With what was found, by probe."""
    folder, how = await played(tmp_path, monkeypatch, held)
    repeated, closed = last_two(folder)
    assert how == "finished"
    assert (repeated.kind, closed.body["how"]) == ("fence.repeated", "finished")
    assert repeated.body == {"holds": True, "why": "", "findings": {"raw-socket": "DENIED"}, "ms": {"all": 3.0}}


async def test_a_fence_that_is_open_at_the_end_refuses(tmp_path, monkeypatch):
    """Every cell keeps its outcome; the session is refused, and the record says why."""
    folder, how = await played(tmp_path, monkeypatch, opened)
    repeated, closed = last_two(folder)
    assert how.startswith("refused by fence: the fence does not hold any more at the end of the session: probe")
    assert (repeated.body["holds"], repeated.body["findings"]) == (False, {})
    assert "it was DENIED when qualified" in repeated.body["why"]
    assert (closed.body["how"], closed.body["gate"]) == ("refused", "fence")


async def test_where_nobody_could_look_the_record_says_so(tmp_path, monkeypatch):
    """A room that can't be had is no open fence, and no fence that holds."""
    folder, how = await played(tmp_path, monkeypatch, gone)
    repeated, closed = last_two(folder)
    assert how == "finished"
    assert (repeated.body["holds"], repeated.body["why"]) == (None, "workspace: no room can be opened")
    assert closed.body["how"] == "finished"


async def test_a_session_that_plays_nothing_repeats_nothing(tmp_path, monkeypatch):
    """A second run of a finished one adds no line."""
    folder, _how = await played(tmp_path, monkeypatch, held)
    before = (folder / "record.jsonl").read_bytes()
    with fakes(monkeypatch, fake_backend(tmp_path)):
        assert await run(folder, watcher=Quiet()) == "finished"
    assert (folder / "record.jsonl").read_bytes() == before


async def test_a_session_tells_what_plays_it(tmp_path, monkeypatch):
    """Code, machine and each pinned plugin as they are here, equal to what was frozen."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path)
        await run(frozen.folder, watcher=Quiet())
    (started,) = (item for item in read_entries(frozen.folder / "record.jsonl") if item.kind == "session.started")
    pins = frozen.registration.pins
    assert started.body["code"] == pins["code"]["sha256"]
    assert started.body["plugins"]["referees/null"]["sha256"] == pins["plugin referees/null"]["sha256"]
    assert len(started.body["plugins"]) == sum(name.startswith("plugin ") for name in pins)
    assert started.body["node"]
