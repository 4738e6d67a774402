"""
Two rooms and the harness between them: the subject's holds the exhibit, the judge's holds the suite.

The suite's calls cross as frames that the harness passes on unread, within caps; the only thing of the subject's that
it reads is the greeting. The rooms share nothing else. Whose fault an end is, is noted where it happens: the subject's
own end is a fault of the subject, everything that goes wrong on the judge's side is the referee's.
"""

from __future__ import annotations

import json
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import ByteStream

from harness.errors import RefereeError
from harness.ports import RoomOpener
from harness.tree import Tree
from referees import pytest_bundle
from referees.pytest_wire import FRAME, LINEAGE, WireError, frame, head, raw_frame

__all__ = ["Bounds", "Hearing", "Order", "hear"]

_CLOSED = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """What one run of a suite may use; `judge_s` and `judge_bytes` bound the suite's own side."""

    cpu_s: int
    wall_s: float
    memory_bytes: int
    calls: int
    answer_bytes: int
    judge_s: float
    judge_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What is heard: the exhibit, the suite, the interface as the card has it, and which tests (None: all)."""

    exhibit: Tree
    suite: Tree
    interface: Sequence[Mapping[str, Any]]
    forbidden: Sequence[str]
    bounds: Bounds
    nonce: str
    only: Sequence[str] | None = None


@dataclass(kw_only=True, slots=True)
class Hearing:
    """What came of it: a reading that ended it before the suite ran, or the judge's events."""

    reading: str | None = None
    detail: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)


class _Fault(Exception):  # noqa: N818 - it is the subject's fault, and named so
    """The subject's end or breach: a class of the referee's table, and why."""

    def __init__(self, reading: str, why: str) -> None:
        super().__init__(why)
        self.reading = reading
        self.why = why


class _Line:
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
        await self.stream.send(data)


class _Subject:
    """The subject's room as the bridge sees it: ask, or a `_Fault`."""

    def __init__(self, line: _Line, bounds: Bounds) -> None:
        self.line = line
        self.bounds = bounds
        self.waited = 0.0
        self.calls = 0
        self.answered = 0

    async def load(self, order: Order) -> None:
        """Hand over the exhibit. Up to here nothing of the subject's has run, so a failure is ours."""
        orders = {
            "interface": list(order.interface),
            "forbidden": list(order.forbidden),
            "cpu_s": self.bounds.cpu_s,
            "memory_bytes": self.bounds.memory_bytes,
        }
        try:
            with anyio.fail_after(self.bounds.judge_s):
                await self.line.send(frame(b"O", orders) + raw_frame(b"T", order.exhibit.to_tar()))
                kind, _ = await self.line.receive()
        except (*_CLOSED, WireError, TimeoutError) as error:
            raise RefereeError(
                f"the subject's room did not start ({type(error).__name__}): has its image a python3?"
            ) from error
        if kind != b"L":
            raise RefereeError(f"the subject's room answered {kind!r} instead of saying that it is loaded")

    async def receive(self, expected: bytes) -> bytes:
        """The body of the next frame, waiting no longer than the whole suite may."""
        started = anyio.current_time()
        try:
            with anyio.fail_after(max(0.0, self.bounds.wall_s - self.waited)):
                kind, body = await self.line.receive()
        except TimeoutError:
            raise _Fault("TIMEOUT", f"no answer within {self.bounds.wall_s:g} s of waiting in all") from None
        except (*_CLOSED, WireError) as error:
            raise _Fault("CRASH", f"the channel broke: {type(error).__name__} {error}") from None
        finally:
            self.waited += anyio.current_time() - started
        if kind == b"X":
            raise _ended(body, self.bounds)
        if kind != expected:
            raise _Fault("CRASH", f"the subject's process spoke out of turn: {kind!r}")
        return body

    async def ask(self, request: bytes) -> bytes:
        """Pass on one call and bring back its answer."""
        self.calls += 1
        if self.calls > self.bounds.calls:
            raise _Fault("TIMEOUT", f"the suite was not done after {self.bounds.calls} calls of the subject")
        try:
            with anyio.fail_after(max(0.0, self.bounds.wall_s - self.waited)):
                await self.line.send(raw_frame(b"C", request))
        except TimeoutError:
            raise _Fault("TIMEOUT", f"the call was not taken within {self.bounds.wall_s:g} s") from None
        except _CLOSED:
            raise _Fault("CRASH", "the channel broke") from None
        body = await self.receive(b"R")
        self.answered += len(body)
        if self.answered > self.bounds.answer_bytes:
            raise _Fault("MEMORY", f"the subject's answers are over {self.bounds.answer_bytes} bytes together")
        return body


def _ended(body: bytes, bounds: Bounds) -> _Fault:
    """How the subject's process ended, by the word of the process that waited for it: any of it is a rejection."""
    try:
        end = dict(json.loads(body))
    except (ValueError, TypeError, RecursionError):
        return _Fault("CRASH", "the subject's process ended and left nonsense")
    if end.get("cpu") is True:
        return _Fault("TIMEOUT", f"the subject used its {bounds.cpu_s} s of the processor")
    how = f"signal {end.get('signal')}" if end.get("signal") else f"exit status {end.get('status')}"
    return _Fault("CRASH", f"the subject's process ended by {how[:40]}")


def _greeting(body: bytes, order: Order) -> tuple[dict[str, Any], Hearing | None]:
    """The interface as the subject offers it, or the reading that ends the hearing."""
    try:
        hello = dict(json.loads(body))
        if "failed" in hello:
            reading = "MEMORY" if hello["failed"] == "MemoryError" else "NO_BUILD"
            return {}, Hearing(reading=reading, detail=str(hello["text"])[:2000])
        missing = [str(name)[:200] for name in hello["missing"]][:50]
        names = {} if missing else _offered(hello["names"], order.interface)
    except (ValueError, TypeError, KeyError, RecursionError):
        return {}, Hearing(reading="CRASH", detail="the subject's process greeted with nonsense")
    if missing:
        return {}, Hearing(reading="INTERFACE_MISS", detail=f"missing: {', '.join(missing)}")
    return names, None


def _offered(found: Any, interface: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The handles of the interface's names, each checked: what is not one raises `ValueError` or its like."""
    names: dict[str, Any] = {}
    for module in interface:
        for name in module["names"]:
            names[f"{module['module']}.{name}"] = _handle(found[f"{module['module']}.{name}"])
        for name in module["exceptions"]:
            lineage = found[f"{module['module']}.{name}"]
            chain = [_handle(link) for link in lineage["chain"]]
            if len(chain) > LINEAGE or not all(label.isidentifier() for _, label in chain):
                raise ValueError("no lineage of a class")
            names[f"{module['module']}.{name}"] = {"chain": chain, "base": str(lineage["base"])}
    return names


def _handle(found: Any) -> list[Any]:
    number, label = found
    if type(number) is not int or type(label) is not str:
        raise ValueError("not a handle")
    return [number, label[:80]]


async def hear(order: Order, rooms: RoomOpener) -> Hearing:
    """
    Run the suite against the exhibit in two fresh rooms.

    Raises `RefereeError` when the judge's side fails, and passes on what the workspaces raise.
    """
    async with rooms() as room, room.stream(pytest_bundle.command("subject")) as stream:
        ended = await _blamed(_begin(_Line(stream), order, rooms))
    # Raised here: what is raised inside a stream may come out of it in a group, and nobody could tell whose it is.
    if isinstance(ended, RefereeError):
        raise ended
    return ended


async def _blamed(work: Coroutine[Any, Any, Hearing | RefereeError]) -> Hearing | RefereeError:
    try:
        return await work
    except RefereeError as error:
        return error


async def _begin(line: _Line, order: Order, rooms: RoomOpener) -> Hearing | RefereeError:
    """Load the exhibit, hear its greeting, and only then open the judge's room."""
    subject = _Subject(line, order.bounds)
    await subject.load(order)
    try:
        body = await subject.receive(b"H")
    except _Fault as fault:
        exited = fault.reading == "CRASH" and "exit status" in fault.why
        return Hearing(reading="NO_BUILD" if exited else fault.reading, detail=f"at import: {fault.why}")
    names, ended = _greeting(body, order)
    if ended is not None:
        return ended
    async with rooms() as room, room.stream(pytest_bundle.command("judge")) as stream:
        return await _blamed(_judged(_Line(stream), subject, order, names))


async def _judged(judge: _Line, subject: _Subject, order: Order, names: dict[str, Any]) -> Hearing:
    bounds = order.bounds
    with anyio.move_on_after(bounds.wall_s + bounds.judge_s):
        try:
            await _load_judge(judge, order, names)
            return Hearing(events=await _conduct(judge, subject))
        except _CLOSED as error:
            raise RefereeError("the judge's room ended before the suite did") from error
        except (WireError, ValueError) as error:
            raise RefereeError(f"the judge's room sent nonsense: {error}") from error
    if subject.calls:
        # The suite's own time is bounded and was measured by the controls; what is left is the subject's answers.
        return Hearing(reading="TIMEOUT", detail=f"the suite was not done {bounds.judge_s:g} s after its time")
    raise RefereeError(f"the judge's room did nothing for {bounds.wall_s + bounds.judge_s:g} s")


async def _load_judge(judge: _Line, order: Order, names: dict[str, Any]) -> None:
    kind, body = await judge.receive()
    python = json.loads(body)
    if kind != b"L" or python["version"] < [3, 10]:
        raise RefereeError(f"the judge's room has Python {python.get('version')}: expected 3.10 or later")
    bundle = await anyio.to_thread.run_sync(pytest_bundle.archive, python["magic"])
    orders = {
        "interface": list(order.interface),
        "names": names,
        "nonce": order.nonce,
        "only": None if order.only is None else list(order.only),
        "judge_bytes": order.bounds.judge_bytes,
    }
    await judge.send(frame(b"O", orders) + raw_frame(b"Z", bundle) + raw_frame(b"T", order.suite.to_tar()))


async def _conduct(judge: _Line, subject: _Subject) -> list[dict[str, Any]]:
    """Pass the suite's calls on until the judge says that it has finished."""
    events: list[dict[str, Any]] = []
    gone: _Fault | None = None
    while True:
        kind, body = await judge.receive()
        if kind == b"E":
            events.append(json.loads(body))
            if events[-1]["event"] == "finished":
                return events
        elif kind == b"C" and gone is None:
            try:
                await judge.send(raw_frame(b"R", await subject.ask(body)))
            except _Fault as fault:
                gone = fault
                await judge.send(frame(b"D", [fault.reading, fault.why]))
        elif kind == b"B":
            raise RefereeError(f"the judge's program failed:\n{json.loads(body)}")
        else:
            raise RefereeError(f"the judge's room spoke out of turn: {kind!r}")
