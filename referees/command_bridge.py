"""
Two rooms and the harness between them: the suite's holds the runner and the suite, the subject's holds the exhibit.

What crosses is read here and packed anew, within caps, so that nothing of the subject's but bytes of its outputs
reaches the suite's room. Whose fault an end is, is noted where it happens: what the subject's program did, by the word
of the process that waited for it, is a fault of the subject; what goes wrong on the suite's side, a program of the
referee's that ends alone, and a room that is late, is *broken*, which says nothing of anybody yet; a room that is lost
whole is the machine's doing.
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
from referees import command_bundle
from referees.command_subject_line import Bounds, Fault, SubjectLine
from referees.command_wire import REQUEST, packed, unpacked
from referees.frame_line import CLOSED, Line
from referees.pytest_wire import LOAD, WireError, frame, raw_frame

__all__ = ["Broken", "Hearing", "Order", "hear"]

OWN_BYTES = 64 << 20
"""Bytes of memory that the server in the subject's room needs beside the program, generously."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What is heard: the exhibit, the suite, and how each is handled, as the card has it."""

    exhibit: Tree
    suite: Tree
    program: Sequence[str]
    needs: Sequence[str]
    build: Sequence[Sequence[str]]
    prepare: Sequence[Sequence[str]]
    command: Sequence[str]
    report: str
    environment: Mapping[str, str]
    crossing: Sequence[str]
    bounds: Bounds
    nonce: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Broken:
    """A hearing did not come to its end; `like` is the class of a subject that is found to have caused that."""

    why: str
    like: str = "CRASH"


@dataclass(kw_only=True, slots=True)
class Hearing:
    """
    What came of it: a `reading` that ended it, or `broken`, or the runner's exit status and report.

    `died` has the calls whose program died of a signal; `cpu_s` is the subject's time of the processor, as far as told.
    """

    reading: str | None = None
    detail: str = ""
    broken: Broken | None = None
    status: int = 0
    report: bytes = b""
    said: str = ""
    calls: int = 0
    died: list[tuple[str, str]] = field(default_factory=list)
    cpu_s: float = 0.0


async def hear(order: Order, rooms: RoomOpener) -> Hearing:
    """
    Run the suite against the exhibit in two fresh rooms.

    Raises `RefereeError` where the suite's side fails before the subject was called, and passes on what the workspaces
    raise.
    """
    async with rooms() as room:
        ended = await _small(room, order.bounds) or await _heard(room, order, rooms)
    # Raised here: what is raised inside a stream may come out of it in a group, and nobody could tell whose it is.
    if isinstance(ended, RefereeError):
        raise ended
    return ended


async def _small(room: Workspace, bounds: Bounds) -> RefereeError | None:
    """What is wrong with a room of less memory than a call may hold: the kernel would end what keeps to its limit."""
    allowed, promised = (await room.facts()).get("memory_bytes"), bounds.memory_bytes + OWN_BYTES
    if not isinstance(allowed, int) or not 0 < allowed < promised:
        return None
    return RefereeError(
        f"the subject's room has {allowed} bytes of memory: expected {promised} or more, for `memory_bytes` and what "
        "the referee needs itself; raise memory_bytes of [referee.limits], or lower the card's"
    )


async def _heard(room: Workspace, order: Order, rooms: RoomOpener) -> Hearing | RefereeError:
    async with room.stream(command_bundle.command("subject")) as stream:
        return await _blamed(_begin(SubjectLine(Line(stream), order.bounds), order, rooms))


async def _blamed(work: Coroutine[Any, Any, Hearing | RefereeError]) -> Hearing | RefereeError:
    try:
        return await work
    except RefereeError as error:
        return error


async def _begin(subject: SubjectLine, order: Order, rooms: RoomOpener) -> Hearing | RefereeError:
    """Build the exhibit, and only then open the suite's room."""
    orders = {
        "program": list(order.program),
        "needs": list(order.needs),
        "build": [list(argv) for argv in order.build],
        "environment": dict(order.environment),
    }
    await subject.load(orders, order.exhibit)
    try:
        await subject.built()
    except Fault as fault:
        return _at_fault(fault)
    async with rooms() as room, room.stream(command_bundle.command("judge")) as stream:
        heard = await _blamed(_judged(Line(stream), subject, order))
    if isinstance(heard, Hearing):
        heard.calls, heard.died, heard.cpu_s = subject.calls, subject.died, subject.cpu_s
    return heard


async def _judged(judge: Line, subject: SubjectLine, order: Order) -> Hearing:
    """What the suite's side comes to. Raises `RefereeError` for a failure before the subject's first call."""
    bounds = order.bounds
    try:
        with anyio.fail_after(bounds.patience_s + bounds.judge_s):
            await _load_judge(judge, order)
            return await _conduct(judge, subject, order)
    except Fault as fault:
        return _at_fault(fault)
    except TimeoutError:
        broken = Broken(why=f"the suite was not done {bounds.judge_s:g} s after its time", like="TIMEOUT")
    except CLOSED:
        broken = await _ended(judge)
    except (WireError, ValueError, TypeError, KeyError) as error:
        broken = Broken(why=f"the suite's room sent nonsense: {type(error).__name__} {error}")
    except _JudgeError as error:
        broken = Broken(why=str(error))
    if not subject.calls:
        raise RefereeError(f"{broken.why}; the program under test had not been called yet")
    return Hearing(broken=broken)


async def _ended(judge: Line) -> Broken:
    """The end of the judge's program. Raises `RefereeError` where its whole room was lost: no answer can do that."""
    status = await judge.last_word()
    if status is None:
        raise RefereeError("the suite's room was lost: nothing in it outlived the judge's program")
    return Broken(why=f"the judge's program ended before the suite did, status {status}")


def _at_fault(fault: Fault) -> Hearing:
    if fault.sure:
        return Hearing(reading=fault.reading, detail=fault.why)
    return Hearing(broken=Broken(why=fault.why, like=fault.reading))


class _JudgeError(Exception):
    """What the judge's own program says of its end."""


async def _load_judge(judge: Line, order: Order) -> None:
    _, body = await judge.receive()
    version = json.loads(body)["version"]
    if version < [3, 10]:
        raise RefereeError(f"the suite's room has Python {version}: expected 3.10 or later")
    orders = {
        "prepare": [list(argv) for argv in order.prepare],
        "command": list(order.command),
        "report": order.report,
        "report_bytes": order.bounds.report_bytes,
        "environment": dict(order.environment),
        "crossing": list(order.crossing),
        "stub": command_bundle.stub(),
        "nonce": order.nonce,
    }
    await judge.send(frame(b"O", orders) + raw_frame(b"T", order.suite.to_tar()))


async def _conduct(judge: Line, subject: SubjectLine, order: Order) -> Hearing:
    """Pass the suite's calls on until its runner has ended."""
    while True:
        kind, body = await judge.receive(LOAD)
        if kind == b"C":
            await judge.send(raw_frame(b"R", await _passed_on(body, subject, order)))
        elif kind == b"F":
            return _finished(body, order)
        elif kind == b"B":
            raise _JudgeError(f"the suite's side failed: {json.loads(body)}")
        else:
            raise WireError(f"a frame {kind!r} out of turn")


async def _passed_on(body: bytes, subject: SubjectLine, order: Order) -> bytes:
    if len(body) > REQUEST:
        raise WireError(f"a call of {len(body)} bytes: expected at most {REQUEST}")
    head, (stdin,) = unpacked(body, 1)
    if head["uncaptured"]:
        raise _JudgeError(
            "a test lets the output of `subject` flow into the runner's report: capture it, or report into a file"
        )
    env = {name: head["env"][name] for name in order.crossing if name in head["env"]}
    end, out, err = await subject.ask(head["argv"], env, stdin)
    return packed(end, out, err)


def _finished(body: bytes, order: Order) -> Hearing:
    head, (report,) = unpacked(body, 1)
    if head["nonce"] != order.nonce:
        raise WireError("the report does not carry this execution's nonce")
    said = f"; it said: {head['said'].strip()[-600:]}" if head["said"].strip() else ""
    if head["status"] < 0:
        return Hearing(broken=Broken(why=f"the runner died of signal {-head['status']}{said}"))
    if head["missing"]:
        return Hearing(broken=Broken(why=f"the runner ended with {head['status']} and left no report{said}"))
    if head["cut"]:
        return Hearing(broken=Broken(why=f"the report has over {order.bounds.report_bytes} bytes"))
    return Hearing(status=head["status"], report=report, said=said)
