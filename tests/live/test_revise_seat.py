"""The revise seat in a sandbox, with the EvalPlus referee's own public tier: admission, evidence, and what ships."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from arms.evidence import GuardedEvidence, StaleEvidence
from harness import plugins
from harness.canonical import digest_bytes
from harness.seats.revise import ReviseSeat
from harness.tasks.folder import load_folder
from harness.walls import Caps, Walls
from harness.workspaces.bubblewrap import BubblewrapBackend
from harness.workspaces.exhibits import lay
from harness.workspaces.file_helper import open_helper
from harness.workspaces.files import Files
from tests.live.images import seat_image
from tests.seats.desks import Bench, FakeModel
from tests.seats.revisions import patch

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(300)]

TASK = load_folder(Path(__file__).parents[2] / "examples/revision/repairs/Window")
RIGHT, WRONG = (TASK.open.environment.text(f"{start}.py") for start in ("right", "wrong"))
GIVEN_UP = "def window(numbers, width):\n    return None\n"
KEEP = "ACTION: KEEP"


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here: the fast tests run the same seat on both."""
    return "asyncio"


@asynccontextmanager
async def at_work(tmp_path: Path, model: FakeModel, **changes: Any) -> AsyncIterator[tuple[Bench, Any]]:
    """A bench whose desk stands in a sandbox, with the public tier of the task; and the sandbox."""
    walls = Walls(image=await anyio.to_thread.run_sync(seat_image), caps=Caps(memory_bytes=3 << 30))
    rooms = partial(BubblewrapBackend().open, walls, run="test-revise")
    referee = plugins.load("referees", "evalplus")()
    table = Bench(tmp_path, model, task=TASK.open)
    with table.transcript:
        async with (
            rooms() as room,
            open_helper(room) as helper,
            referee.public_check(TASK.open, TASK.sealed, rooms) as check,
        ):
            await helper.start()
            await lay(helper, TASK.open.environment)
            table.desk = replace(table.desk, workspace=room, helper=helper, check=check, **changes)
            yield table, Files(helper)


async def test_what_no_patch_may_do_is_refused_and_the_start_ships(tmp_path: Path) -> None:
    """Each refusal by its rule, with a real Python in a real sandbox; then a repair, certified by a run of its own."""
    broken = {
        "def window(": "does-not-parse",
        "import nothing_like_it": "raises",
        "import sys\nsys.exit(0)": "raises",
        "import os\nos._exit(0)": "ends-early",
        "while True: pass": "too-slow",
        "x = [0] * 10**12": "raises",
        "import os\nos.remove('solution.py')\nos.fork()\nos.fork()\nraise OSError": "raises",
        "open('/workspace/solution.py', 'w').write('x')\nopen('/etc/passwd', 'a')": "raises",
    }
    model = FakeModel(*map(patch, broken), "no action at all", patch(RIGHT))
    async with at_work(tmp_path, model) as (table, files):
        seat = ReviseSeat(revisions=len(broken) + 2, start="wrong.py", timeout_s=2.0)
        declared = await seat.sit(table.desk)
        assert (await files.read("solution.py")).data == RIGHT.encode()
    told = table.events("revised")
    assert [event["note"] for event in told] == [*broken.values(), "no-action", None]
    assert {event["after_sha256"] for event in told[:-1]} == {digest_bytes(WRONG.encode())}
    assert declared.note.endswith("the current state ships, certified")
    (certified,) = table.events("certified")
    assert certified["code_sha256"] == digest_bytes(RIGHT.encode())
    assert certified["reading"]["suite"] == told[-1]["reading"]["suite"]
    assert certified["reading"]["execution"] != told[-1]["reading"]["execution"]


@pytest.mark.parametrize(
    ("arm", "restore", "left"),
    [(StaleEvidence, False, GIVEN_UP), (StaleEvidence, True, RIGHT), (GuardedEvidence, False, RIGHT)],
)
async def test_a_stale_trace_destroys_what_is_kept_or_restored(
    tmp_path: Path, arm: Any, restore: bool, left: str
) -> None:
    """A model that believes the trace of `wrong.py` gives up `right.py`: the guard withholds it, `restore` mends it."""

    def believes(request: Any) -> str:
        return patch(GIVEN_UP) if "FAIL: " in request.messages[-1].content else KEEP

    async with at_work(tmp_path, FakeModel(believes), arm=arm()) as (table, files):
        seat = ReviseSeat(revisions=2, stop="forced", start="right.py", before="wrong.py", restore=restore)
        await seat.sit(table.desk)
        assert (await files.read("solution.py")).data == left.encode()
    (certified,) = table.events("certified")
    assert certified["reading"]["accepted"] is (left == RIGHT)
    assert certified["restored"] is restore
