"""The harness's end of the frames of `pytest_wire`, for the referees that talk to programs of theirs in rooms."""

from __future__ import annotations

import anyio
from anyio.abc import ByteStream

from referees.pytest_wire import FRAME, LAST, LAST_BYTES, found_last_word, head, raw_frame

__all__ = ["CLOSED", "Line"]

CLOSED = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)
"""What a stream raises whose far end is gone."""
PARTING_S = 10.0
"""Seconds that a last word may take once the channel is closed one way."""


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
        """Kind and body of the next frame. A last word is the end of the stream, and is kept for `last_word`."""
        length, kind = head(await self._take(5), limit)
        body = await self._take(length)
        if kind == LAST:
            self.buffer[:0] = raw_frame(kind, body)
            raise anyio.EndOfStream
        return kind, body

    async def send(self, data: bytes) -> None:
        """Send frames, whole."""
        await self.stream.send(data)

    async def last_word(self) -> int | None:
        """
        With what status the program at the far end ended, by the word of the process that outlived it, once the stream
        is closed. None where nobody was left to say it: then all of the room was lost.
        """
        with anyio.move_on_after(PARTING_S):
            try:
                while True:
                    del self.buffer[:-LAST_BYTES]
                    self.buffer += await self.stream.receive()
            except CLOSED:
                pass
        return found_last_word(bytes(self.buffer[-LAST_BYTES:]))
