"""
The scaffold's own referee, and rooms in which programs are not run but read: so that hostile ones can be shown to any
referee, however bad, without a sandbox.
"""

from __future__ import annotations

import atexit
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cells.referee_scaffold import new_referee
from harness.conformance.languages import CLAIMS
from harness.tasks.folder import load_folder
from harness.walls import ExecResult
from tests.fake_workspace import Call, FakeWorkspace, ran

__all__ = ["TASK", "TASK_FOLDER", "PrintedAnswersReferee", "read_as_program", "rooms"]

_HOME = Path(tempfile.mkdtemp(prefix="proctor-scaffold-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
_FILES = new_referee("printed-answers", _HOME)
TASK_FOLDER = _FILES[0].parent / "task"
TASK = load_folder(TASK_FOLDER)


def _loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


PrintedAnswersReferee: Any = _loaded(_FILES[0].parent / "proctor_referee_printed_answers.py").PrintedAnswersReferee


def read_as_program(call: Call) -> ExecResult:
    """What the program in `solution.py` would do: the few that the suite makes are known by their words."""
    files = call.workspace.files
    text = files["solution.py"].decode() if "solution.py" in files else None
    if text is None:
        return ran(status=2)
    if "while True" in text or "sleep(10**6)" in text:
        return ran(status=None, stdout=b"x" * 10**5, timed_out=True)
    if "test result: ok" in text:
        return ran(stdout=CLAIMS.encode(), status=1 if text.startswith("PASS") else 0)
    if "_exit" in text or "SystemExit" in text or "AssertionError" in text:
        return ran()
    if "print('PASS')" in text:
        return ran(stdout=b"PASS\n")
    if "sum(" not in text:
        return ran()
    numbers = [int(word) for word in call.stdin.split()]
    return ran(stdout=f"{sum(map(abs, numbers) if 'abs(' in text else numbers)}\n".encode())


@asynccontextmanager
async def rooms() -> AsyncIterator[FakeWorkspace]:
    """A fresh room in which `python3` is `read_as_program`."""
    yield FakeWorkspace(programs={"python3": read_as_program})
