"""The embedded sandbox for somebody who is not root: the same suite, in a process that has dropped to a user of no account."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

TREE = Path(__file__).parents[2]
USER = 60_123  # has no account, so that nothing else on a machine is its
PARTS = "time_limit or left or proved or gateway or forwarder or network or processes_is_limited or across or reaped"
PROMISES = """
import anyio, json, os
from harness.walls import Walls
from harness.workspaces.bubblewrap import BubblewrapBackend
async def main():
    backend = BubblewrapBackend()
    async with backend.open(Walls(image="host"), run="plain") as room:
        facts = await room.facts()
    told = {name: why is None for name, why in (await backend.guarantees()).items()}
    print(json.dumps({"us": os.getuid(), "home": str(backend.home), "host_user": facts["host_user"],
                      "cap_drop": facts["cap_drop"], "told": told, "root": (await backend.engine())["root"]}))
anyio.run(main)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A home of the user's own, which has its state home."""
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid() == 0:
            os.chown(folder, USER, USER)
        yield Path(folder)


def python_for_others() -> str:
    """A Python that any user may start, of our own version: one below root's home is none."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        try:
            ran = _plainly([candidate, "-c", "import sys; print(*sys.version_info[:2])"], Path("/"))
        except PermissionError:
            continue
        if ran.returncode == 0 and ran.stdout.split() == [str(part) for part in sys.version_info[:2]]:
            return candidate
    pytest.fail(
        f"no user but root can start {sys.executable}: make the environment from a Python outside of root's home"
    )


def _plainly(command: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    """Run it as the user, with an environment made from nothing."""
    path = f"{TREE}:{sysconfig.get_path('purelib')}"
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    as_user = {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}
    return subprocess.run(command, cwd=TREE, env=env, capture_output=True, text=True, check=False, **as_user)


def test_the_suite_holds_for_a_plain_user(home: Path) -> None:
    """Ends, walls, gateway and reaping are the same without root; nothing of the user's is alive afterwards."""
    suite = ["tests/live/test_workspaces.py", "-k", f"OverTheHost and ({PARTS})"]
    ran = _plainly([python_for_others(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--live-only", *suite], home)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
    assert int(ran.stdout.rpartition(" passed")[0].split()[-1]) >= 15, ran.stdout
    assert (home / ".local/share/proctor/workspaces").is_dir()
    if os.geteuid() == 0:
        until = time.monotonic() + 20
        while (alive := _alive()) and time.monotonic() < until:
            time.sleep(0.1)
        assert alive == []


def test_what_a_plain_user_does_not_get_is_said(home: Path) -> None:
    """A quota of the workspace, sums of memory and a user of its own take root: the guarantees say so, and the rest holds."""
    ran = _plainly([python_for_others(), "-c", PROMISES], home)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert said["us"] != 0
    assert (said["home"], said["host_user"]) == (str(home / ".local/share/proctor/workspaces"), None)
    assert (said["cap_drop"], said["root"]) == (["ALL"], "no")
    missing = {name for name, kept in said["told"].items() if not kept}
    by_root_alone = {"workspace_bytes", "workspace_inodes", "memory_total", "swap", "cpu", "user_apart"}
    by_nobody = {"keeper_apart", "forwarder_apart", "tmp_inodes", "shm_inodes"}
    assert missing == by_root_alone | by_nobody


def _alive() -> list[str]:
    """The user's processes; one that has ended and waits for init to take note is none."""
    found = [pid for pid in os.listdir("/proc") if pid.isdigit() and _user_of(pid) == USER]  # noqa: PTH208  # names alone
    return [pid for pid in found if _state_of(pid) not in ("Z", "X", "")]


def _state_of(pid: str) -> str:
    try:
        return Path("/proc", pid, "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _user_of(pid: str) -> int | None:
    try:
        return Path("/proc", pid).stat().st_uid
    except FileNotFoundError:
        return None
