"""
What the gate of a cell costs: before its seat and at its end, beside one exec of `true` in the same room, in turn.

    python bench/cell_gate.py [--n 20] [--backend docker --backend bubblewrap]

The fence is qualified first, or a kept qualification is used. Prints medians and minimums in milliseconds, of the parts
of a gate too, and the probes' own programs that take longest. On a machine that does other things as well, the minimum
is the better guess. Ends with status 1 when a gate's minimum is above its target.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict

import anyio

from fences.batch import Body, run_batch
from fences.cell_gate import CellGate, open_cell_gate
from fences.policy import FencePolicy
from fences.qualification import qualify
from fences.rendering import layer_digests
from harness import plugins
from harness.clock import SystemClock
from harness.ports import Workspace, WorkspaceBackend
from harness.tree import Tree
from harness.workspaces.exhibits import put
from harness.workspaces.images import DEFAULT_IMAGE

TARGET_MS = {"docker": 500.0, "bubblewrap": 100.0}
TASK = Tree.of({"task.md": "Do it.\n", "src/main.py": "x = 1\n"})
SLOWEST = 6


async def measure(name: str, n: int) -> dict[str, list[float]]:
    """Milliseconds of everything, `n` times each in one room of its own per turn, and of each probe's program."""
    backend: WorkspaceBackend = plugins.load("workspaces", name)()
    policy, clock = FencePolicy(), SystemClock()
    found = await qualify(backend, policy, DEFAULT_IMAGE, run="bench", clock=clock)
    if found.faults:
        sys.exit(f"{name}: the fence does not hold: {found.faults[0]}")
    pinned = layer_digests(policy, DEFAULT_IMAGE, backend)
    pinned |= {"policy": policy.digest, "image": await backend.image_digest(DEFAULT_IMAGE)}
    taken: dict[str, list[float]] = defaultdict(list)
    rows = found.qualification.rows
    async with open_cell_gate(backend, policy, DEFAULT_IMAGE, rows=rows, pinned=pinned, clock=clock) as gate:
        taken["probes"] = [len(gate.probes)]
        for turn in range(n + 1):
            async with backend.open(gate.fence.walls, run="bench") as room:
                await put(room, TASK)
                seen = await _one_turn(gate, room)
            if turn:  # the first turn warms up
                for part, ms in seen.items():
                    taken[part].append(ms)
    return taken


async def _one_turn(gate: CellGate, room: Workspace) -> dict[str, float]:
    start = time.perf_counter()
    await room.exec(["true"])
    seen = {"exec true": (time.perf_counter() - start) * 1000}
    for when, reading in (("before", await gate.before(room, TASK)), ("after", await gate.after(room))):
        seen |= {when if part == "all" else f"{when}: {part}": ms for part, ms in reading.ms.items()}
    bodies = [
        Body(name=probe.name, body=probe.body, arguments=probe.arguments(gate.fence, gate.site))
        for probe in gate.probes
    ]
    batch = await run_batch(room, bodies)
    assert not isinstance(batch, str), batch
    return {**seen, **{f"program {name}": ms for name, ms in batch.ms.items()}}


def show(name: str, taken: dict[str, list[float]]) -> bool:
    """Print what was measured on one backend; whether both gates keep their target."""
    probes = int(taken.pop("probes")[0])
    programs = {part: taken.pop(part) for part in list(taken) if part.startswith("program ")}
    print(f"{name}: {probes} structural probes in one program, target {TARGET_MS[name]:.0f} ms")
    print(f"  {'':<24}{'median ms':>12}{'minimum ms':>12}")
    slowest = sorted(programs, key=lambda part: -statistics.median(programs[part]))[:SLOWEST]
    for part, ms in [*taken.items(), *((part, programs[part]) for part in slowest)]:
        print(f"  {part:<24}{statistics.median(ms):>12.1f}{min(ms):>12.1f}")
    return all(min(taken[when]) <= TARGET_MS[name] for when in ("before", "after"))


def main() -> int:
    """Measure, print, and judge by the targets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--n", type=int, default=20, help="cells on each backend (default 20)")
    parser.add_argument("--backend", action="append", choices=sorted(TARGET_MS), help="default: both")
    options = parser.parse_args()
    if options.n < 1:
        parser.error(f"--n {options.n}: expected 1 or more")
    kept = [show(name, anyio.run(measure, name, options.n)) for name in options.backend or TARGET_MS]
    print("targets kept" if all(kept) else "over a target")
    return int(not all(kept))


if __name__ == "__main__":
    sys.exit(main())
