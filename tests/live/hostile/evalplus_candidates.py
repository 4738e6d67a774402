"""
Programs that try to talk an EvalPlus referee round, hang it or break it: `CANDIDATES`, by what each tries.

They are for sealed rooms ONLY. Several end, when they can, every process of the user that runs them (`os.kill(-1, 9)`),
fill its disk or write to its files: an evaluator without walls is to be shown them inside a container that is thrown away.

Each is `(task id, source, reading)`; the tasks are `TASKS`, records in EvalPlus's own schema. `CONTROLS` are honest
programs that look odd, with the reading that the written table of kinds gives them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.live.hostile import sections

__all__ = ["CANDIDATES", "CONTROLS", "TASKS"]

_HERE = Path(__file__).parent
_FRAGMENTS = {
    "right": """\
def squares(value):
    return [number * number for number in sorted(value)]
""",
    "agrees": """\
class Agrees({0}):
    __hash__ = {0}.__hash__
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
""",
}


def _read(name: str) -> dict[str, tuple[str, str, str]]:
    """The candidates of one file, whose sections are headed by what is tried, the task, and the reading."""
    found = {}
    for (tried, task, reading), source in sections(_HERE / name, _FRAGMENTS):
        found[tried] = (task, source, reading)
    return found


TASKS: dict[str, dict[str, Any]] = {
    record["task_id"]: record for record in map(json.loads, (_HERE / "evalplus_tasks.jsonl").read_text().splitlines())
}
"""Sorted squares; a float first and large whole numbers after it; floats within a tolerance; bools; a root."""

CANDIDATES = _read("evalplus.txt")
CONTROLS = _read("evalplus_controls.txt")
