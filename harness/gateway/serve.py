"""The gateway's socket: who may connect, how many at once, and what became of their requests."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from harness.clock import Clock, SystemClock
from harness.gateway.answering import Answering
from harness.gateway.connection import THROTTLE_S, Connection, Service
from harness.gateway.replies import reply
from harness.gateway.sockets import Door, Hangup, Stream, listening
from harness.gateway.telling import Log
from harness.gateway.wires import paths, speaker
from harness.messages import Decoding
from harness.ports import Model
from harness.seeds import SeedBook
from harness.walls import GATEWAY_SOCKET, GatewayRules
from harness.workspaces.images import KEEPER, SEATS

__all__ = ["Gateway", "serve_gateway"]

PING_S = 10.0
"""How long a client that streams waits for the first sign of life, and for each further one."""


class Gateway:
    """A gateway that is up: where its socket is, and how many requests were `served`, `refused` and `failed`."""

    def __init__(self, path: Path, log: Log) -> None:
        self.socket = path
        self._log = log

    @property
    def served(self) -> int:
        """Requests that were answered."""
        return self._log.counts["served"]

    @property
    def refused(self) -> int:
        """Requests and connections that were not let through."""
        return self._log.counts["refused"]

    @property
    def failed(self) -> int:
        """Requests that were let through and got no answer, or whose answer nobody took."""
        return self._log.counts["failed"]


@asynccontextmanager
async def serve_gateway(
    folder: Path,
    *,
    rules: GatewayRules,
    model: Model,
    decoding: Decoding,
    seeds: SeedBook,
    name: str,
    event: Callable[..., None],
    peers: frozenset[int] | None = None,
    clock: Clock | None = None,
    ping_s: float = PING_S,
) -> AsyncIterator[Gateway]:
    """
    Serve `model`, under `name`, on the socket `model.sock` in `folder` for as long as the context lasts.

    `model` is the cell's metered one; each request is told to `event` (`Transcript.add`). `peers` are the users who may
    connect, by the numbers that this process sees: by default a workspace's own, the owner of `folder`, and this one's.
    Raises `OSError` where the socket can't be made.
    """
    clock = clock or SystemClock()
    log = Log(event)
    answering = Answering(model, decoding=decoding, seeds=seeds, name=name, answer_s=rules.answer_s, clock=clock)
    service = Service(rules=rules, paths=paths(rules), answering=answering, log=log, ping_s=ping_s)
    if peers is None:
        peers = frozenset({KEEPER, *SEATS, (await anyio.Path(folder).stat()).st_uid, os.geteuid()})
    try:
        with listening(folder, GATEWAY_SOCKET) as door:
            async with _watching(_Keeper(service, peers), door):
                yield Gateway(folder / GATEWAY_SOCKET, log)
    finally:
        log.close()


@asynccontextmanager
async def _watching(keeper: _Keeper, door: Door) -> AsyncIterator[None]:
    """The keeper at the door, for as long as the context lasts; an error of the block's own is raised as it is."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keeper.watch, door, tasks)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised below, outside the group that would wrap it
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


class _Keeper:
    """Lets connections in, up to the rules' number at once; each refused one is told."""

    def __init__(self, service: Service, peers: frozenset[int]) -> None:
        self._service = service
        self._peers = peers
        self._inside = 0

    async def watch(self, door: Door, tasks: TaskGroup) -> None:
        """Accept until cancelled."""
        while True:
            try:
                stream = await door.accept()
            except OSError as error:
                # The descriptors of this process may be used up for a while, and a peer may be gone already.
                self._service.log.tell("failed", status=None, why=f"no connection could be accepted: {error}")
                await anyio.sleep(THROTTLE_S)
                continue
            why = self._refusal(stream)
            if why is None:
                self._inside += 1
                tasks.start_soon(self._serve, stream)
            else:
                await self._turn_away(stream, why)

    def _refusal(self, stream: Stream) -> str | None:
        user = stream.user
        if user not in self._peers:
            return f"a connection of user {user}, who is none of the workspace's"
        most = self._service.rules.connections
        return f"{most} connections are open already" if self._inside >= most else None

    async def _turn_away(self, stream: Stream, why: str) -> None:
        self._service.log.tell("refused", status=429, why=why)
        if self._service.log.flooded:
            await anyio.sleep(THROTTLE_S)
        with stream, anyio.move_on_after(1), suppress(Hangup):
            await stream.send(reply(429, speaker("").error(429, why), close=True))

    async def _serve(self, stream: Stream) -> None:
        try:
            with stream:
                await Connection(stream, self._service).serve()
        except Exception as error:  # noqa: BLE001 - one connection's trouble ends that connection
            self._service.log.tell("failed", status=None, why=f"the gateway broke: {type(error).__name__}: {error}")
        finally:
            self._inside -= 1
