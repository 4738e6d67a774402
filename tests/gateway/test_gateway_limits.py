"""What a connection may cost: its time, its number, its requests, its descriptors, its user, and lines of the record."""

from __future__ import annotations

import array
import os
import socket
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from harness.boundary import MeteredModel
from harness.clock import SystemClock
from harness.gateway import connection, telling
from harness.meter import Bounds, Ledger, Meter, Scope
from harness.transcript import Transcript, read_transcript
from harness.values import Halt
from harness.walls import GatewayRules
from tests.gateway.cells import (
    OPENAI,
    Answers,
    Cell,
    ask,
    chat,
    completion,
    gateway_cell,
    parsed,
    post,
    raw,
    received,
)

pytestmark = pytest.mark.anyio

REQUEST = post(OPENAI, chat())


async def connected(cell: Cell) -> SocketStream:
    """A connection to the gateway."""
    return await anyio.connect_unix(cell.gateway.socket)


async def answer_on(stream: SocketStream) -> bytes:
    """One whole answer with a length, from a connection that stays open."""
    data = b""
    while b"\r\n\r\n" not in data or len(parsed(data).body) < int(parsed(data).headers["content-length"]):
        data += await stream.receive()
    return data


@pytest.mark.parametrize("part", [b"P", REQUEST[:60], REQUEST[:-1]], ids=["a letter", "half a head", "half a body"])
async def test_a_request_that_does_not_arrive_is_ended(part: bytes) -> None:
    """However little is missing, and though a byte comes now and then."""
    async with gateway_cell(rules=GatewayRules(arrival_s=0.3)) as cell, await connected(cell) as stream:
        await stream.send(part)
        with anyio.fail_after(5):
            reply = parsed(await received(stream))
        assert (reply.status, cell.standings()) == (408, ["refused"])


async def test_a_request_that_arrives_byte_by_byte_is_ended() -> None:
    """Each byte does not buy more time."""
    async with gateway_cell(rules=GatewayRules(arrival_s=0.3)) as cell, await connected(cell) as stream:
        with anyio.fail_after(5), suppress(anyio.BrokenResourceError):
            while not cell.events:
                await stream.send(b"X")
                await anyio.sleep(0.02)
        assert cell.standings() == ["refused"]


async def test_a_connection_without_a_request_is_closed_without_a_word() -> None:
    """Clients keep connections open for a next request that may never come; that is no attempt at anything."""
    async with gateway_cell(rules=GatewayRules(arrival_s=0.2)) as cell, await connected(cell) as stream:
        with anyio.fail_after(5):
            assert await received(stream) == b""
        assert cell.events == []


async def test_more_connections_than_allowed_are_turned_away_at_once() -> None:
    """Those inside go on, and when one of them ends there is room again."""
    async with gateway_cell(rules=GatewayRules(connections=3)) as cell, AsyncExitStack() as stack:
        inside = [await stack.enter_async_context(await connected(cell)) for _ in range(3)]
        await inside[0].send(REQUEST)
        await answer_on(inside[0])
        with anyio.fail_after(5):
            over = [parsed(await raw(cell, REQUEST)) for _ in range(4)]
        assert [reply.status for reply in over] == [429] * 4
        assert cell.standings() == ["served", *["refused"] * 4]
        await inside[0].send(REQUEST)
        assert parsed(await answer_on(inside[0])).status == 200
        await inside[1].aclose()
        await anyio.sleep(0.05)
        assert parsed(await raw(cell, REQUEST)).status == 200


async def test_a_connection_has_so_many_requests() -> None:
    """The last answer says that it is the last."""
    async with gateway_cell(rules=GatewayRules(requests=3)) as cell, await connected(cell) as stream:
        kept = []
        for _ in range(3):
            await stream.send(REQUEST)
            kept.append(parsed(await answer_on(stream)).headers["connection"])
        assert kept == ["keep-alive", "keep-alive", "close"]
        with anyio.fail_after(5):
            assert await received(stream) == b""


async def test_a_client_that_ends_after_one_request_is_let_go() -> None:
    """As it asks."""
    async with gateway_cell() as cell, await connected(cell) as stream:
        await stream.send(post(OPENAI, chat(), "Connection: close"))
        with anyio.fail_after(5):
            assert parsed(await received(stream)).headers["connection"] == "close"


async def test_an_expectation_is_met() -> None:
    """A client that waits for leave to send its body gets it, and only if the head is right."""
    head, _, body = post(OPENAI, chat(), "Expect: 100-continue").partition(b"\r\n\r\n")
    async with gateway_cell() as cell:
        async with await connected(cell) as stream:
            await stream.send(head + b"\r\n\r\n")
            assert await stream.receive() == b"HTTP/1.1 100 Continue\r\n\r\n"
            await stream.send(body)
            assert parsed(await answer_on(stream)).status == 200
        async with await connected(cell) as stream:
            await stream.send(head.replace(b"/chat/", b"/other/") + b"\r\n\r\n")
            with anyio.fail_after(5):
                assert parsed(await received(stream)).status == 403


def open_descriptors() -> int:
    """How many this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_descriptors_that_are_sent_along_are_never_open_here() -> None:
    """Two hundred of them beside a request."""
    async with gateway_cell() as cell:
        before = open_descriptors()
        with socket.socket(socket.AF_UNIX) as sender:
            sender.connect(str(cell.gateway.socket))
            passed = array.array("i", [sender.fileno()] * 20)
            for start in range(10):
                part = REQUEST[start * 5 : start * 5 + 5]
                sender.sendmsg([part], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
                await anyio.sleep(0.005)
            sender.sendall(REQUEST[50:])
            await anyio.wait_readable(sender)
            assert b"200 OK" in sender.recv(65536)
            assert open_descriptors() <= before + 2  # both ends of the connection


async def test_another_user_is_turned_away() -> None:
    """Whoever can reach the socket is not yet whoever may use it."""
    async with gateway_cell(peers=frozenset({54321})) as cell:
        assert parsed(await raw(cell, REQUEST)).status == 429
        assert f"user {os.geteuid()}" in cell.events[0]["why"]
        assert (cell.standings(), cell.model.asked) == (["refused"], [])


async def test_an_answer_that_takes_too_long_is_none() -> None:
    """The call is cut off, so that what it used is unknown, and the agent is told."""
    async with gateway_cell(rules=GatewayRules(answer_s=0.1)) as cell:
        cell.model.delay_s = 30
        with anyio.fail_after(5):
            assert (await ask(cell, OPENAI, chat())).status == 504
        assert cell.standings() == ["failed"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_goes_on_when_the_agent_hangs_up(stream: bool, tmp_path: Path) -> None:
    """It is charged by what the server counted, and not by an estimate, though nobody takes the answer."""
    meter = Meter([Scope(name="cell", bounds=Bounds(), ledger=Ledger())], clock=SystemClock(), rates=None)
    answers = Answers()
    answers.delay_s = 0.3
    with Transcript(tmp_path / "t.jsonl") as transcript:
        model = MeteredModel(answers, meter, transcript, served="m")
        async with gateway_cell(model, ping_s=0.02) as cell:
            async with await connected(cell) as client:
                await client.send(post(OPENAI, chat(stream=stream)))
                await anyio.sleep(0.1)
            with anyio.fail_after(5):
                await cell.told(2)
            assert cell.standings() == ["served", "failed"]
            assert "did not take" in cell.events[1]["why"]
    assert (meter.spend().charged_tokens, meter.spend().estimated) == (17, False)


async def test_a_flood_of_refusals_neither_fills_the_record_nor_keeps_the_honest_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After so many lines they are counted alone, and each has to wait."""
    monkeypatch.setattr(telling, "MOST", 5)
    monkeypatch.setattr(connection, "THROTTLE_S", 0.01)
    async with gateway_cell() as cell:
        for _ in range(9):
            assert parsed(await raw(cell, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")).status == 405
        assert (len(cell.events), cell.gateway.refused) == (5, 9)
        assert parsed(await raw(cell, REQUEST)).status == 200
        assert cell.events[-1]["standing"] == "served"
    assert cell.events[-1]["why"] == "4 more like these, not written down"


async def test_what_is_served_is_what_the_record_has(tmp_path: Path) -> None:
    """Each served call is in the transcript as any seat's is, with the event of the gateway beside it."""
    meter = Meter([Scope(name="cell", bounds=Bounds(), ledger=Ledger())], clock=SystemClock(), rates=None)
    with Transcript(tmp_path / "t.jsonl") as transcript:
        model = MeteredModel(Answers(), meter, transcript, served="m")
        async with gateway_cell(model, event=transcript.add) as cell:
            await ask(cell, OPENAI, chat())
            await ask(cell, OPENAI, chat(n=2))
    events = list(read_transcript(tmp_path / "t.jsonl"))
    assert [event["event"] for event in events] == ["request", "completion", "gateway", "gateway"]
    assert events[0]["messages"][0]["content"] == "hi"
    assert [event.get("standing") for event in events[2:]] == ["served", "refused"]


async def test_a_token_budget_ends_the_seat_within_one_call(tmp_path: Path) -> None:
    """Eight clients at once, who never stop asking: no more than the budget and one call is used, and all is over."""
    meter = Meter([Scope(name="cell", bounds=Bounds(tokens=3000), ledger=Ledger())], clock=SystemClock(), rates=None)
    answers = Answers(completion())
    answers.delay_s = 0.005

    async def greedy(cell: Cell) -> None:
        while True:
            with suppress(anyio.BrokenResourceError, OSError):
                await ask(cell, OPENAI, chat())

    with Transcript(tmp_path / "t.jsonl") as transcript, anyio.CancelScope() as seat:
        meter.attach(seat.cancel)
        model = MeteredModel(answers, meter, transcript, served="m")
        with anyio.fail_after(15):
            async with gateway_cell(model) as cell, anyio.create_task_group() as tasks:
                for _ in range(8):
                    tasks.start_soon(greedy, cell)
    spent = meter.spend().charged_tokens
    assert isinstance(meter.halted, Halt)
    assert (meter.halted.limit, meter.blamed) == ("tokens", None)
    assert 3000 <= spent <= 3000 + 17
    assert len(answers.asked) == meter.calls


async def test_a_call_that_the_seat_s_end_cuts_off_is_told() -> None:
    """It was let through, and there is no answer; those that were not written down are counted at such an end too."""
    events: list[dict[str, object]] = []
    with anyio.CancelScope() as seat:
        async with gateway_cell(event=lambda kind, **data: events.append(data)) as cell:
            cell.model.delay_s = 30
            async with await connected(cell) as stream:
                await stream.send(REQUEST)
                await anyio.sleep(0.05)
                seat.cancel()
                await anyio.sleep(1)
    assert [(event["standing"], event["status"], event["call"]) for event in events] == [("failed", None, 1)]


async def test_what_a_flood_left_out_is_told_when_a_limit_ends_the_seat(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancellation is an end as any other."""
    monkeypatch.setattr(telling, "MOST", 1)
    monkeypatch.setattr(connection, "THROTTLE_S", 0.01)
    events: list[dict[str, object]] = []
    with anyio.CancelScope() as seat:
        async with gateway_cell(event=lambda kind, **data: events.append(data)) as cell:
            for _ in range(3):
                await raw(cell, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            seat.cancel()
            await anyio.sleep(1)
    assert events[-1]["why"] == "2 more like these, not written down"


async def test_a_socket_that_was_left_is_replaced_and_one_that_is_served_is_not(tmp_path: Path) -> None:
    """A killed process leaves its socket; a living one shall not lose it to another."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "model.sock"))
    async with gateway_cell(folder=tmp_path) as cell:
        with pytest.raises(OSError, match="another gateway listens there"):
            async with gateway_cell(folder=tmp_path):
                pass
        assert parsed(await raw(cell, REQUEST)).status == 200


async def broken_block() -> None:
    """A gateway whose user fails."""
    async with gateway_cell() as cell:
        assert cell.gateway.socket.is_socket()
        raise ZeroDivisionError


async def test_the_gateway_ends_with_its_block() -> None:
    """Connections, calls and the socket; and an error of the block's own comes through as it is."""
    async with gateway_cell() as cell:
        cell.model.delay_s = 30
        async with await connected(cell) as stream:
            await stream.send(REQUEST)
            await anyio.sleep(0.05)
            place = cell.gateway.socket
            with anyio.fail_after(5), pytest.raises(ZeroDivisionError):
                await broken_block()
    assert not place.exists()
    assert len(cell.model.asked) == 1
