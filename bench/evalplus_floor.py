"""What samples cost in one plain process on a room's own interpreter: the floor that a judge is held against."""

from __future__ import annotations

import base64
import json
import marshal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from bench.evalplus_ours import Ours
from bench.evalplus_workloads import Benchmark, Sample
from harness.plugins import load
from harness.tasks.evalplus_inputs import convert_inputs
from harness.walls import Caps, Walls
from referees import evalplus_compare

__all__ = ["Floor", "floor_program", "measure_floor", "shares"]

_TIMEOUT_S = 1800.0
_ROOM_BYTES = 8 << 30
_SENT = """
import sys, types
sys.modules["compare"] = compare = types.ModuleType("compare")
exec({compare!r}, compare.__dict__)
exec(compile({program!r}, "floor", "exec"), {{"__name__": "__main__"}})
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Floor:
    """
    What one or more programs took: seconds of CPU of their calls alone, and with arguments copied and values compared;
    how many calls were made.
    """

    calls_s: float = 0.0
    all_s: float = 0.0
    made: int = 0

    def __add__(self, other: Floor) -> Floor:
        return Floor(calls_s=self.calls_s + other.calls_s, all_s=self.all_s + other.all_s, made=self.made + other.made)


def measure_floor(
    benchmark: Benchmark, samples: Sequence[Sample], *, ours: Ours, weights: Mapping[str, float]
) -> dict[tuple[str, str], Floor]:
    """
    The floor of each distinct program of `samples`, by task and solution, on the interpreter of our rooms: as many
    processes at a time as either side has workers, since a core is slower beside a busy one. `weights`, the seconds of
    each task, share the tasks out.
    """
    programs: dict[str, list[str]] = {}
    for sample in samples:
        codes = programs.setdefault(sample.task_id, [])
        if sample.solution not in codes:
            codes.append(sample.solution)
    rows = anyio.run(_measured, benchmark, programs, shares(list(programs), weights, ours.workers), ours)
    return {
        (name, code): Floor(calls_s=row[0], all_s=row[1], made=row[2])
        for name, codes in programs.items()
        for code, row in zip(codes, rows[name], strict=True)
    }


def shares(names: Sequence[str], weights: Mapping[str, float], parts: int) -> list[list[str]]:
    """The tasks in so many parts of about the same weight, the heaviest of each first."""
    made: list[list[str]] = [[] for _ in range(parts)]
    taken = [0.0] * parts
    for name in sorted(names, key=lambda name: -weights[name]):
        least = taken.index(min(taken))
        made[least].append(name)
        taken[least] += weights[name]
    return made


async def _measured(
    benchmark: Benchmark, programs: Mapping[str, Sequence[str]], shares: Sequence[Sequence[str]], ours: Ours
) -> dict[str, list[Any]]:
    """Rows by task, each share in a room of its own."""
    rows: dict[str, list[Any]] = {}

    async def measure(names: Sequence[str]) -> None:
        tasks = [_task(name, benchmark.records[name], programs[name]) for name in names]
        told = await _in_a_room(floor_program(), json.dumps(tasks).encode() + b"\n", ours.backend, ours.image)
        rows.update(zip(names, told, strict=True))

    async with anyio.create_task_group() as group:
        for names in shares:
            group.start_soon(measure, names)
    return rows


def floor_program() -> str:
    """The source that runs in the room, with that of the referee's rules inside it."""
    program = Path(__file__).with_name("evalplus_floor_room.py").read_text()
    return _SENT.format(compare=Path(evalplus_compare.__file__).read_text(), program=program)


def _task(name: str, record: Mapping[str, Any], codes: Sequence[str]) -> dict[str, Any]:
    """A task as the program in the room reads it."""
    tiers = (convert_inputs(name, record[key] or []) for key in ("base_input", "plus_input"))
    return {
        "entry": record["entry_point"],
        "rule": evalplus_compare.rule_for(name, record["entry_point"]),
        "atol": record["atol"],
        "tiers": [[base64.b64encode(marshal.dumps(args, 2)).decode() for args in calls] for calls in tiers],
        "reference": record["prompt"] + record["canonical_solution"],
        "programs": codes,
    }


async def _in_a_room(sent: str, stdin: bytes, backend_name: str, image: str) -> list[list[Any]]:
    backend: Any = load("workspaces", backend_name)()
    walls = Walls(image=image, caps=Caps(memory_bytes=_ROOM_BYTES))
    async with backend.open(walls, run="bench-floor") as room:
        argv = ["env", "PYTHONHASHSEED=0", "python3", "-P", "-s", "-S", "-c", sent]
        done = await room.exec(argv, stdin=stdin, timeout_s=_TIMEOUT_S, output_bytes=16 << 20)
    if done.status != 0:
        raise SystemExit(f"the floor could not be measured ({done.status}): {done.stderr[-2000:]!r}")
    rows: list[list[Any]] = json.loads(done.stdout)
    return rows
