"""What tests of the `revise` seat share: a task with a right and two wrong solutions, its public tier, a real Python."""

from __future__ import annotations

import sys
from typing import Any

import anyio

from harness.seats.revise import ReviseSeat
from harness.walls import ExecResult
from tests.fake_workspace import Call, ran
from tests.seats.desks import Bench, FakeCheck, FakeModel, fenced

RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
WORSE = "def add(a, b):\n    return None\n"
SCORES = {RIGHT: 3, WRONG: 1, WORSE: 0}


def check() -> FakeCheck:
    """A public tier of three tests."""
    return FakeCheck(lambda code: SCORES.get(code, 0))


def patch(code: str) -> str:
    """A reply that patches."""
    return f"ACTION: PATCH\n{fenced(code.rstrip())}"


async def real_python(call: Call) -> ExecResult:
    """The workspace's python3, for code that a test wrote: what the trial of a patch says is what Python says."""
    argv = [sys.executable, *call.argv[1:]]
    done = await anyio.run_process(argv, input=call.stdin, check=False, cwd=call.workspace.folder)
    return ran(stdout=done.stdout, stderr=done.stderr or b"", status=done.returncode)


async def sat(make: Any, *replies: Any, start: str = RIGHT, before: str | None = None, **options: Any) -> Bench:
    """A bench at which a seat has revised `start`; `arm`, `check` and `programs` go to the bench, others to the seat."""
    files = {"start.py": start} if before is None else {"start.py": start, "before.py": before}
    desk = {key: options.pop(key) for key in ("arm", "model") if key in options}
    tier = options.pop("check", None) or check()
    programs = options.pop("programs", {"python3": real_python})
    model = desk.pop("model", None) or FakeModel(*replies)
    table: Bench = make(model, files=files, check=tier, programs=programs, **desk)
    carried = {} if before is None else {"before": "before.py"}
    seat = ReviseSeat(**{"revisions": len(replies) or 1, **carried, **options})
    table.declared = await seat.sit(table.desk)
    return table


__all__ = ["RIGHT", "SCORES", "WORSE", "WRONG", "check", "patch", "real_python", "sat"]
