"""The harness's end of the frames of `pytest_wire`, for the referees that talk to programs of theirs in rooms."""

from __future__ import annotations

import anyio
from anyio.abc import ByteStream

from referees.pytest_wire import FRAME, head

__all__ = ["CLOSED", "Line"]

CLOSED = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)
"""What a stream raises whose far end is gone."""


class Line:
    """Frames over a stream of bytes."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self.buffer = bytearray()

    async def _take(self, count: int) -> bytes:
        while len(self.buffer) < count:
            self.buffer += await self.stream.receive()
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    async def receive(self, limit: int = FRAME) -> tuple[bytes, bytes]:
        """Kind and body of the next frame."""
        length, kind = head(await self._take(5), limit)
        return kind, await self._take(length)

    async def send(self, data: bytes) -> None:
        """Send frames, whole."""
        await self.stream.send(data)
