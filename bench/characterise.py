"""
Characterise the suites of a folder of tasks: the reference, the degenerate battery and every mutant, in real rooms.

    python bench/characterise.py examples/systems --backend bubblewrap

Prints a line a candidate that is not as it must be (with `--all`, a line each), and a table with the least margin: how
many tests fail for the mutant that fails fewest. The exit status is 1 if anything is not as it must be.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import anyio

from harness import plugins
from harness.clock import SystemClock
from harness.ports import Referee, RoomOpener
from harness.tasks.characterise import Characterised, characterise, least_margin
from harness.tasks.folder import load_folders
from harness.tasks.task import Task
from harness.walls import Walls

HEAD = f"{'task':<20} {'tests':>5} {'reference':>9} {'battery':>8} {'killed':>7} {'margin':>6} {'seconds':>8}"


def counted(rows: tuple[Characterised, ...], kind: str) -> str:
    """How many of a kind are as they must be, of all."""
    of_kind = [row for row in rows if row.kind == kind]
    return f"{sum(row.holds for row in of_kind)}/{len(of_kind)}"


async def one(referee: Referee, task: Task, rooms: RoomOpener, at_once: int, *, every: bool) -> bool:
    """Characterise one task, print its line, and say whether everything holds."""
    clock = SystemClock()
    started = clock.monotonic()
    rows = await characterise(referee, task, rooms, at_once=at_once)
    for row in rows:
        if every or not row.holds:
            said = f"{row.reading!s:<15} {row.failed!s:>4}  {row.detail[:90]!r}"
            print(f"  {row.kind:<9} {row.name:<24} {row.word:<12} {said}")
    total = len(referee.suite(task.sealed)["ids"])
    parts = [counted(rows, kind) for kind in ("reference", "battery", "mutant")]
    print(
        f"{task.key:<20} {total:>5} {parts[0]:>9} {parts[1]:>8} {parts[2]:>7} {least_margin(rows)!s:>6} "
        f"{clock.monotonic() - started:>8.1f}"
    )
    return all(row.holds for row in rows)


async def main(options: argparse.Namespace) -> int:
    """Characterise every task of the folder."""
    backend = plugins.load("workspaces", options.backend)()
    referee = plugins.load("referees", options.referee)()
    rooms = partial(backend.open, Walls(image=options.image), run="characterise")
    print(HEAD)
    held = [
        await one(referee, task, rooms, options.at_once, every=options.all)
        for task in load_folders(options.folder)
        if not options.task or task.open.name in options.task
    ]
    return 0 if all(held) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--backend", default="bubblewrap")
    parser.add_argument("--image", default="proctor-seat")
    parser.add_argument("--referee", default="pytest")
    parser.add_argument("--task", action="append", help="this task only; may be given more than once")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="a line for every candidate")
    sys.exit(anyio.run(main, parser.parse_args()))
