"""
What our walls cost: a whole cell of ours against the least that docker-py can do, one after the other in turn.

There are two floors, since what a seat left is collected from a second container, after the seat's own is dead: "bare"
is one container and one program, "bare, collect" the same with its files in memory that a second container keeps and
hands out once the first was killed. Each kind of cell of ours is held against the floor that does the same work.

    python bench/trivial_cell.py [--n 10]

"ours" is a workspace and one program in it, "ours, collect" takes out what is left too, and "played" is a whole cell of
a run: null seat, null referee, transcript, its end proved, the record's two lines on the disk. What the cell's own gate
costs is measured by itself: bench/cell_gate.py.

Prints medians and minimums in milliseconds and the ratio of the medians to the floor's. Ends with status 1 when a cell
of ours takes over 1.5 times as long; 1.3 is what it should stay below.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import anyio
import docker
from memory import EXPERIMENT, task

from cells.cell import play
from cells.freeze import freeze
from cells.house import House, open_models
from fences.cell_gate import CellGate, GateReading
from harness.canonical import canonical_bytes
from harness.clock import SystemClock, fresh_token
from harness.outcome import outcome_to_json
from harness.record import Record
from harness.tree import TreeCaps
from harness.values import CellKey
from harness.walls import Walls
from harness.workspaces.docker import DockerBackend
from harness.workspaces.docker_images import engine_image
from harness.workspaces.files import collect
from harness.workspaces.images import DEFAULT_IMAGE, ImageStore

TARGET, LIMIT = 1.3, 1.5
BARE, BARE_COLLECT = "bare docker-py", "bare, collect"
FLOORS = {BARE: BARE, BARE_COLLECT: BARE_COLLECT, "ours": BARE, "ours, collect": BARE_COLLECT, "played": BARE_COLLECT}
"""Which floor each kind is held against."""


class NoGate:
    """A gate that does not look."""

    async def before(self, _room: object, _task: object) -> GateReading:
        """Nothing is looked at."""
        return await self.after(_room)

    async def after(self, _room: object) -> GateReading:
        """Nothing is looked at."""
        await anyio.lowlevel.checkpoint()
        return GateReading(findings={}, ms={})


def bare_cell(api: docker.APIClient, image: str) -> None:
    """The least: create, start, one program, remove, with no wall but the missing network."""
    host = api.create_host_config(network_mode="none")
    made = api.create_container(image, ["sleep", "100"], host_config=host)["Id"]
    try:
        api.start(made)
        api.exec_start(api.exec_create(made, ["true"])["Id"])
    finally:
        api.remove_container(made, force=True)


def bare_collect(api: docker.APIClient, image: str) -> None:
    """The least that collects from a dead cell: its folder in memory, kept by a second container, as an archive."""
    name = f"proctor-bench-{fresh_token(6)}"
    options = {"type": "tmpfs", "device": "tmpfs", "o": "size=64m"}
    api.create_volume(name, driver="local", driver_opts=options)
    made = []
    try:
        for mode in ("rw", "ro"):
            host = api.create_host_config(network_mode="none", binds={name: {"bind": "/workspace", "mode": mode}})
            made.append(api.create_container(image, ["sleep", "100"], host_config=host)["Id"])
        api.start(made[0])
        api.exec_start(api.exec_create(made[0], ["true"])["Id"])
        api.start(made[1])
        api.kill(made[0])
        api.wait(made[0])
        stream, _ = api.get_archive(made[1], "/workspace")
        assert sum(map(len, stream)) > 0
    finally:
        for one in reversed(made):
            api.remove_container(one, force=True)
        api.remove_volume(name)


async def our_cell(backend: DockerBackend, image: str, *, with_collect: bool) -> None:
    """Ours: sealed walls, one program, the way out proved; and, if asked, what the seat left taken out."""
    async with backend.open(Walls(image=image), run="bench") as room:
        ran = await room.exec(["true"])
        assert ran.status == 0
        if with_collect:
            async with room.remains() as rest:
                await collect(rest, TreeCaps())


async def played_cell(house: House, record: Record, cells: Iterator[CellKey]) -> None:
    """A cell as a run plays it, from its first line in the record to its outcome there."""
    cell = next(cells)
    record.append("cell.started", {"cell": asdict(cell), "attempt": 1})
    outcome = await play(house, cell, 1)
    assert outcome.outcome_class == "FAIL", outcome  # the null referee's word on an empty exhibit
    record.append("cell.ended", outcome_to_json(outcome))


async def measure(n: int) -> dict[str, list[float]]:
    """Seconds of each kind of cell, `n` of each, taken in turn so that a busy moment hits all of them."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "experiment.toml"
        (source.parent / "tasks.jsonl").write_bytes(canonical_bytes(task(0)) + b"\n")
        null = EXPERIMENT.format(replicates=n + 1, backend="docker").replace("steps", "#")
        source.write_text("\n".join(line for line in null.splitlines() if not line.startswith("options = { #")))
        frozen = await freeze(source, Path(scratch) / "runs", clock=SystemClock())
        house = replace(House.of(frozen, clock=SystemClock()), gate=cast("CellGate", NoGate()))
        digest = frozen.registration.digest
        with Record(frozen.folder, registration_digest=digest) as record:
            async with open_models(house):
                return await _measure(n, house, record)


async def _measure(n: int, house: House, record: Record) -> dict[str, list[float]]:
    backend = DockerBackend()
    found = await engine_image(backend._engine, ImageStore(), DEFAULT_IMAGE)  # noqa: SLF001 - the bare cell's own image
    api = docker.APIClient(version="auto")
    cells: Any = iter(house.registration.cells)
    kinds: dict[str, Callable[[], Awaitable[None]]] = {
        BARE: lambda: anyio.to_thread.run_sync(bare_cell, api, found.id),
        BARE_COLLECT: lambda: anyio.to_thread.run_sync(bare_collect, api, found.id),
        "ours": lambda: our_cell(backend, DEFAULT_IMAGE, with_collect=False),
        "ours, collect": lambda: our_cell(backend, DEFAULT_IMAGE, with_collect=True),
        "played": lambda: played_cell(house, record, cells),
    }
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    for turn in range(n + 1):
        for kind, cell in kinds.items():
            begun = time.perf_counter()
            await cell()
            if turn:  # the first turn warms up
                taken[kind].append(time.perf_counter() - begun)
    api.close()
    return taken


def main() -> int:
    """Measure, print, and judge by the limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--n", type=int, default=10, help="cells of each kind (default 10)")
    n = parser.parse_args().n
    if n < 1:
        parser.error(f"--n {n}: expected 1 or more")
    taken = anyio.run(measure, n)
    middles = {kind: statistics.median(seconds) for kind, seconds in taken.items()}
    ratios = {kind: middles[kind] / middles[floor] for kind, floor in FLOORS.items()}
    print(f"{'cell':<16}{'median ms':>12}{'minimum ms':>12}{'ratio':>8}")
    for kind, seconds in taken.items():
        print(f"{kind:<16}{middles[kind] * 1000:>12.0f}{min(seconds) * 1000:>12.0f}{ratios[kind]:>8.2f}")
    over = max(ratios.values()) > LIMIT
    print(f"target {TARGET}, limit {LIMIT}: {'over the limit' if over else 'held'}")
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
