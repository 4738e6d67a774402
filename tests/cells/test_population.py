"""The population of an experiment: who is in, the flow to it, what a freeze refuses, and what a seat is handed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cells.freeze import Frozen, reopen_for_judging
from cells.freeze_view import freeze_lines
from cells.pools.candidates import Pool, candidate_line, header_line, parse_pool, wanted
from cells.population import Flow, settle_population
from cells.run import run
from harness.canonical import digest_bytes
from harness.clock import SystemClock
from harness.errors import ExperimentError
from harness.models.scripted import ScriptedProvider
from harness.population import PopulationEntry
from harness.seats.desk import Desk
from harness.tasks.task import OpenHalf, SealedHalf, Task
from harness.values import Declared, Unit
from harness.views import Previous
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run, outcomes
from tests.cells.test_pools import Judge, answers, made

HEADER: dict[str, Any] = {
    "schema": "proctor-pool/1",
    "seed_namespace": "pool",
    "n": 1,
    "models": {"m": {}, "k": {}},
    "tasks": [{"benchmark": "b", "task": f"t{number}"} for number in range(12)],
}
TASKS = {
    f"b/t{number}": Task(open=OpenHalf(benchmark="b", name=f"t{number}", instruction=""), sealed=SealedHalf())
    for number in range(12)
}


def written(dead: int = 10) -> bytes:
    """A pool of 12 units a model, the first so many dead; the prompt of task N has N characters."""
    lines = []
    for unit, index in wanted(HEADER):
        number = int(unit.task[1:])
        reading = {"accepted": number >= dead, "reading": "FAIL", "passed": 0, "total": 1, "facts": []}
        kept = {"rule": "bare", "code": "x = 1", "reading": reading}
        content = {"prompt_chars": number, "standard": kept, "robust": kept}
        lines.append(candidate_line(HEADER, unit, index, content))
    return header_line(HEADER) + b"".join(lines)


def settled(data: bytes | None = None, **fields: Any) -> Any:
    """The population of such a pool."""
    data = written() if data is None else data
    entry = PopulationEntry(**{"pool": "pool.jsonl", "sha256": digest_bytes(data), **fields})
    return settle_population(entry, data, tasks=TASKS, models=["m", "k"])


def test_the_flow_counts_every_step() -> None:
    """12 units, 10 dead, 3 of them too long, 7 left: 4 within the cap, of the other 3 a sample of 2."""
    found = settled(max_prompt_chars=6, cap=4, disjoint=2)
    row = Flow(
        benchmark="b", model="k", initial=12, dead=10, alive=2, unknown=0, selected=10, excluded=3, capped=3, primary=4,
        disjoint=2,
    )  # fmt: skip
    assert found.flow == (row, replace(row, model="m"))
    assert len(found.units) == 8
    assert found.to_json()["flow"][0] == asdict(row)


def test_samples_are_disjoint_and_drawn_by_the_seed() -> None:
    """The two have no unit in common, come out the same each time, and another seed draws others."""
    draws = {"cap": 4, "disjoint": 4}
    primary, other = settled(**draws), settled(**draws, sample="disjoint")
    assert not primary.units & other.units
    assert (len(primary.units), len(other.units)) == (8, 8)
    assert settled(**draws).units == primary.units != settled(**draws, seed=1).units
    assert {unit.task for unit in primary.units if unit.model == "m"} != {
        unit.task for unit in primary.units if unit.model == "k"
    }


def test_all_units_can_be_selected() -> None:
    """With `all` the living are in; without a cap nobody is drawn."""
    assert len(settled(select="all").units) == 24
    assert len(settled().units) == 20
    assert {row.capped for row in settled().flow} == {0}


@pytest.mark.parametrize(
    ("data", "fields", "words"),
    [
        (written(), {"sha256": "0" * 64}, "expected 0000"),
        (written(dead=0), {}, r"no unit of 24 is left in the primary sample \(select is 'dead', 0 are dead\)"),
        (b"\n".join(written().split(b"\n")[:-3]) + b"\n", {}, "lacks 2 candidates"),
    ],
)
def test_pools_that_are_refused(data: bytes, fields: Mapping[str, Any], words: str) -> None:
    """Another file than is pinned, one that leaves nobody, one that is not whole."""
    with pytest.raises(ExperimentError, match=words):
        settled(data, **fields)


def test_a_unit_without_candidates_is_refused() -> None:
    """A model that the pool was not made with is named."""
    data = written()
    entry = PopulationEntry(pool="pool.jsonl", sha256=digest_bytes(data))
    with pytest.raises(ExperimentError, match=re.escape("has no candidate of b|other|t0")):
        settle_population(entry, data, tasks=TASKS, models=["other"])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"disjoint": 2}, "expected a `cap`"),
        ({"sample": "disjoint"}, "the size of that sample"),
        ({"sha256": "abc"}, "pattern"),
        ({"cap": 0}, "greater than or equal to 1"),
        ({"select": "living"}, "'dead' or 'all'"),
    ],
)
def test_tables_that_are_refused(fields: Mapping[str, Any], words: str) -> None:
    """A draw from nothing, and values that mean nothing."""
    with pytest.raises(ValidationError, match=words):
        PopulationEntry(**{"pool": "p", "sha256": "0" * 64, **fields})


async def frozen_with(folder: Path, pool: Pool, more: str = "", **changes: Any) -> Frozen:
    """The fake experiment with that pool's population."""
    table = f'[population]\npool = "pool.jsonl"\nsha256 = "{pool.digest}"\n{more}'
    return await frozen_run(folder, more=table, model="", **changes)


class Listening:
    """A seat that keeps what pools it was handed."""

    name = "oneshot"

    def __init__(self) -> None:
        self.handed: dict[str, tuple[Previous, ...]] = {}

    def options(self) -> Mapping[str, Any]:
        """None."""
        return {}

    async def sit(self, desk: Desk) -> Declared:
        """Keep the pool."""
        self.handed[desk.cell] = desk.pool
        return Declared()


@pytest.mark.anyio
async def test_only_the_population_is_played_and_each_seat_has_its_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of three units are dead: four cells, a flow in the outlook and on the screen, and the candidates on the desk."""
    pool, seat = await made(tmp_path, monkeypatch), Listening()
    with fakes(
        monkeypatch,
        fake_backend(tmp_path),
        models_scripted=lambda: ScriptedProvider(answers),
        referees_null=lambda _options: Judge(),
        seats_oneshot=lambda: seat,
    ):
        frozen = await frozen_with(tmp_path, pool)
        registration = frozen.registration
        assert {cell.task for cell in registration.cells} == {"Fake/0", "Fake/2"}
        assert registration.outlook["population"]["flow"][0]["primary"] == 2
        assert "tasks, m: 3 units, 2 dead, 1 alive, 0 unknown; 2 selected" in "\n".join(freeze_lines(frozen))
        assert registration.pins["pool pool.jsonl"]["sha256"] == pool.digest
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
        assert len(outcomes(frozen.folder)) == 4
        again, changed = await reopen_for_judging(frozen.folder, clock=SystemClock())
        assert (again.parts.population, changed) == (frozen.parts.population, [])
    unit = Unit(benchmark="tasks", model="m", task="Fake/0")
    assert seat.handed["tasks|Fake/0|B|none|m|1"] == pool.previous(unit)
    assert [len(handed) for _cell, handed in sorted(seat.handed.items())] == [3, 3, 0, 0]


@pytest.mark.anyio
async def test_a_pool_of_another_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the pool was made with must be what is registered."""
    pool = await made(tmp_path, monkeypatch)
    header = {**pool.header, "models": {"m": {"served": "another", "digest": None}}}
    lines = [
        candidate_line(
            header, unit, index, {key: value for key, value in pool.lines[unit][index].items() if key not in PLACE}
        )
        for unit, index in wanted(header)
    ]
    data = header_line(header) + b"".join(lines)
    (tmp_path / "pool.jsonl").write_bytes(data)
    with (
        fakes(
            monkeypatch,
            fake_backend(tmp_path),
            models_scripted=lambda: ScriptedProvider(answers),
            referees_null=lambda _options: Judge(),
        ),
        pytest.raises(ExperimentError, match=r"model 'm' was .*another.* when the pool was made"),
    ):
        await frozen_with(tmp_path, parse_pool(data, "pool"))


PLACE = ("pool", "benchmark", "model", "task", "index")
