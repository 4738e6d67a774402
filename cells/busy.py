"""A machine that is kept busy: what is said under load must be what is said without."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import anyio

__all__ = ["busy_machine"]

_SPIN = "while True: pass"


@asynccontextmanager
async def busy_machine() -> AsyncIterator[int]:
    """For as long as the block lasts, a process for each CPU that this one may use does nothing as fast as it can."""
    count = len(os.sched_getaffinity(0))
    async with AsyncExitStack() as stack:
        for _ in range(count):
            process = await anyio.open_process(
                [sys.executable, "-I", "-S", "-c", _SPIN],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            await stack.enter_async_context(process)
            stack.callback(process.kill)
        yield count
