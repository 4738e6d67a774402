"""The seat's way to its files is metered by what it shows, and blamed on the right side."""

from __future__ import annotations

import pytest

from harness.boundary import WatchedHelper
from harness.clock import SystemClock
from harness.errors import WorkspaceError
from harness.meter import Bounds, Ledger, Meter, Scope
from harness.seats.tools import SeatTools
from harness.values import Halt, Void
from harness.walls import ToolRules
from harness.workspaces.file_helper import open_helper
from harness.workspaces.files import FileAbsent, Files
from tests.fake_workspace import FakeWorkspace

pytestmark = pytest.mark.anyio

TOOLS = frozenset({"run", "read", "write", "edit", "list", "search"})
RULES = ToolRules(tools=TOOLS, readable=("/workspace",), writable=("/workspace",))


def meter(output=None):
    """A meter with one scope, and a limit on output or none."""
    return Meter([Scope(name="cell", bounds=Bounds(output=output), ledger=Ledger())], clock=SystemClock(), rates=None)


class Failing:
    """A helper whose workspace is gone."""

    async def ask(self, header, body=b"", *, room=0, timeout_s=20.0, what):
        """Fail."""
        raise WorkspaceError("no engine")

    async def sweep(self):
        """Fail."""
        raise WorkspaceError("no engine to sweep")


@pytest.mark.parametrize(
    ("tool", "arguments", "least", "most"),
    [
        ("read", {"path": "long", "start": 900, "lines": 2}, 17, 17),
        ("read", {"path": "long"}, 1000, 1000),
        ("read", {"path": "gone"}, 0, 0),
        ("write", {"path": "long", "content": "x" * 5000}, 0, 0),
        ("edit", {"path": "long", "old": "line 999", "new": ""}, 0, 0),
        ("list", {}, 5, 20),
        ("search", {"pattern": "line 99[0-9]"}, 100, 300),
        ("search", {"pattern": "line"}, 500, 1000),
    ],
)
async def test_a_call_is_charged_what_it_takes_out(tool, arguments, least, most):
    """Lines far down a file cost themselves and not all that is before them; a call that shows nothing costs nothing."""
    room = FakeWorkspace({"long": "".join(f"line {number}\n" for number in range(1000))})
    watch = meter()
    async with open_helper(room) as helper:
        tools = SeatTools(room, RULES, helper=WatchedHelper(helper, watch), output_bytes=1000)
        outcome = await tools.call(tool, arguments)
    charged = watch.spend().output_bytes
    assert least <= charged <= most, charged
    assert charged <= len(outcome.text.encode())


async def test_a_limit_on_output_counts_the_files():
    """Reading past the limit stops the seat, as a program's output does."""
    watch = meter(output=5000)
    async with open_helper(FakeWorkspace({"a": "x" * 3000})) as helper:
        files = Files(WatchedHelper(helper, watch))
        await files.read("a")
        assert watch.halted is None
        await files.read("a")
    assert watch.halted == Halt(limit="output", scope="cell", bound=5000.0, spent=6000.0)


async def test_a_failed_workspace_is_blamed_and_a_missing_file_is_not():
    """Blame is noted where it happens, so that a seat that swallows the error changes nothing."""
    watch = meter()
    async with open_helper(FakeWorkspace()) as helper:
        with pytest.raises(FileAbsent):
            await Files(WatchedHelper(helper, watch)).read("gone")
    assert watch.blamed is None
    for call, said in (("ask", "no engine"), ("sweep", "no engine to sweep")):
        watch = meter()
        helper = WatchedHelper(Failing(), watch)
        with pytest.raises(WorkspaceError):
            await (Files(helper).read("a") if call == "ask" else helper.sweep())
        assert watch.blamed == Void(cause="workspace", detail=said)
