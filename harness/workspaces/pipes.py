"""Pipes to a program, without blocking, and small files that are handed over as descriptors."""

from __future__ import annotations

import os
from contextlib import ExitStack

import anyio

__all__ = ["CHUNK", "Pipe", "in_memory", "pipe_pair"]

CHUNK = 1 << 16


class Pipe:
    """Our end of a pipe, without blocking. `read` gives b"" at the end of it, and once it is closed."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd

    async def read(self, size: int = CHUNK) -> bytes:
        """The next bytes, once there are some."""
        while self._fd >= 0:
            try:
                return os.read(self._fd, size)
            except BlockingIOError:
                await anyio.wait_readable(self._fd)
        return b""

    async def write(self, data: bytes) -> None:
        """All of `data`. Raises `BrokenPipeError` when nobody will read it."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:
                await anyio.wait_writable(self._fd)

    def close(self) -> None:
        """Close it, once."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


def in_memory(data: bytes) -> int:
    """A descriptor of a nameless file that holds `data`, read from its start."""
    fd = os.memfd_create("proctor", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def pipe_pair(ours: ExitStack, theirs: ExitStack, *, read: bool) -> tuple[int, int]:
    """A pipe as (our end, their end), each to be closed by its stack."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    mine, other = (reader, writer) if read else (writer, reader)
    ours.callback(os.close, mine)
    theirs.callback(os.close, other)
    return mine, other
