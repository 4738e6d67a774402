"""What the stage's listeners answer: each hands out its canary to whoever gets through to it, and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import anyio
from anyio.abc import Listener, SocketStream, UDPSocket

__all__ = ["Answerer", "answer_dns", "answer_engine", "answer_forever", "answer_line"]

Answerer: TypeAlias = Callable[[SocketStream], Awaitable[None]]

_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)


def answer_line(canary: str) -> Answerer:
    """Serves the canary as one line to each connection."""

    async def serve(stream: SocketStream) -> None:
        async with stream:
            try:
                await stream.send(f"{canary}\n".encode())
            except _GONE:
                return

    return serve


def answer_engine(canary: str) -> Answerer:
    """Serves an HTTP answer with the canary to whatever is asked, as an engine answers a ping."""

    async def serve(stream: SocketStream) -> None:
        async with stream:
            try:
                with anyio.move_on_after(20):
                    await stream.receive(4096)
                body = canary.encode()
                await stream.send(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            except _GONE:
                return

    return serve


async def answer_dns(server: UDPSocket, canary: str) -> None:
    """Answers each query with a TXT record that holds the canary."""
    async for query, (host, port) in server:
        if len(query) < 12:
            continue
        text = canary.encode()
        record = b"\xc0\x0c\x00\x10\x00\x01\x00\x00\x00\x00" + (len(text) + 1).to_bytes(2, "big") + bytes([len(text)])
        head = query[:2] + b"\x85\x80\x00\x01\x00\x01\x00\x00\x00\x00"
        with suppress(OSError):  # whoever asked may be gone: that is no reason to answer nobody any more
            await server.sendto(head + query[12:] + record + text, host, port)


async def answer_forever(listener: Listener[SocketStream], answer: Answerer) -> None:
    """Serve `listener` for as long as the stage stands: a machine that is out of descriptors now has some later."""
    while True:
        try:
            await listener.serve(answer)
        except OSError:
            await anyio.sleep(0.1)
