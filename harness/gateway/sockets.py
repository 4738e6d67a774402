"""
Unix sockets of our own, on both event loops.

Bytes are taken with `recv` alone, so that descriptors which a peer sends along are dropped by the kernel and never
open here.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.lowlevel

__all__ = ["Door", "Hangup", "Stream", "listening"]

BACKLOG = 64
_CREDENTIALS = struct.Struct("3i")


class Hangup(Exception):  # noqa: N818 - nothing is wrong: the peer is gone
    """The peer is gone."""


class Stream:
    """One connection. Leaving its `with` closes it."""

    def __init__(self, raw: socket.socket) -> None:
        raw.settimeout(0)
        self._raw = raw

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._raw.close()

    @property
    def user(self) -> int:
        """The user who connected, as the kernel says and as this process's user namespace numbers it."""
        data = self._raw.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        return int(_CREDENTIALS.unpack(data)[1])

    async def receive(self, most: int = 64 << 10) -> bytes:
        """The next bytes, or none where the peer sends no more."""
        await anyio.lowlevel.checkpoint()
        while True:
            try:
                return self._raw.recv(most)
            except BlockingIOError:
                await anyio.wait_readable(self._raw)
            except OSError:
                return b""

    async def send(self, data: bytes) -> None:
        """Send it all. Raises `Hangup`."""
        await anyio.lowlevel.checkpoint()
        view = memoryview(data)
        while view:
            try:
                view = view[self._raw.send(view, socket.MSG_NOSIGNAL) :]
            except BlockingIOError:
                await anyio.wait_writable(self._raw)
            except OSError as error:
                raise Hangup from error

    def end(self) -> None:
        """Say that no more will be sent."""
        try:
            self._raw.shutdown(socket.SHUT_WR)
        except OSError as error:
            raise Hangup from error


class Door:
    """A listening socket."""

    def __init__(self, raw: socket.socket) -> None:
        raw.settimeout(0)
        self._raw = raw

    async def accept(self) -> Stream:
        """The next connection. Raises `OSError` where there is one that can't be taken."""
        await anyio.lowlevel.checkpoint()
        while True:
            try:
                return Stream(self._raw.accept()[0])
            except BlockingIOError:
                await anyio.wait_readable(self._raw)


def _clear(place: Path) -> None:
    """Take away a socket that a process which was killed has left. Raises `OSError` where somebody still listens."""
    if not place.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        try:
            other.connect(str(place))
        except ConnectionRefusedError:
            place.unlink()
            return
    raise OSError(errno.EADDRINUSE, "another gateway listens there", str(place))


@contextmanager
def listening(folder: Path, name: str) -> Iterator[Door]:
    """
    A socket `name` in `folder` that anybody may connect to who can reach it; gone afterwards.

    It is bound by way of the folder's descriptor: a path may be longer than the 107 bytes of an address. Raises
    `OSError` where it can't be, and where somebody listens there already.
    """
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    place = Path(f"/proc/self/fd/{descriptor}/{name}")
    try:
        _clear(place)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as raw:
            raw.bind(str(place))
            try:
                place.chmod(0o666)  # who may reach it is the folder's business, and the door looks at who did
                raw.listen(BACKLOG)
                yield Door(raw)
            finally:
                place.unlink(missing_ok=True)
    finally:
        os.close(descriptor)
