"""
A workspace that walls nothing: its programs run on this host, over a folder of their own. Probes that are harmless there
show what they do when nothing stops them, and what the harness's own guards do without any wall's help.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.abc import ByteStream

from fences.lingering import alive_on_host
from harness.walls import GATEWAY_PORT
from harness.workspaces.frames import helper_argv
from tests.fake_workspace import FakeWorkspace, _cut, ran


class _Piped(ByteStream):
    """A process's input and output as one stream."""

    def __init__(self, process):
        self._process = process

    async def receive(self, max_bytes=65536):
        return await self._process.stdout.receive(max_bytes)

    async def send(self, item):
        await self._process.stdin.send(item)

    async def send_eof(self):
        await self._process.stdin.aclose()

    async def aclose(self):
        with suppress(ProcessLookupError):
            self._process.kill()


class UnwalledRoom(FakeWorkspace):
    """
    `before` is a command that programs are started by, such as a shell that sets a limit first; `port` stands for the
    port of the gateway. `sweep` and `kill` end what has this room's folder in its command line.
    """

    def __init__(self, *, before=(), port=1):
        super().__init__()
        self.before = list(before)
        self.port = port

    def _words(self, argv):
        told = f'"port": {GATEWAY_PORT}', f'"port": {self.port}'
        return [*self.before, *(word.replace("/workspace", str(self.folder)).replace(*told) for word in argv)]

    def _environment(self):
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder)}

    async def exec(self, argv, *, stdin=b"", timeout_s=60.0, output_bytes=1 << 20, env=None, cwd="/workspace"):
        """Run it here, in a session of its own, which is ended when the time is over."""
        if tuple(argv) == helper_argv():
            return await super().exec(argv, stdin=stdin, timeout_s=timeout_s, output_bytes=output_bytes)
        process = await anyio.open_process(
            self._words(argv),
            cwd=self.folder,
            env=self._environment(),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
        )
        out, err = bytearray(), bytearray()
        begun = anyio.current_time()
        async with process:
            with anyio.move_on_after(timeout_s) as limit:
                async with anyio.create_task_group() as tasks:
                    for stream, held in ((process.stdout, out), (process.stderr, err)):
                        tasks.start_soon(_drain, stream, held)
                    status = await process.wait()
                    await anyio.sleep(0.05)
                    tasks.cancel_scope.cancel()
            if limit.cancelled_caught:
                os.killpg(process.pid, signal.SIGKILL)
                await self.sweep()
        seconds = anyio.current_time() - begun
        result = ran(
            stdout=bytes(out), stderr=bytes(err), seconds=seconds, timed_out=limit.cancelled_caught,
            status=None if limit.cancelled_caught else status,
        )  # fmt: skip
        return _cut(result, output_bytes)

    @asynccontextmanager
    async def stream(self, argv, *, cwd="/workspace"):
        """The far end of the file tool as in any fake, and anything else as a process."""
        if tuple(argv) == helper_argv():
            async with super().stream(argv) as far_end:
                yield far_end
            return
        async with await anyio.open_process(
            self._words(argv), cwd=self.folder, env=self._environment(), stderr=None, start_new_session=True
        ) as process:
            try:
                yield _Piped(process)
            finally:
                with suppress(ProcessLookupError):
                    process.kill()

    async def sweep(self):
        """End what was left, and wait until it is gone."""
        ended = set()
        with anyio.fail_after(10):
            while pids := await anyio.to_thread.run_sync(alive_on_host, str(self.folder)):
                for pid in pids:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                ended |= set(pids)
                await anyio.sleep(0.01)
        return len(ended)

    async def kill(self):
        """End everything."""
        await self.sweep()
        await super().kill()


async def _drain(stream, held):
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            held += await stream.receive()
