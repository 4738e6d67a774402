"""
Do a benchmark's own references pass the evalplus referee, and does a function that returns None never pass?

    python bench/references.py --benchmark humaneval --backend bubblewrap --image host

Prints the classes and the times. Exits with 1 when a reference is not PASS or a None is.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio

from harness.clock import SystemClock
from harness.plugins import load
from harness.tasks.evalplus import load_evalplus
from harness.tasks.task import Task
from harness.tree import Exhibit
from harness.values import Verdict
from harness.walls import Caps, Walls


def arguments() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", default="humaneval", help="humaneval, mbpp, or a .jsonl file")
    parser.add_argument("--backend", default="docker", help="a registered workspace backend")
    parser.add_argument("--image", help="the image; by default proctor-seat")
    parser.add_argument("--ids", nargs="*", help="only these tasks")
    parser.add_argument("--cap", type=int, help="at most so many tasks")
    parser.add_argument("--memory-gib", type=float, default=3.0, help="memory of the room")
    return parser.parse_args()


def report(label: str, tasks: Sequence[Task], verdicts: Sequence[Verdict], seconds: float) -> None:
    """One line of counts, one on the tiers, and the slowest tasks."""
    print(f"{label}: {dict(Counter(verdict.reading for verdict in verdicts))} in {seconds:.1f} s")
    tiers = Counter(f"{tier.tier} {tier.reading}" for verdict in verdicts for tier in verdict.tiers)
    print(f"  tiers: {dict(tiers)}")
    slow = sorted(((verdict.seconds or 0.0, task.open.name) for task, verdict in zip(tasks, verdicts, strict=True)))
    print(f"  slowest: {', '.join(f'{name} {taken:.2f} s' for taken, name in slow[:-4:-1])}")


async def measure(options: argparse.Namespace) -> int:
    """The two runs; the exit status."""
    clock = SystemClock()
    backend: Any = load("workspaces", options.backend)()
    referee: Any = load("referees", "evalplus")({})
    tasks = load_evalplus(options.benchmark, ids=options.ids, cap=options.cap)
    memory = int(options.memory_gib * (1 << 30))
    walls = Walls(image=options.image or "proctor-seat", caps=Caps(memory_bytes=memory))
    rooms = partial(backend.open, walls, run="bench-references")
    wrong = 0
    for label, good, candidate in (
        ("references", True, referee.reference),
        ("returning None", False, None),
    ):
        trees = [candidate(task.sealed) if candidate else stub(referee, task) for task in tasks]
        work = [(Exhibit(tree=tree), task.sealed) for tree, task in zip(trees, tasks, strict=True)]
        started = clock.monotonic()
        verdicts = await referee.judge_many(work, rooms)
        report(label, tasks, verdicts, clock.monotonic() - started)
        for task, verdict in zip(tasks, verdicts, strict=True):
            if (verdict.reading == "PASS") is not good:
                wrong += 1
                print(f"  WRONG: {task.key} {verdict.reading}: {verdict.detail}")
    return 1 if wrong else 0


def stub(referee: Any, task: Task) -> Any:
    """The candidate that returns None."""
    return referee.battery(task.open, task.sealed)["stub"]


if __name__ == "__main__":
    sys.exit(anyio.run(measure, arguments()))
