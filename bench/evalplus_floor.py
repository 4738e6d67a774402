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

__all__ = ["Floor", "floor_program", "measure_floor"]

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


def measure_floor(benchmark: Benchmark, samples: Sequence[Sample], *, ours: Ours) -> dict[tuple[str, str], Floor]:
    """The floor of each distinct program of `samples`, by task and solution, on the interpreter of our rooms."""
    programs: dict[str, list[str]] = {
        task: [record["prompt"] + record["canonical_solution"]] for task, record in benchmark.records.items()
    }
    for sample in samples:
        if sample.solution not in programs[sample.task_id]:
            programs[sample.task_id].append(sample.solution)
    tasks = [_task(name, benchmark.records[name], codes) for name, codes in programs.items()]
    rows = anyio.run(_in_a_room, floor_program(), json.dumps(tasks).encode() + b"\n", ours.backend, ours.image)
    return {
        (name, code): Floor(calls_s=row[0], all_s=row[1], made=row[2])
        for (name, codes), told in zip(programs.items(), rows, strict=True)
        for code, row in zip(codes, told, strict=True)
    }


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
