"""A whole experiment on fakes: the real main path with a fake workspace backend and a scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import anyio
import pytest

from cells import run as run_module
from cells.freeze import Frozen, freeze
from cells.house import House
from cells.journal import Journal
from cells.plan import Progress
from fences.cell_gate import GateReading
from fences.policy import FencePolicy
from fences.qualification import Qualification
from fences.receipt import registered_probes, take_receipt
from fences.rows import ABILITY, ProbeRow, rows_to_json
from harness import plugins
from harness.clock import SystemClock, now_text
from harness.errors import FenceError
from harness.outcome import CellOutcome
from harness.record import read_entries
from harness.views import Finding
from tests.fake_workspace import FakeBackend, FakeWorkspace

TASKS = [
    {
        "task_id": f"Fake/{number}",
        "prompt": f'def task_{number}(x):\n    """Return x plus {number}."""\n',
        "entry_point": f"task_{number}",
        "canonical_solution": f"    return x + {number}\n",
        "contract": "",
        "base_input": [[1]],
        "plus_input": [[2]],
        "atol": 0,
    }
    for number in range(3)
]

EXPERIMENT = """
name = "fake"
question = "Does the house hold?"
arms = {arms}
concurrency = {concurrency}
replicates = {replicates}
{more}
[[tasks]]
source = "evalplus:tasks.jsonl"
[[models]]
name = "m"
provider = "scripted"
model = "script"
{model}
[seat]
kind = "{seat}"
seed_namespace = "fake"
{seat_options}
[workspace]
backend = "docker"
[referee]
name = "null"
[retries]
void = {retries}
[analysis]
[[analysis.contrasts]]
name = "P over B"
treatment = "{treatment}"
control = "{control}"
"""


def write_experiment(folder: Path, **changes: Any) -> Path:
    """Write an experiment of three tasks into `folder` and return its file."""
    values = {
        "arms": '["B", "P"]',
        "treatment": "P",
        "control": "B",
        "concurrency": 2,
        "replicates": 1,
        "retries": 1,
        "more": "",
        "model": '[models.options]\nreplies = ["```python\\nx = 1\\n```"]',
        "seat": "oneshot",
        "seat_options": "",
        **changes,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in TASKS), "utf-8")
    path = folder / "experiment.toml"
    path.write_text(EXPERIMENT.format(**values), "utf-8")
    return path


class Quiet:
    """A watcher that keeps what it was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.kinds: list[str] = []

    def saw(self, kind: str, body: Any, progress: Progress) -> None:
        """Keep the kind."""
        self.kinds.append(kind)

    def note(self, text: str) -> None:
        """Keep the text."""
        self.notes.append(text)


class OpenGate:
    """A gate of cells that finds nothing: a fake has no walls. `refuses` has it say no, before the seat or after."""

    def __init__(self, *, refuses: str = "", at: str = "") -> None:
        self.refuses, self.at = refuses, at

    async def before(self, _room: object, _task: object) -> GateReading:
        """Nothing is looked at."""
        return await self._look("before")

    async def after(self, _room: object) -> GateReading:
        """Nothing is looked at."""
        return await self._look("after")

    async def _look(self, at: str) -> GateReading:
        await anyio.lowlevel.checkpoint()
        if at == self.at:
            raise FenceError(self.refuses)
        return GateReading(findings={}, ms={"all": 0.0})


def made_up_rows() -> tuple[ProbeRow, ...]:
    """A row for every registered probe and ability of the default policy, each of which holds."""
    breaches = [
        ProbeRow.of(
            probe=probe.name,
            language=probe.language,
            expected=[Finding.DENIED],
            up=(Finding.DENIED, "made up"),
            down=(Finding.SERVED, "made up"),
            weakening="made up",
        )
        for probe in registered_probes()
    ]
    abilities = [
        ProbeRow.of(
            probe=ABILITY + name, language="python", kind="ability", expected=[Finding.SERVED], up=(Finding.SERVED, "")
        )
        for name in FencePolicy().must_work
    ]
    return (*breaches, *abilities)


async def made_up_table(house: House) -> dict[str, Any]:
    """The entry of a probe table that was never taken, for the receipt of here and now."""
    receipt = await take_receipt(house.parts.backend, house.parts.policy, house.parts.experiment.workspace.image)
    table = Qualification(receipt=receipt, rows=made_up_rows(), taken_at=now_text(house.clock))
    return {
        "receipt": receipt.to_json(),
        "receipt_digest": receipt.digest,
        "rows": rows_to_json(table.rows),
        "reused": False,
        "taken_at": table.taken_at,
        "digest": table.digest,
    }


@contextmanager
def fakes(
    monkeypatch: pytest.MonkeyPatch, backend: FakeBackend, *, probed: bool = False, **others: Any
) -> Iterator[None]:
    """
    `docker` is the fake backend, the gates are open (a fake has no fence to probe and no image to search), `others`
    replace plugins, as `kind_name`. With `probed` the record gets a probe table in which every row holds.
    """
    real = plugins.load

    def load(kind: plugins.Kind, name: str) -> Any:
        if kind == "workspaces":
            return lambda: backend
        return others.get(f"{kind}_{name}") or real(kind, name)

    async def open_gate(house: House, journal: Journal) -> None:
        await anyio.lowlevel.checkpoint()
        if probed:
            await journal.add("fence.probed", await made_up_table(house))

    monkeypatch.setattr(plugins, "load", load)

    async def no_image(_parts: object, _journal: object, *, run: str) -> None:
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(run_module, "pass_the_gate", open_gate)
    monkeypatch.setattr(run_module, "gate_of_cells", lambda _house, _qualification: nullcontext(OpenGate()))
    monkeypatch.setattr(run_module, "search_the_image", no_image)
    yield


def fake_backend(folder: Path, **changes: Any) -> FakeBackend:
    """A backend whose workspaces are folders below `folder`."""
    return FakeBackend(name="docker", **changes)


async def frozen_run(folder: Path, **changes: Any) -> Frozen:
    """Write and freeze an experiment."""
    return await freeze(write_experiment(folder, **changes), folder / "runs", clock=SystemClock())


def outcomes(folder: Path) -> list[CellOutcome]:
    """The outcomes of a run, in the order of the record."""
    from harness.outcome import outcome_from_json

    return [
        outcome_from_json(entry.body) for entry in read_entries(folder / "record.jsonl") if entry.kind == "cell.ended"
    ]


__all__ = [
    "FakeBackend",
    "FakeWorkspace",
    "Quiet",
    "fake_backend",
    "fakes",
    "frozen_run",
    "made_up_rows",
    "outcomes",
    "write_experiment",
]
