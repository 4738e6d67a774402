"""The child process that holds an embedded engine: started when needed, killed when an answer is no longer wanted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from harness import environment
from harness.clock import Clock, SystemClock
from harness.errors import ModelServerError
from harness.models.blame import bounded

__all__ = ["Answer", "Engine"]

LONGEST_LINE = 64 << 20
LAST_WORDS = 2000
TEARDOWN_S = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What the engine answered: a reply's bytes or an error's table. `load_s` is 0 when it was loaded already."""

    reply: bytes
    error: Mapping[str, Any] | None
    load_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Child:
    process: Process
    lines: BufferedByteReceiveStream
    log: IO[bytes]
    num_ctx: int


class Engine:
    """One model file in a child process; not for use by two tasks at a time."""

    def __init__(self, *, path: Path, threads: int | None, gpu_layers: int, clock: Clock | None = None) -> None:
        self._path = path
        self._threads = threads or len(os.sched_getaffinity(0))
        self._gpu_layers = gpu_layers
        self._clock = clock or SystemClock()
        self._child: _Child | None = None

    async def ask(self, body: Mapping[str, Any], *, num_ctx: int) -> Answer:
        """
        The engine's answer to one request, with a window of `num_ctx` tokens.

        Raises `ModelServerError` when the child dies or can't load the model. A call that does not come to its end,
        cancelled or failed, leaves no child behind: the next one starts another.
        """
        said, load_s = await self._said(body, num_ctx)
        reply = said.get("reply")
        if reply is None:
            return Answer(reply=b"", error=said.get("error") or {"message": "no reply"}, load_s=load_s)
        # The engine names the file's path; a reply's model is filled in by who asked, so any name will do here.
        return Answer(reply=json.dumps({**reply, "model": self._path.name}).encode(), error=None, load_s=load_s)

    async def count(self, body: Mapping[str, Any], *, num_ctx: int) -> int | Mapping[str, Any]:
        """
        How many tokens the prompt of a request has, by the engine's own tokeniser and the file's chat template; or the
        error's table. Nothing is generated, and a prompt over the window is counted too. Raises as `ask` does.
        """
        said, _load_s = await self._said({"count": body}, num_ctx)
        count = said.get("tokens")
        if isinstance(count, int):
            return count
        return said.get("error") or {"message": f"no count in {bounded(said)}"}

    async def _said(self, value: Mapping[str, Any], num_ctx: int) -> tuple[dict[str, Any], float]:
        """One exchange with a child that is ready, and the seconds that it took to be."""
        whole = False
        try:
            started = self._clock.monotonic()
            child = await self._ready(num_ctx)
            load_s = self._clock.monotonic() - started
            said = await self._exchange(child, value)
            whole = True
        finally:
            if not whole:
                await self.stop()
        return said, load_s

    async def stop(self) -> None:
        """Kills the child, if there is one, and waits until it is gone."""
        child, self._child = self._child, None
        if child is None:
            return
        with anyio.move_on_after(TEARDOWN_S, shield=True):
            if child.process.returncode is None:
                child.process.kill()
            await child.process.aclose()
        child.log.close()

    async def _ready(self, num_ctx: int) -> _Child:
        """A child with the model loaded for this window."""
        if self._child is not None and (self._child.num_ctx != num_ctx or self._child.process.returncode is not None):
            await self.stop()
        if self._child is None:
            self._child = child = await self._start(num_ctx)
            settings = {
                "path": str(self._path),
                "num_ctx": num_ctx,
                "threads": self._threads,
                "gpu_layers": self._gpu_layers,
            }
            said = await self._exchange(child, settings)
            if "ready" not in said:
                error = said.get("error") or {}
                words = bounded(f"{error.get('message', said)} {_last_words(child)}")
                raise ModelServerError(f"the embedded engine did not start on {self._path.name}: {words}")
        return self._child

    async def _start(self, num_ctx: int) -> _Child:
        """
        A fresh child. It gets few variables: the same import path as ours, and a wait policy without which the
        engine's threads spin each other to a crawl on a machine that does other work too.
        """
        log = tempfile.TemporaryFile()  # noqa: SIM115 # it lives as long as the child, `stop` closes it
        child_env = {
            **environment.terminal_env(),
            "OMP_WAIT_POLICY": "passive",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        try:
            # A start that is cancelled half-way would leave a process that nobody knows of.
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(
                    [sys.executable, "-P", "-m", "harness.models.local_child"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=child_env,
                    start_new_session=True,
                )
        except OSError as error:
            log.close()
            raise ModelServerError(f"the embedded engine's process can't be started: {error}") from error
        assert process.stdout is not None  # a pipe was asked for
        return _Child(process=process, lines=BufferedByteReceiveStream(process.stdout), log=log, num_ctx=num_ctx)

    async def _exchange(self, child: _Child, value: Mapping[str, Any]) -> dict[str, Any]:
        """One line to the child, and one from it."""
        assert child.process.stdin is not None  # a pipe was asked for
        try:
            await child.process.stdin.send(json.dumps(value).encode() + b"\n")
            line = await child.lines.receive_until(b"\n", LONGEST_LINE)
            said = json.loads(line)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, anyio.IncompleteRead) as error:
            raise ModelServerError(f"the embedded engine died: {bounded(_last_words(child)) or 'no word'}") from error
        except (anyio.DelimiterNotFound, ValueError) as error:
            raise ModelServerError(f"the embedded engine's answer can't be read: {bounded(error)}") from error
        if not isinstance(said, dict):
            raise ModelServerError(f"the embedded engine's answer can't be read: {bounded(said)}")
        return said


def _last_words(child: _Child) -> str:
    """The end of what the child wrote to its log."""
    end = child.log.seek(0, os.SEEK_END)
    child.log.seek(max(0, end - LAST_WORDS))
    return child.log.read().decode("utf-8", "replace").strip()[-300:]
