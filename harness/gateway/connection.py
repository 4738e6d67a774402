"""One connection: request after request, each served, refused or failed, and each told to the transcript."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread

from harness.gateway.answering import Answering, Failure
from harness.gateway.answers import Answer
from harness.gateway.anthropic_messages import counted
from harness.gateway.asking import Asked, Refusal
from harness.gateway.bodies import strict_json
from harness.gateway.replies import CONTINUE, LAST_CHUNK, chunk, reply, stream_head
from harness.gateway.requests import Head, RequestReader, is_json
from harness.gateway.sockets import Hangup, Stream
from harness.gateway.telling import Log, Standing
from harness.gateway.wires import Wire, speaker
from harness.walls import GatewayRules

__all__ = ["THROTTLE_S", "Connection", "Service"]

THROTTLE_S = 0.1
"""How long each further refusal waits once a seat has flooded the gateway."""

_LINGER_S = 1.0
_LINGER_BYTES = 4 << 20
_IN_A_THREAD = 32 << 10


@dataclass(frozen=True, kw_only=True)
class Service:
    """What all connections of a cell share."""

    rules: GatewayRules
    paths: Mapping[str, Wire]
    answering: Answering
    log: Log
    ping_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Arrived:
    """A request that may be served."""

    wire: Wire
    path: str
    asked: Asked
    size: int
    close: bool


class Connection:
    """Serves one connection until the agent ends it, a request of it is refused, or it has had its requests."""

    def __init__(self, stream: Stream, service: Service) -> None:
        self._stream = stream
        self._service = service
        self._rules = service.rules
        self._reader = RequestReader(stream.receive, header_bytes=service.rules.header_bytes)
        self._target: str | None = None
        self._begun = False

    async def serve(self) -> None:
        """Request after request. Nothing that an agent sends comes up from here as an exception."""
        for left in reversed(range(self._rules.requests)):
            if not await self._one(last=left == 0):
                return

    async def _one(self, *, last: bool) -> bool:
        """One request; whether there may be another on this connection."""
        self._target, self._begun = None, False
        try:
            with anyio.fail_after(self._rules.arrival_s):
                arrived = await self._arrived()
        except Refusal as refusal:
            await self._refuse(refusal)
            return False
        except TimeoutError:
            if self._reader.started or self._target is not None:
                await self._refuse(Refusal(408, f"the request did not arrive in {self._rules.arrival_s} seconds"))
            return False
        if arrived is None:
            return False
        return await self._answer(arrived, close=last or arrived.close)

    async def _arrived(self) -> _Arrived | None:
        head = await self._reader.head()
        if head is None:
            return None
        self._target = head.target
        wire = self._wire(head)
        length = self._length(head)
        if head.expects and not await self._send(CONTINUE):
            return None
        body = await self._reader.body(length)
        if length > _IN_A_THREAD:
            asked = await anyio.to_thread.run_sync(_read, wire, head.target, body)
        else:
            asked = _read(wire, head.target, body)
        self._service.answering.check(asked)
        closes = b"close" in head.headers.get("connection", b"").lower()
        return _Arrived(wire=wire, path=head.target, asked=asked, size=length, close=closes)

    def _wire(self, head: Head) -> Wire:
        if head.method != "POST":
            raise Refusal(405, f"the method is {head.method:.20}: expected POST")
        wire = self._service.paths.get(head.target)
        if wire is None:
            raise Refusal(403, f"the path is {head.target!r:.200}: expected one of {', '.join(self._service.paths)}")
        return wire

    def _length(self, head: Head) -> int:
        most = self._rules.body_bytes
        if head.length is None:
            raise Refusal(411, "the request has no content-length")
        if head.length > most:
            raise Refusal(413, f"the body has {head.length} bytes: expected {most} at most")
        if not is_json(head.headers):
            raise Refusal(415, "the content-type is not application/json in UTF-8")
        return head.length

    async def _answer(self, arrived: _Arrived, *, close: bool) -> bool:
        asked, wire, log = arrived.asked, arrived.wire, self._service.log
        told: dict[str, Any] = {"wire": wire.name, "path": arrived.path, "request_bytes": arrived.size}
        if asked.counting:
            data = reply(200, counted(self._service.answering.prompt_tokens(asked)), close=close)
            log.tell("served", status=200, answer_bytes=len(data), **told)
            return await self._send(data) and not close
        number = self._service.answering.number()
        told |= {"call": number, "stream": asked.stream, "unused": log.first(asked.unused)}
        try:
            answer = await self._asked(arrived, number, close=close)
        except (Failure, Refusal) as error:
            standing: Standing = "refused" if isinstance(error, Refusal) else "failed"
            log.tell(standing, status=error.status, why=error.why, **told)
            await self._send_error(wire, error.status, error.why)
            return False
        except anyio.get_cancelled_exc_class():
            log.tell("failed", status=None, why="cut off before there was an answer: the seat has ended", **told)
            raise
        data = self._told(arrived, answer, close=close)
        log.tell("served", status=200, answer_bytes=len(data), **told)
        if not await self._send(data):
            log.tell("failed", status=None, why="the agent did not take its answer", **told)
            return False
        return not close

    def _told(self, arrived: _Arrived, answer: Answer, *, close: bool) -> bytes:
        wire, asked = arrived.wire, arrived.asked
        if not asked.stream:
            return reply(200, wire.whole(answer), close=close)
        head = b"" if self._begun else stream_head(wire.stream_type, close=close)
        return head + chunk(wire.events(answer, usage=asked.usage)) + LAST_CHUNK

    async def _asked(self, arrived: _Arrived, number: int, *, close: bool) -> Answer:
        """
        The model's answer, with signs of life to a client that streams. Raises `Failure` and `Refusal`.

        The call goes on when the agent hangs up: it would be charged by an estimate if it were cut off.
        """
        if not arrived.asked.stream:
            return await self._service.answering.answer(arrived.asked, number)
        result: Answer | Failure | Refusal
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._ping, arrived.wire, close)
            try:
                result = await self._service.answering.answer(arrived.asked, number)
            except (Failure, Refusal) as error:
                result = error
            tasks.cancel_scope.cancel()
        if not isinstance(result, Answer):
            raise result
        return result

    async def _ping(self, wire: Wire, close: bool) -> None:  # noqa: FBT001 - a task's arguments have no names
        """Begin the response when the model takes long, and go on until it has answered or the agent has hung up."""
        while True:
            await anyio.sleep(self._service.ping_s)
            data = chunk(wire.ping(self._service.answering.name))
            if not self._begun:
                data = stream_head(wire.stream_type, close=close) + data
            # Shielded, so that no half of it is sent; `_send` has a deadline of its own.
            with anyio.CancelScope(shield=True):
                self._begun = True
                if not await self._send(data):
                    return

    async def _refuse(self, refusal: Refusal) -> None:
        log = self._service.log
        wire = speaker(self._target or "")
        served = self._service.paths.get(self._target or "")
        name = None if served is None else served.name
        log.tell("refused", status=refusal.status, why=refusal.why, wire=name, path=self._target)
        if log.flooded:
            await anyio.sleep(THROTTLE_S)
        await self._send_error(wire, refusal.status, refusal.why)

    async def _send_error(self, wire: Wire, status: int, why: str) -> None:
        if self._begun:
            await self._send(chunk(wire.error_event(status, why)) + LAST_CHUNK)
            return
        if await self._send(reply(status, wire.error(status, why), close=True)):
            await self._linger()

    async def _linger(self) -> None:
        """Read on for a moment: an agent that still sends would lose the answer with the connection."""
        left = _LINGER_BYTES
        with anyio.move_on_after(_LINGER_S), suppress(Hangup):
            self._stream.end()
            while left > 0 and (data := await self._stream.receive()):
                left -= len(data)

    async def _send(self, data: bytes) -> bool:
        """Whether the agent took it."""
        try:
            with anyio.fail_after(self._rules.arrival_s):
                await self._stream.send(data)
        except (TimeoutError, Hangup):
            return False
        return True


def _read(wire: Wire, target: str, body: bytes) -> Asked:
    return wire.asked(target, strict_json(body))
