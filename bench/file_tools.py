"""
What a call of the file tool costs through a cell's helper, against floors of the same run.

    python bench/file_tools.py [--n 200] [--backend docker --backend bubblewrap] [--image proctor-seat]

Prints medians in milliseconds and, for a 4 KiB read, the ratios to three floors: the same request as a program of its
own, a bare `cat`, and an open on the host. Exits 1 when a 4 KiB read takes 0.5 ms or more on Docker.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable

import anyio

from harness import plugins
from harness.ports import Workspace
from harness.seats.tools import SeatTools
from harness.tree import Tree
from harness.walls import ToolRules, Walls
from harness.workspaces.exhibits import lay
from harness.workspaces.file_helper import Helper, open_helper
from harness.workspaces.files import Files
from harness.workspaces.frames import helper_argv, request

LIMIT_MS = 0.5
PAGE, MEGABYTE = b"x" * 4095 + b"\n", b"y" * (1 << 20)
TOOLS = frozenset({"run", "read", "write", "edit", "list", "search"})
RULES = ToolRules(tools=TOOLS, readable=("/workspace",), writable=("/workspace",))


async def median(n: int, call: Callable[[int], Awaitable[object]]) -> float:
    """Milliseconds of one call, the median of `n`, after a tenth as many that do not count."""
    times = []
    for number in range(n + n // 10):
        start = time.perf_counter()
        await call(number)
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times[n // 10 :])


async def through_the_helper(helper: Helper, room: Workspace, n: int) -> dict[str, float]:
    """Each request over the open stream, and a tool's call as a seat makes it."""
    files, tools = Files(helper), SeatTools(room, RULES, helper=helper)
    few = max(5, n // 10)

    async def edit(number: int) -> None:
        old, new = ("one", "two") if number % 2 == 0 else ("two", "one")
        await files.edit("edited", old, new)

    await files.write("edited", b"one\n" + PAGE)
    return {
        "read 4 KiB": await median(n, lambda _: files.read("page")),
        "write 4 KiB": await median(n, lambda _: files.write("new", PAGE)),
        "read 1 MiB": await median(few, lambda _: files.read("large")),
        "write 1 MiB": await median(few, lambda _: files.write("new", MEGABYTE)),
        "list 52 entries": await median(n, lambda _: files.list("many")),
        "search 52 files": await median(few, lambda _: files.search("absent", "many")),
        "edit": await median(n, edit),
        "tool: read": await median(n, lambda _: tools.call("read", {"path": "page"})),
        "tool: run true": await median(few, lambda _: tools.call("run", {"command": "true"})),
    }


async def floors(room: Workspace, n: int) -> dict[str, float]:
    """The same 4 KiB by other ways."""
    few = max(5, n // 10)
    ask = request({"op": "read", "root": "/workspace", "path": "page", "max_bytes": 1 << 20})
    with tempfile.NamedTemporaryFile() as file:
        file.write(PAGE)
        file.flush()

        async def host_open(_: int) -> None:
            with open(file.name, "rb") as page:  # noqa: ASYNC230, PTH123 - what is measured
                page.read()

        return {
            "one program a call": await median(few, lambda _: room.exec(helper_argv(), stdin=ask, cwd="/")),
            "bare cat": await median(few, lambda _: room.exec(["cat", "/workspace/page"], cwd="/")),
            "open on the host": await median(n, host_open),
        }


async def measure(backend: str, image: str, n: int) -> tuple[float, dict[str, float], dict[str, float]]:
    """Milliseconds until a helper answers, those of its requests, and those of the floors."""
    rooms = plugins.load("workspaces", backend)()
    tree = Tree.of({"page": PAGE, "large": MEGABYTE, **{f"many/{number:02}": PAGE for number in range(52)}})
    async with rooms.open(Walls(image=image), run="bench") as room, open_helper(room) as helper:
        start = time.perf_counter()
        await helper.start()
        started = 1000 * (time.perf_counter() - start)
        await lay(helper, tree)
        return started, await through_the_helper(helper, room, n), await floors(room, n)


def show(backend: str, started: float, served: dict[str, float], below: dict[str, float]) -> None:
    """One backend's table."""
    print(f"\n{backend}: a helper is there after {started:.0f} ms")
    for name, milliseconds in (served | below).items():
        print(f"  {name:<20} {milliseconds:>9.3f} ms")
    read = served["read 4 KiB"]
    print("  a 4 KiB read against " + ", ".join(f"{name}: {read / floor:.4g}" for name, floor in below.items()))


async def main(options: argparse.Namespace) -> int:
    """Measure each backend, and hold Docker to its limit."""
    held = True
    print(
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores: above one a core, what is measured is mostly waiting"
    )
    for backend in options.backend or ["docker", "bubblewrap"]:
        started, served, below = await measure(backend, options.image, options.n)
        show(backend, started, served, below)
        held = held and (backend != "docker" or served["read 4 KiB"] < LIMIT_MS)
    print(f"\n4 KiB read on docker under {LIMIT_MS} ms: {'yes' if held else 'NO'}")
    return 0 if held else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--backend", action="append", choices=["docker", "bubblewrap"])
    parser.add_argument("--image", default="proctor-seat")
    sys.exit(anyio.run(main, parser.parse_args()))
