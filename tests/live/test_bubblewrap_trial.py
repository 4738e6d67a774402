"""The trial of bubblewrap on this machine, as it stands in every receipt: it depends on nothing but the machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from harness.workspaces.bubblewrap import BubblewrapBackend

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(120)]

_MOUNTS_COME_AND_GO = """
while :; do at=$(mktemp -d) && mount -t tmpfs proctor-test "$at" && umount "$at"; rmdir "$at"; done
"""


@pytest.fixture
def mounts() -> Iterator[None]:
    """Mounts of somebody else's that come and go, as do those of other sandboxes. Only root can make any, for anyone."""
    others = [subprocess.Popen(["/bin/sh", "-c", _MOUNTS_COME_AND_GO]) for _ in range(2 if os.geteuid() == 0 else 0)]
    yield
    for other in others:
        other.kill()
        other.wait()


@pytest.mark.usefixtures("mounts")
async def test_a_sandbox_does_not_fail_for_another_ones_mounts() -> None:
    """A mount elsewhere on the host that goes while a sandbox is tried is none of its business."""
    for _ in range(60):
        assert (await BubblewrapBackend().engine())["kernel"]
