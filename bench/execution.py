"""
What one program in a workspace costs, and what the ways around it cost.

    python bench/execution.py [--backend bubblewrap] [--image proctor-seat] [--n 30]

Prints medians and minimums in milliseconds: opening and closing a workspace, a program that does nothing, the same in
Python and behind the network `gateway`, a 4 KiB round trip through a stream that stays open, and what ending a
workspace for good and showing what is left takes.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from harness import plugins
from harness.ports import Workspace, WorkspaceBackend
from harness.walls import Walls

PYTHON = ["python3", "-I", "-S", "-c", "pass"]
PAGE = bytes(4096)
TRIPS = 200


async def timed(once: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds of one call."""
    began = time.perf_counter()
    await once()
    return (time.perf_counter() - began) * 1000


async def ran(room: Workspace, *argv: str) -> None:
    """One program that must end well."""
    result = await room.exec(argv)
    assert result.status == 0, result


async def opened(backend: WorkspaceBackend, walls: Walls) -> None:
    """A workspace that nobody uses."""
    async with backend.open(walls, run="bench"):
        pass


async def left(backend: WorkspaceBackend, walls: Walls) -> float:
    """Milliseconds from the end of a used workspace to the room that shows what is left."""
    async with backend.open(walls, run="bench") as room:
        await ran(room, "true")
        began = time.perf_counter()
        async with room.remains():
            return (time.perf_counter() - began) * 1000


async def round_trips(room: Workspace) -> list[float]:
    """Milliseconds of each of `TRIPS` messages to a program that says back what it hears."""
    async with room.stream(["cat"]) as stream:

        async def there_and_back() -> None:
            await stream.send(PAGE)
            missing = len(PAGE)
            while missing:
                missing -= len(await stream.receive())

        return [await timed(there_and_back) for _ in range(TRIPS)]


async def measure(backend: WorkspaceBackend, image: str, n: int) -> dict[str, list[float]]:
    """Each kind `n` times, after one that warms up."""
    walls = Walls(image=image)
    taken: dict[str, list[float]] = {}
    async with (
        backend.open(walls, run="bench") as room,
        backend.open(Walls(image=image, network="gateway"), run="bench") as joined,
    ):
        kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "true": lambda: ran(room, "true"),
            "python": lambda: ran(room, *PYTHON),
            "python, gateway": lambda: ran(joined, *PYTHON),
            "open and close": lambda: opened(backend, walls),
        }
        for kind, once in kinds.items():
            await once()
            taken[kind] = [await timed(once) for _ in range(n)]
        taken["4 KiB through a stream"] = await round_trips(room)
    taken["end and show what is left"] = [await left(backend, walls) for _ in range(max(1, n // 3))]
    return taken


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--backend", default="bubblewrap")
    parser.add_argument("--image", default="proctor-seat")
    parser.add_argument("--n", type=int, default=30, help="times of each kind (default 30)")
    options = parser.parse_args()
    if options.n < 1:
        parser.error(f"--n {options.n}: expected 1 or more")
    backend: WorkspaceBackend = plugins.load("workspaces", options.backend)()
    taken = anyio.run(measure, backend, options.image, options.n)
    print(f"load {Path('/proc/loadavg').read_text().split()[0]}")
    print(f"{'what':<28}{'median ms':>12}{'minimum ms':>12}")
    for kind, times in taken.items():
        print(f"{kind:<28}{statistics.median(times):>12.2f}{min(times):>12.2f}")


if __name__ == "__main__":
    main()
