"""What goes into an execution and what comes out: up to a limit and to its end, or as a stream that stays open."""

from __future__ import annotations

import signal
from contextlib import suppress

import anyio
from anyio.abc import ByteStream

from harness.errors import WorkspaceError
from harness.walls import ExecResult
from harness.workspaces.bubblewrap_run import Execution
from harness.workspaces.pipes import Pipe

__all__ = ["Kept", "Program", "Run"]

_BWRAP_SAYS = 4096
_STARVED = b"killed before it began: the workspace's files and programs have taken all of its memory\n"
_DRAIN_DEADLINE_S = 5.0


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


class Run:
    """A program from its beginning to its end: fed its input, its outputs kept up to `output_bytes` each."""

    def __init__(self, execution: Execution, mark: bytes, output_bytes: int) -> None:
        self.timed_out = False
        self._execution = execution
        self._mark = mark
        self._limit = output_bytes
        self._out = Kept(output_bytes)
        self._err = Kept(output_bytes + len(mark) + _BWRAP_SAYS)

    async def to_end(self, stdin: bytes, limit_s: float) -> None:
        """Until it ends or `limit_s` seconds are over, and until nothing that it started is alive."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._out.fill, self._execution.stdout)
            tasks.start_soon(self._err.fill, self._execution.stderr)
            tasks.start_soon(_feed, self._execution.stdin, stdin)
            try:
                with anyio.move_on_after(limit_s) as scope:
                    await self._execution.wait()
                self.timed_out = scope.cancelled_caught
            finally:
                await self._execution.finish()
            tasks.cancel_scope.deadline = anyio.current_time() + _DRAIN_DEADLINE_S

    def result(self, seconds: float, *, starved: bool) -> ExecResult:
        """
        What it did. Raises `WorkspaceError` when the launcher did not get as far as starting it, unless the workspace
        was `starved` of memory meanwhile: its files and programs have taken all that it may have, and that is the
        caller's affair.
        """
        before, started, after = bytes(self._err.data).partition(self._mark)
        if starved and not started:
            return ExecResult(stdout=b"", stderr=_STARVED, status=128 + signal.SIGKILL, seconds=seconds)
        if not (started or self.timed_out or self._execution.cut_short):
            raise WorkspaceError(
                f"the sandbox could not be set up: {before.decode('utf-8', 'replace').strip()[:500]!r}. "
                "Does `bwrap --unshare-all --ro-bind / / --proc /proc true` work on this machine?"
            )
        known, status = started and not self.timed_out, self._execution.exit_code
        if known and status is None and starved:
            status = 128 + signal.SIGKILL  # bwrap itself was what the kernel ended
        return ExecResult(
            stdout=bytes(self._out.data),
            stderr=after[: self._limit],
            status=status if known else None,
            seconds=seconds,
            timed_out=self.timed_out,
            stdout_cut=self._out.cut,
            stderr_cut=self._err.cut or len(after) > self._limit,
        )


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


async def _feed(pipe: Pipe, data: bytes) -> None:
    """Write `data`, as far as it is read, and close."""
    with suppress(BrokenPipeError):
        await pipe.write(data)
    pipe.close()
