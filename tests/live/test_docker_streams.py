"""A program to talk to whose container is gone: whoever is in the middle of sending to it must get to know."""

from __future__ import annotations

import subprocess

import anyio
import pytest

from harness.workspaces.docker import DockerBackend
from tests.live.docker_rooms import room
from tests.live.images import seat_image

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(90)]

MUCH = bytes(16 << 20)
"""More than every buffer on the way holds."""


async def test_who_sends_to_a_container_that_was_killed_is_told() -> None:
    """The program read nothing, so that the sender waits; then there is nobody to wait for."""
    async with room(DockerBackend(), seat_image()) as workspace, workspace.stream(["sleep", "60"]) as stream:
        began = anyio.current_time()

        async def kill() -> None:
            await anyio.sleep(1)
            await anyio.to_thread.run_sync(
                lambda: subprocess.run(["docker", "kill", workspace.name], check=True, capture_output=True)
            )

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kill)
            with pytest.raises(anyio.BrokenResourceError):
                await stream.send(MUCH)
        assert anyio.current_time() - began < 30


async def test_who_sends_much_to_a_slow_program_is_left_to_it() -> None:
    """A program that reads late gets all of it."""
    reader = "import sys, time; time.sleep(5); print(len(sys.stdin.buffer.read()))"
    async with room(DockerBackend(), seat_image()) as workspace, workspace.stream(["python3", "-c", reader]) as stream:
        await stream.send(MUCH)
        await stream.send_eof()
        said = b""
        while not said.endswith(b"\n"):
            said += await stream.receive()
    assert int(said) == len(MUCH)
