"""Who lives in a namespace, looked at from outside, and the pipes that lead to who does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from harness.workspaces.namespaces import Namespace, members
from harness.workspaces.pipes import Pipe

pytestmark = pytest.mark.anyio


def mine(kind: str) -> Namespace:
    """The namespace of this very process."""
    return Namespace(kind=kind, inode=Path(f"/proc/self/ns/{kind}").stat().st_ino)


def test_members_are_the_living_ones_of_any_of_them() -> None:
    """A process is counted once, whichever namespace it is in; a zombie and a namespace of nobody's are not."""
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    nobody = Namespace(kind="pid", inode=1)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now, and stays one
    for spaces in ([mine("pid")], [mine("mnt")], [nobody, mine("pid"), mine("mnt"), mine("pid")]):
        found = members(spaces)
        assert found.count(os.getpid()) == 1
        assert child.pid not in found
    assert child.wait() == 0
    assert members([nobody]) == []
    assert members([]) == []
    assert mine("pid").members()


async def test_a_pipe_gives_what_comes_until_its_end() -> None:
    """More than a pipe holds goes through, the end of it is b"", and so is a pipe that is closed."""
    reader, writer = map(Pipe, os.pipe())
    data = os.urandom(300_000)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.write, data)
        came = b""
        while len(came) < len(data):
            came += await reader.read()
    assert came == data
    writer.close()
    assert await reader.read() == b""
    reader.close()
    reader.close()
    assert await reader.read() == b""


async def test_a_pipe_that_nobody_reads_says_so() -> None:
    """Writing to it is an error of its own, and no signal."""
    reader, writer = map(Pipe, os.pipe())
    reader.close()
    with pytest.raises(BrokenPipeError):
        await writer.write(b"x")
    writer.close()
