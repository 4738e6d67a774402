"""
What a seat might leave alive, and how the host sees that it is: by a marked command line in the host's own list of
processes, and by a heartbeat, a file that grows for as long as its writer lives.

Whatever is left ends by itself after some seconds, however the attempt goes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import ByteStream

from harness.clock import fresh_token
from harness.ports import Workspace

__all__ = ["BEAT", "Mess", "alive_on_host"]

BEAT = """
trap '' TERM HUP INT
n=0
while [ $n -lt 250 ]; do n=$((n + 1)); echo >> "$0"; sleep 0.02; done
"""
"""A process that can only be killed: it writes to the file that is its own name, and ends after about eight seconds."""

_READY_S = 20.0
_DYING_S = 0.5
_GAP_S = 0.15


def alive_on_host(mark: str, proc: Path = Path("/proc")) -> list[int]:
    """The numbers of this host's processes that have `mark` in their command line, zombies left out."""
    found = []
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):
            if mark.encode() not in (folder / "cmdline").read_bytes():
                continue
            state = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            if state not in "ZX":
                found.append(int(folder.name))
    return found


@dataclass(frozen=True, kw_only=True)
class Mess:
    """
    A shell program that leaves something alive. `script` finds the heartbeat's text in `$1` and its file in `$2`, says
    `made` once it beats, and reads a line before it ends.
    """

    script: str
    mark: str = field(default_factory=lambda: f"proctor-beat-{fresh_token(8)}")

    @property
    def beat(self) -> str:
        """The heartbeat's file."""
        return f"/workspace/{self.mark}"

    @property
    def argv(self) -> list[str]:
        """The command."""
        return ["sh", "-c", self.script, "sh", BEAT, self.beat]

    @asynccontextmanager
    async def made(self, workspace: Workspace) -> AsyncIterator[ByteStream | None]:
        """Run it as a stream until it says that it is made; None if it never says so."""
        async with workspace.stream(self.argv) as stream:
            said = b""
            with anyio.move_on_after(_READY_S), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while not said.endswith(b"made\n"):
                    said += await stream.receive()
            yield stream if said.endswith(b"made\n") else None

    async def beats(self, workspace: Workspace) -> bool | None:
        """Whether the heartbeat's file grows; None when there is none or it can't be looked at."""
        sizes = []
        for _ in range(2):
            looked = await workspace.exec(["sh", "-c", 'wc -c < "$1"', "sh", self.beat], output_bytes=100)
            if looked.status != 0 or not looked.stdout.strip().isdigit():
                return None
            sizes.append(int(looked.stdout))
            await anyio.sleep(_GAP_S)
        return sizes[1] > sizes[0]

    async def seen(self) -> bool:
        """Whether the host sees it alive. One that is just dying is given a moment."""
        with anyio.move_on_after(_DYING_S):
            while await anyio.to_thread.run_sync(alive_on_host, self.mark):  # noqa: ASYNC110 - the dying tell nobody
                await anyio.sleep(0.02)
            return False
        return True
