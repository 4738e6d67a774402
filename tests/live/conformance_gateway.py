"""What every workspace backend must do, the part about the network `gateway`: one socket of the host's, nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc

from harness.walls import GATEWAY_FOLDER, GATEWAY_PORT, GATEWAY_SOCKET
from tests.live.rooms import CONNECT, Rooms, python

__all__ = ["GatewayConformance"]

ASK = f"""
import urllib.error, urllib.request
try:
    with urllib.request.urlopen("http://127.0.0.1:{GATEWAY_PORT}/model", timeout=10) as answer:
        print(answer.read().decode())
except OSError as error:
    print(type(error).__name__)
"""
KILL_AND_ASK = f"""
import os, time
try:
    os.kill(-1, 9)
except ProcessLookupError:
    pass
time.sleep(0.2)
{ASK}
"""
BIND = f"""
import errno, socket
for address in ("127.0.0.1", "0.0.0.0"):
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            thief.bind((address, {GATEWAY_PORT}))
            thief.listen()
            print("bound")
        except OSError as error:
            print(errno.errorcode[error.errno])
"""
CHANGES = "".join(
    f"({change}) 2>/dev/null && echo '{change}'; "
    for change in (
        f"echo x > {GATEWAY_FOLDER}/new",
        f"rm -f {GATEWAY_FOLDER}/{GATEWAY_SOCKET}",
        f"mv {GATEWAY_FOLDER}/{GATEWAY_SOCKET} {GATEWAY_FOLDER}/other",
        f"ln -s /etc/passwd {GATEWAY_FOLDER}/link",
        f"chmod 777 {GATEWAY_FOLDER}",
        f"rmdir {GATEWAY_FOLDER}",
        f"mv {GATEWAY_FOLDER} {GATEWAY_FOLDER}2",
    )
)


@asynccontextmanager
async def toy_gateway(folder: Path) -> AsyncIterator[list[bytes]]:
    """A server at the gateway's place that answers each request with the canary; yields the requests' first lines."""
    asked: list[bytes] = []

    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            asked.append((await stream.receive()).partition(b"\r\n")[0])
            await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\ncanary")

    async with (
        await anyio.create_unix_listener(folder / GATEWAY_SOCKET, mode=0o666) as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, answer)
        yield asked
        tasks.cancel_scope.cancel()


class GatewayConformance(Rooms):
    """The one way out of a workspace that its walls may leave open."""

    async def test_the_gateway_is_reached_over_loopback(self) -> None:
        """A program's request arrives at the host's socket and is answered; nothing else can be reached."""
        async with self.room(network="gateway") as room:
            assert room.gateway is not None
            async with toy_gateway(room.gateway) as asked:
                assert (await room.exec(python(ASK))).stdout == b"canary\n"
                assert (await room.exec(["true"])).status == 0
                away = await room.exec(python(CONNECT, "192.0.2.1", "80"))
                names = await room.exec(["sh", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1"])
            assert asked == [b"GET /model HTTP/1.1"]
            assert away.stdout == b"OSError 101\n"
            assert names.stdout.split() == [b"lo"]

    async def test_a_gateway_that_is_down_or_comes_back_is_no_end(self) -> None:
        """Without a server a request fails, and one that starts later is found."""
        async with self.room(network="gateway") as room:
            assert room.gateway is not None
            assert b"canary" not in (await room.exec(python(ASK))).stdout
            for _ in range(2):
                async with toy_gateway(room.gateway):
                    assert (await room.exec(python(ASK))).stdout == b"canary\n"

    async def test_the_gateways_folder_can_only_be_read(self) -> None:
        """The seat can't write, move or unlink anything in it, and its socket is still the host's afterwards."""
        async with self.room(network="gateway") as room:
            assert room.gateway is not None
            async with toy_gateway(room.gateway):
                assert (await room.exec(["sh", "-c", CHANGES])).stdout == b""
                assert [path.name for path in room.gateway.iterdir()] == [GATEWAY_SOCKET]
                assert (await room.exec(python(ASK))).stdout == b"canary\n"

    async def test_the_forwarder_keeps_its_port_and_its_life(self) -> None:
        """The seat can't take its port; where it can end it, that was said, and its next program has it again."""
        promised = await self.backend().guarantees()
        async with self.room(network="gateway") as room:
            assert room.gateway is not None
            async with toy_gateway(room.gateway):
                assert (await room.exec(python(BIND))).stdout == b"EADDRINUSE\nEADDRINUSE\n"
                survived = (await room.exec(python(KILL_AND_ASK))).stdout == b"canary\n"
                assert survived == (promised.get("forwarder_apart") is None)
                assert (await room.exec(python(ASK))).stdout == b"canary\n"

    async def test_a_gateway_is_its_own_workspaces_alone(self) -> None:
        """Another workspace's program reaches its own, where nobody answers; and without that network there is none."""
        async with self.room(network="gateway") as one, self.room(network="gateway") as two, self.room() as sealed:
            assert one.gateway is not None
            assert one.gateway != two.gateway
            assert sealed.gateway is None
            async with toy_gateway(one.gateway) as asked:
                assert b"canary" not in (await two.exec(python(ASK))).stdout
                assert (await sealed.exec(python(ASK))).stdout == b"URLError\n"
                assert (await sealed.exec(["ls", f"{GATEWAY_FOLDER}/{GATEWAY_SOCKET}"])).status != 0
                assert asked == []
                assert (await one.exec(python(ASK))).stdout == b"canary\n"

    async def test_what_is_left_has_no_gateway(self) -> None:
        """After the end nothing can be asked any more."""
        async with self.room(network="gateway") as room:
            assert room.gateway is not None
            async with toy_gateway(room.gateway) as asked, room.remains() as rest:
                assert rest.gateway is None
                assert (await rest.exec(python(ASK))).stdout == b"URLError\n"
                assert asked == []
