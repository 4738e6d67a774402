"""How reaping finds what is left of a sandbox: by the name on a command line, and nowhere else in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from harness.clock import fresh_token
from harness.workspaces.namespaces import kill_by_name
from tests.live.rooms import wait_until

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(120)]


async def test_a_command_line_tells_its_workspace_and_no_other() -> None:
    """Reaping finds a process by its first word: one that only mentions the name is none of it."""
    name = f"proctor-{fresh_token(8)}"
    bystander = _sleeper(sys.executable, name)
    member = _sleeper(name, "x")
    try:
        # A program that is just starting has no command line for an instant.
        assert await wait_until(
            lambda: all(Path(f"/proc/{one.pid}/cmdline").read_bytes() for one in (bystander, member))
        )
        assert await anyio.to_thread.run_sync(kill_by_name, name) == 1
        assert await anyio.to_thread.run_sync(member.wait) == -9
        assert bystander.poll() is None
    finally:
        for process in (bystander, member):
            process.kill()
            await anyio.to_thread.run_sync(process.wait)


def _sleeper(first: str, word: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([first, "-c", "import time; time.sleep(60)", word], executable=sys.executable)
