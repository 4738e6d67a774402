"""
Two rooms and the harness between them: the subject's holds the exhibit, the judge's holds the suite.

The suite's calls cross as frames that the harness passes on unread, within caps; the only thing of the subject's that
it reads is the greeting. The rooms share nothing else. Whose fault an end is, is noted where it happens: what the
monitor in its room says of the subject is the subject's, everything else that goes wrong is the referee's.
"""

from __future__ import annotations

import json
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from harness.errors import RefereeError
from harness.ports import RoomOpener, Workspace
from harness.tree import Tree
from referees import pytest_bundle
from referees.frame_line import CLOSED, Line
from referees.pytest_room import Bounds, Fault, SubjectRoom
from referees.pytest_wire import FRAME, LABEL, LINEAGE, WireError, frame, raw_frame

__all__ = ["Hearing", "Order", "hear"]

OWN_BYTES = 64 << 20
"""What the referee's own programs need of a room's memory."""
PATIENCE = 10
"""A hearing may take this many times what its limits allow together, by the clock: a backstop for a starved machine."""


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
    """
    What came of it: the judge's events, or a reading that stands whatever they say. `cpu_s` is what the subject used of
    the processor, in seconds, None where nobody could tell.
    """

    reading: str | None = None
    detail: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    cpu_s: float | None = None
    late: tuple[str, str] | None = None
    """A reading, and why, that stands if all tests passed: the subject's end after its last answer."""


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
    if len(json.dumps(names)) > FRAME // 2:
        raise ValueError("more than the judge can be told")
    return names


def _handle(found: Any) -> list[Any]:
    number, label = found
    if type(number) is not int or type(label) is not str:
        raise ValueError("not a handle")
    return [number, label[:LABEL]]


async def hear(order: Order, rooms: RoomOpener) -> Hearing:
    """
    Run the suite against the exhibit in two fresh rooms.

    Raises `RefereeError` when the judge's side fails, and passes on what the workspaces raise.
    """
    async with rooms() as room:
        small = await _small(room, order.bounds)
        if small is None:
            async with room.stream(pytest_bundle.command("subject")) as stream:
                ended = await _blamed(_begin(Line(stream), order, rooms))
        else:
            ended = small
    # Raised here: what is raised inside a stream may come out of it in a group, and nobody could tell whose it is.
    if isinstance(ended, RefereeError):
        raise ended
    return ended


async def _blamed(work: Coroutine[Any, Any, Hearing | RefereeError]) -> Hearing | RefereeError:
    try:
        return await work
    except RefereeError as error:
        return error


async def _small(room: Workspace, bounds: Bounds) -> RefereeError | None:
    """What is wrong with a room of less memory than the limits promise: the kernel would kill what is within them."""
    allowed, promised = (await room.facts()).get("memory_bytes"), max(bounds.memory_bytes, bounds.judge_bytes)
    if not isinstance(allowed, int) or not 0 < allowed < promised + OWN_BYTES:
        return None
    return RefereeError(
        f"the room has {allowed} bytes of memory: expected {promised + OWN_BYTES} or more, for `memory_bytes` or "
        "`judge_bytes` and what the referee needs itself; raise memory_bytes of [referee.limits], or lower theirs"
    )


async def _begin(line: Line, order: Order, rooms: RoomOpener) -> Hearing | RefereeError:
    """The hearing, within a time that no machine should need: neither side's own limits rest on the clock."""
    bounds = order.bounds
    patience_s = PATIENCE * (bounds.cpu_s + bounds.wall_s + bounds.judge_s)
    with anyio.move_on_after(patience_s):
        return await _opened(SubjectRoom(line, bounds), order, rooms)
    return Hearing(reading="UNSCORABLE", detail=f"the machine was too busy: nothing was decided in {patience_s:g} s")


async def _opened(subject: SubjectRoom, order: Order, rooms: RoomOpener) -> Hearing | RefereeError:
    """Load the exhibit, hear its greeting, and only then open the judge's room."""
    await subject.load(order.exhibit, order.interface, order.forbidden)
    try:
        body = await subject.receive(b"H")
    except Fault as fault:
        exited = fault.reading == "CRASH" and "exit status" in fault.why
        reading = "NO_BUILD" if exited else fault.reading
        return Hearing(reading=reading, detail=f"at import: {fault.why}", cpu_s=subject.cpu_s)
    names, ended = _greeting(body, order)
    if ended is not None:
        return await _left(subject, ended)
    async with rooms() as room, room.stream(pytest_bundle.command("judge")) as stream:
        return await _blamed(_judged(Line(stream), subject, order, names))


async def _left(subject: SubjectRoom, hearing: Hearing) -> Hearing:
    """What was heard, and how the subject took its leave: a breach stands over all of it, another end over a PASS."""
    fault = await subject.leave()
    if fault is not None and fault.breach:
        hearing.reading, hearing.detail = fault.reading, fault.why
    elif fault is not None and hearing.reading is None:
        hearing.late = (fault.reading, fault.why)
    hearing.cpu_s = subject.cpu_s
    return hearing


async def _judged(judge: Line, subject: SubjectRoom, order: Order, names: dict[str, Any]) -> Hearing:
    try:
        await _load_judge(judge, order, names)
        return await _left(subject, await _conduct(judge, subject))
    except CLOSED as error:
        raise RefereeError("the judge's room ended before the suite did") from error
    except (WireError, ValueError) as error:
        raise RefereeError(f"the judge's room sent nonsense: {error}") from error


async def _load_judge(judge: Line, order: Order, names: dict[str, Any]) -> None:
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
        "judge_s": order.bounds.judge_s,
    }
    await judge.send(frame(b"O", orders) + raw_frame(b"Z", bundle) + raw_frame(b"T", order.suite.to_tar()))


async def _conduct(judge: Line, subject: SubjectRoom) -> Hearing:
    """Pass the suite's calls on until the judge says that it has finished."""
    hearing = Hearing()
    gone: Fault | None = None
    while True:
        kind, body = await judge.receive()
        if kind == b"E":
            hearing.events.append(json.loads(body))
            if hearing.events[-1]["event"] == "finished":
                return hearing
        elif kind == b"C" and gone is None:
            try:
                await judge.send(raw_frame(b"R", await subject.ask(body)))
            except Fault as fault:
                gone = fault
                if fault.breach:
                    hearing.reading, hearing.detail = fault.reading, fault.why
                await judge.send(frame(b"D", [fault.reading, fault.why]))
        elif kind == b"T" and subject.calls:
            # What the suite needs by itself was measured by the controls; what is left is what it was answered.
            hearing.reading, hearing.detail = "TIMEOUT", f"the suite was over its own time ({body[:20].decode()})"
            return hearing
        elif kind == b"T":
            raise RefereeError(f"the suite is over its own time before it calls the subject: {body[:20]!r}")
        elif kind == b"B":
            raise RefereeError(f"the judge's program failed:\n{json.loads(body)}")
        else:
            raise RefereeError(f"the judge's room spoke out of turn: {kind!r}")
