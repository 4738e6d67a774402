"""What comes out of an execution and what goes in: kept up to a limit, or as a stream that stays open."""

from __future__ import annotations

from contextlib import suppress

import anyio
from anyio.abc import ByteStream

from harness.workspaces.bubblewrap_run import Execution
from harness.workspaces.pipes import Pipe

__all__ = ["Kept", "Program", "after_mark", "feed"]


class Kept:
    """The first `limit` bytes of a stream that is read to its end."""

    def __init__(self, limit: int) -> None:
        self.data = bytearray()
        self.cut = False
        self._limit = limit

    async def fill(self, pipe: Pipe) -> None:
        """Read all of `pipe`."""
        while part := await pipe.read():
            room = self._limit - len(self.data)
            self.data += part[:room]
            self.cut = self.cut or len(part) > room


class Program(ByteStream):
    """A long-lived program's input and output as one stream. A message takes no thread: it is a write, and a read."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Some of what the program wrote. Raises `anyio.EndOfStream` when it writes no more."""
        data = await self._execution.stdout.read(max_bytes)
        if not data:
            raise anyio.EndOfStream
        return data

    async def send(self, item: bytes) -> None:
        """Write to the program. Raises `anyio.BrokenResourceError` when it doesn't read any more."""
        try:
            await self._execution.stdin.write(item)
        except OSError as error:
            raise anyio.BrokenResourceError from error

    async def send_eof(self) -> None:
        """The end of the program's input."""
        self._execution.stdin.close()

    async def aclose(self) -> None:
        """The end of the program, and of everything that it started."""
        await self._execution.finish()


async def feed(pipe: Pipe, data: bytes) -> None:
    """Write `data`, as far as it is read, and close."""
    with suppress(BrokenPipeError):
        await pipe.write(data)
    pipe.close()


def after_mark(stderr: bytes, mark: bytes) -> tuple[bytes, bool]:
    """What stands after the launcher's mark, and whether the mark is there."""
    before, found, after = stderr.partition(mark)
    return (after, True) if found else (before, False)
