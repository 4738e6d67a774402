"""What of one call of a seat's tools is there at the next: nothing that runs, and the one far end of the file tools."""

from dataclasses import replace

import anyio
import pytest

from harness.seats.tools import SeatTools
from harness.transcript import Transcript, read_transcript
from harness.workspaces.file_helper import open_helper
from tests.seats.desks import RULES
from tests.seats.test_seat_tools import room

pytestmark = pytest.mark.anyio


async def test_what_a_command_leaves_running_is_ended_and_told(tmp_path):
    """The model reads how many there were, the transcript has the number; none, and a number nobody knows, say nothing."""
    workspace = room()
    with Transcript(tmp_path / "t.jsonl") as transcript:
        tools = SeatTools(workspace, RULES, transcript=transcript)
        for workspace.left, ending in (
            (3, "[processes left running, which are ended now: 3]"),
            (0, "status 0]"),
            (None, "status 0]"),
        ):
            outcome = await tools.call("run", {"command": "x"})
            assert outcome.text.endswith(ending)
            assert outcome.left == workspace.left
        await tools.call("list", {})
    assert [event["left"] for event in read_transcript(tmp_path / "t.jsonl")] == [3, 0, None, None]
    assert workspace.sweeps == 3


async def test_a_policy_with_background_sweeps_nothing():
    """Only then does what a command leaves running live on until the next."""
    workspace = room()
    workspace.left = 3
    outcome = await SeatTools(workspace, replace(RULES, background=True)).call("run", {"command": "x"})
    assert (outcome.left, workspace.sweeps, "left running" in outcome.text) == (None, 0, False)


async def test_a_command_that_was_stopped_is_swept_after_too():
    """A time limit says nothing of what had been started apart."""

    async def slow(_):
        await anyio.sleep(9)

    workspace = room(bash=slow)
    workspace.left = 1
    outcome = await SeatTools(workspace, RULES, timeout_s=0.05).call("run", {"command": "x"})
    assert (outcome.standing, outcome.left, workspace.sweeps) == ("failed", 1, 1)


async def test_tools_share_the_helper_that_they_are_given():
    """One far end serves every call; without one, each call has its own, and what opens no file has none."""
    workspace = room()
    async with open_helper(workspace) as helper:
        tools = SeatTools(workspace, RULES, helper=helper)
        for name, arguments in (
            ("read", {"path": "a.py"}),
            ("run", {"command": "x"}),
            ("list", {}),
            ("write", {"path": "b", "content": ""}),
        ):
            assert (await tools.call(name, arguments)).standing == "served"
    assert len(workspace.streams) == 1
    tools = SeatTools(workspace, RULES)
    for name, arguments in (
        ("read", {"path": "a.py"}),
        ("run", {"command": "x"}),
        ("read", {"path": "/etc/passwd"}),
        ("submit", {}),
    ):
        await tools.call(name, arguments)
    assert len(workspace.streams) == 2
