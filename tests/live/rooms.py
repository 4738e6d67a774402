"""What the suite of workspaces works with: rooms of the backend in question, hostile programs, and eyes on the host."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import anyio
import anyio.to_thread

from harness.environment import state_home
from harness.ports import Workspace, WorkspaceBackend
from harness.walls import Caps, Walls

SMALL = Caps(pids=40, file_bytes=1 << 20, workspace_bytes=8 << 20, workspace_inodes=200, memory_bytes=256 << 20)

SLEEPER = "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
MESS = f"""
import os, signal, subprocess, sys, time
token = sys.argv[1]
sleeper = [sys.executable, "-I", "-S", "-c", {SLEEPER!r}, token]
subprocess.Popen(sleeper, start_new_session=True)
stopped = subprocess.Popen(sleeper, start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sleeper[0], sleeper)
    os._exit(0)
time.sleep(0.3)
os.kill(stopped.pid, signal.SIGSTOP)
print("made", flush=True)
time.sleep(float(sys.argv[2]))
"""
CONNECT = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3) as peer:
        print(peer.recv(100).decode())
except OSError as error:
    print(type(error).__name__, error.errno)
"""
FORKS = """
import os, sys, time
made = 0
for _ in range(int(sys.argv[1])):
    try:
        pid = os.fork()
    except OSError:
        break
    if pid == 0:
        time.sleep(5)
        os._exit(0)
    made += 1
print(made, flush=True)
"""
OWNER = """
import importlib, sys, anyio
from harness.walls import Walls
module, _, name = sys.argv[1].partition(":")
async def main():
    backend = getattr(importlib.import_module(module), name)()
    async with backend.open(Walls(image=sys.argv[2]), run="orphan") as room:
        print(room.name, flush=True)
        await room.exec(["python3", "-I", "-S", "-c", sys.argv[4], sys.argv[3]], timeout_s=100)
anyio.run(main)
"""


def alive(token: str) -> list[int]:
    """The Pythons alive on this host, zombies left out, that have `token` as the last word of their command line."""
    found = []
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            state = (path / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        except OSError:
            continue
        if b"python" in words[0] and words[-2:-1] == [token.encode()] and state not in "ZX":
            found.append(int(path.name))
    return found


async def wait_until(true: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether `true()` came to hold within `seconds`."""
    with anyio.move_on_after(seconds):
        while not await anyio.to_thread.run_sync(true):  # noqa: ASYNC110  # the host's processes tell nobody
            await anyio.sleep(0.05)
        return True
    return False


def python(program: str, *words: str) -> list[str]:
    """The command that runs `program` with the workspace's own Python."""
    return ["python3", "-I", "-S", "-c", program, *words]


class Rooms:
    """Where the suite gets its rooms from. `spec` is `module:Class` of the backend, `image` the name of an image that it has."""

    spec: ClassVar[str]
    image: ClassVar[str]

    def backend(self) -> WorkspaceBackend:
        """A backend as a plugin's table makes it: with no argument."""
        module, _, name = self.spec.partition(":")
        made: WorkspaceBackend = getattr(importlib.import_module(module), name)()
        return made

    def walls(self, **changes: object) -> Walls:
        """Sealed walls with small caps."""
        return replace(Walls(image=self.image, caps=SMALL), **changes)

    def room(self, **changes: object) -> AbstractAsyncContextManager[Workspace]:
        """A fresh workspace behind these walls."""
        return self.backend().open(self.walls(**changes), run="conformance")

    @asynccontextmanager
    async def observed(self, token: str, least: int) -> AsyncIterator[Callable[[], int]]:
        """Looks meanwhile for processes with `token`; ends once `least` were seen at one time."""
        most = 0

        async def look() -> None:
            nonlocal most
            while most < least:
                most = max(most, len(await anyio.to_thread.run_sync(alive, token)))
                await anyio.sleep(0.05)  # the host's processes tell nobody when they come

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look)
            yield lambda: most
            tasks.cancel_scope.cancel()


def mounts() -> str:
    """What is mounted on the host."""
    return Path("/proc/mounts").read_text()


def folders_of(name: str) -> list[Path]:
    """A workspace's folders and files among our state."""
    return [path for path in state_home().glob("workspaces/*") if name in path.name]


def owner_of(words: list[str]) -> subprocess.Popen[bytes]:
    """A process of its own that holds one workspace; it says its name first."""
    return subprocess.Popen([sys.executable, "-c", OWNER, *words], stdout=subprocess.PIPE)


async def greet(stream: anyio.abc.SocketStream) -> None:
    """Hands the canary to whoever connects."""
    async with stream:
        await stream.send(b"canary")


async def line_of(stream: anyio.abc.ByteStream) -> bytes:
    """The next line of a program."""
    data = b""
    with anyio.fail_after(20):
        while not data.endswith(b"\n"):
            data += await stream.receive()
    return data
