"""A port of loopback that leads to a gateway's socket, as a workspace's forwarder makes one for the agent inside."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketStream

GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


@asynccontextmanager
async def forwarded(socket: Path) -> AsyncIterator[str]:
    """The address of the port, as an agent is given it."""
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):

        async def join(client: SocketStream) -> None:
            async with client, await anyio.connect_unix(socket) as gateway, anyio.create_task_group() as pumps:
                pumps.start_soon(pump, client, gateway)
                await pump(gateway, client)
                pumps.cancel_scope.cancel()

        tasks.start_soon(listener.serve, join)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"  # noqa: S610 - no database's
        tasks.cancel_scope.cancel()


async def pump(source: ByteStream, sink: ByteStream) -> None:
    """Byte by byte, one way, and the end too."""
    try:
        async for data in source:
            await sink.send(data)
        await sink.send_eof()
    except GONE:
        return
