"""Hostile requests: the gateway refuses each, and a plain byte proxy in its place serves each."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from fences.careless import ByteProxy
from tests.gateway.cells import NAME, OPENAI, Cell, chat, gateway_cell, parsed, post, raw, received
from tests.gateway.hostile import KINDS, Hostile

pytestmark = pytest.mark.anyio

CANARY = b"a page that only the host's side has"


@dataclass
class Toy:
    """A server that answers whatever it is sent, once that has ended."""

    heard: list[bytes] = field(default_factory=list)

    async def serve(self, stream: SocketStream) -> None:
        """Hear it out, and answer."""
        async with stream:
            self.heard.append(await received(stream))
            await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(CANARY), CANARY))


@asynccontextmanager
async def proxied() -> AsyncIterator[tuple[Path, Toy]]:
    """The control: a byte proxy on a unix socket, before a toy server on loopback."""
    toy = Toy()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model.sock"
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1") as behind,
            await anyio.create_unix_listener(place) as before,
            anyio.create_task_group() as tasks,
        ):
            port = int(behind.extra(SocketAttribute.local_port))  # noqa: S610 - no database's
            tasks.start_soon(behind.serve, toy.serve)
            tasks.start_soon(before.serve, ByteProxy(port=port).serve)
            yield place, toy
            tasks.cancel_scope.cancel()


async def through_the_proxy(data: bytes) -> tuple[bytes, bytes]:
    """What comes back through the control, and what its server heard."""
    async with proxied() as (place, toy), await anyio.connect_unix(place) as stream:
        await stream.send(data)
        await stream.send_eof()
        answer = await received(stream)
        return answer, b"".join(toy.heard)


def test_there_are_many_kinds() -> None:
    """Each with a name of its own."""
    names = [kind.name for kind in KINDS]
    assert len(set(names)) == len(names)
    assert len(names) > 150


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
async def test_a_hostile_request_is_refused_and_a_byte_proxy_serves_it(kind: Hostile) -> None:
    """The model is not asked, the agent is told in its wire's form, the transcript knows why, and no other is hurt."""
    async with gateway_cell() as cell:
        reply = parsed(await raw(cell, kind.data))
        assert (reply.status, cell.standings(), cell.model.asked) == (kind.status, ["refused"], [])
        (event,) = cell.events
        assert (event["status"], event["call"]) == (kind.status, None)
        assert 0 < len(event["why"]) <= 700
        error = reply.data["error"]
        assert (error if isinstance(error, str) else error["message"]) == event["why"]
        assert reply.headers["connection"] == "close"
        assert await still_serves(cell)
    answer, heard = await through_the_proxy(kind.data)
    assert CANARY in answer
    assert heard == kind.data


async def still_serves(cell: Cell) -> bool:
    """Whether an honest request is answered."""
    return parsed(await raw(cell, post(OPENAI, chat()))).status == 200


async def test_a_refusal_never_repeats_what_was_sent_at_length() -> None:
    """A transcript is no place to keep a megabyte of the seat's choosing."""
    async with gateway_cell() as cell:
        for body in (chat(model="x" * 100_000), chat(**{"y" * 100_000: 1}), chat(messages="z" * 100_000)):
            reply = parsed(await raw(cell, post(OPENAI, body)))
            assert reply.status in {400, 403}
            assert len(reply.body) < 2000
        await raw(cell, post("/" + "p" * 30_000, chat()))
        assert all(len(str(event)) < 2000 for event in cell.events)
        assert len(cell.events) == 4


@pytest.mark.parametrize("cut", [1, 10, 40, 100, 150])
async def test_a_request_in_pieces_is_the_request(cut: int) -> None:
    """Wherever it is cut, and a refused one is refused all the same."""
    whole = post(OPENAI, chat())
    async with gateway_cell() as cell:
        for data, status in ((whole, 200), (whole.replace(b"\r\n", b"\n"), 400)):
            async with await anyio.connect_unix(cell.gateway.socket) as stream:
                with suppress(anyio.BrokenResourceError):
                    await stream.send(data[:cut])
                    await anyio.sleep(0.01)
                    await stream.send(data[cut:])
                    await stream.send_eof()
                assert parsed(await received(stream)).status == status
    assert NAME.encode() in whole
