"""
Folders that try to talk the pytest referee round, hang it or break it: `CANDIDATES`, by what each tries, and their `TASK`.

They are for sealed rooms ONLY: several fork without end, fill the disk or kill whatever they can.

Each is `(files, reading)`. In the file of candidates, a line `--- PATH` begins a file; what comes before is `solution.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

from harness.tasks.task import OpenHalf, SealedHalf, Task
from harness.tree import Tree
from tests.live.hostile import sections

__all__ = ["CANDIDATES", "RIGHT", "TASK"]

RIGHT = """\
class Empty(LookupError):
    pass

def squares(values):
    return [value * value for value in sorted(values)]

class Box:
    def __init__(self, items): self.items = list(items)
    def put(self, item): self.items.append(item)
    def take(self):
        if not self.items: raise Empty("nothing")
        return self.items.pop()
    def __iter__(self): return iter(self.items)
    def __len__(self): return len(self.items)
"""
"""The right answer to `TASK`."""

_SUITE = """\
import pytest
from solution import Box, Empty, squares


def test_squares():
    assert squares([3, 1]) == [1, 9]
    assert squares([]) == []


def test_box():
    box = Box([1])
    box.put(2)
    assert list(box) == [1, 2]
    assert len(box) == 2


def test_empty():
    with pytest.raises(Empty):
        Box([]).take()
"""
_IDS = [f"test_it.py::{name}" for name in ("test_squares", "test_box", "test_empty")]
_INTERFACE = [{"module": "solution", "names": ["Box", "squares"], "exceptions": ["Empty"]}]

TASK = Task(
    open=OpenHalf(benchmark="hostile", name="box", instruction="Write it."),
    sealed=SealedHalf(
        tests=Tree.of({"test_it.py": _SUITE}),
        solution=Tree.of({"solution.py": RIGHT}),
        card={"ids": _IDS, "interface": _INTERFACE},
    ),
)
"""Sorted squares, a box, and an exception."""

_FRAGMENTS = {
    "right": RIGHT,
    "wrong": RIGHT.replace("return [value * value for", "return [value + value for"),
    "rest": RIGHT.replace("def squares(values):\n    return [value * value for value in sorted(values)]\n", ""),
}


def _files(text: str) -> dict[str, str]:
    """The files of one candidate."""
    first, *others = re.split(r"^--- (.*)\n", text, flags=re.MULTILINE)
    return {"solution.py": first, **dict(zip(others[::2], others[1::2], strict=True))}


CANDIDATES: dict[str, tuple[dict[str, str], str]] = {
    tried: (_files(text), reading)
    for (tried, reading), text in sections(Path(__file__).with_name("pytest.txt"), _FRAGMENTS)
}
