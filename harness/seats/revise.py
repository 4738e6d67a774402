"""
The seat that revises: a state, evidence of it, one typed action a revision, and what ships is certified again.

Five things hold whatever a model says. Only a patch that parses and runs replaces the state (admission). The last
state that the public tier accepted is retained and can be put back byte by byte (preservation). Evidence names the code
that it was taken on, and is stale beside any other (grounding). The public tier is run again on the bytes that ship
(certification). And it ends: after so many revisions, or earlier as its stop rule says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from harness.canonical import digest_bytes
from harness.errors import PluginError, SeatError, unknown_name
from harness.messages import Message, Request
from harness.seats import options
from harness.seats.bounded import clipped
from harness.seats.desk import Desk
from harness.seats.revise_actions import Action, Escalate, Keep, Patch, parse_action
from harness.seats.revise_admission import Admission, admit
from harness.seats.revise_asking import asked, evidence_stream
from harness.seats.revise_state import State, States, evidence_facts, reading_facts
from harness.values import Declared
from harness.views import PublicReading, Trace
from harness.workspaces.file_helper import at_hand
from harness.workspaces.files import Files, FileToolError

__all__ = ["ReviseSeat"]

Handling: TypeAlias = Literal["none", "shown", "rejected", "refreshed"]
"""What became of the evidence that an arm's stream had for a revision."""

_STOPS = ("green", "forced")
_ON_STALE = ("reject", "refresh")


class ReviseSeat:
    """
    Revisions of one file of the task's open half.

    `revisions` (1 to 64) is the most that are asked; with `stop` "green" the seat ends after a revision that leaves a
    state which the public tier accepts, or that escalates; with "forced" all of them are asked whatever the state.
    `start` is the file that the first state is read from, `before` another whose evidence is carried into the first
    revision as if `start` had been edited from it, or None; `file` is what is judged. `on_stale` is what becomes of
    stale evidence under a guarded arm: "reject" shows none, "refresh" runs the public tier again. With `restore`, the
    last accepted state ships where the current one is not accepted. `timeout_s` is what a patch may take to load;
    `system` a system message for every revision, or None for none. Raises `PluginError` for an option that can't be
    used.
    """

    name = "revise"

    def __init__(
        self,
        *,
        revisions: int = 3,
        stop: str = "green",
        start: str = "start.py",
        before: str | None = None,
        file: str = "solution.py",
        on_stale: str = "reject",
        restore: bool = True,
        timeout_s: float = 10.0,
        system: str | None = None,
    ) -> None:
        self.revisions = options.whole(self.name, "revisions", revisions, low=1, high=64)
        self.stop = _one_of("stop", stop, _STOPS)
        self.start = options.file_path(self.name, "start", start)
        self.before = None if before is None else options.file_path(self.name, "before", before)
        self.file = options.file_path(self.name, "file", file)
        self.on_stale = _one_of("on_stale", on_stale, _ON_STALE)
        self.restore = options.flag(self.name, "restore", restore)
        self.timeout_s = options.seconds(self.name, "timeout_s", timeout_s, high=600.0)
        self.system = None if system is None else options.text(self.name, "system", system)

    def options(self) -> Mapping[str, Any]:
        """The options as a registration pins them."""
        return {
            "revisions": self.revisions,
            "stop": self.stop,
            "start": self.start,
            "before": self.before,
            "file": self.file,
            "on_stale": self.on_stale,
            "restore": self.restore,
            "timeout_s": self.timeout_s,
            "system": self.system,
        }

    async def sit(self, desk: Desk) -> Declared:
        """Revise at `desk`. Raises `SeatError` where the task has no such start, or the state can't be laid."""
        try:
            return await _Sitting(self, desk).through()
        except FileToolError as fault:
            raise SeatError(f"cell {desk.cell}: {self.file} can't be laid and read again: {fault}") from fault


class _Sitting:
    """One cell's revisions. At every moment the workspace holds what ships if the seat is stopped right then."""

    def __init__(self, seat: ReviseSeat, desk: Desk) -> None:
        self._seat = seat
        self._desk = desk
        self._spoiled = False

    async def through(self) -> Declared:
        """From the start to the certificate."""
        states = await self._started()
        escalated = 0
        number = 0
        while number < self._seat.revisions:
            number += 1
            evidence, handling = await self._evidence(states)
            action = parse_action(await self._reply(number, states, evidence, handling))
            await self._revise(number, states, action)
            escalated += isinstance(action, Escalate)
            if self._spoiled:
                return Declared(note=f"the patch of revision {number} spoiled the workspace: nothing can be certified")
            if self._seat.stop == "green" and (states.current.verified or isinstance(action, Escalate)):
                break
        return await self._certified(states, f"{number} of {self._seat.revisions} revisions, {escalated} escalated")

    async def _started(self) -> States:
        """The first state, and the one that it counts as edited from."""
        seat = self._seat
        first = State.of(self._brought("start", seat.start))
        states = States(current=first.read(await self._read(first.code)), carried=first)
        if seat.before is None:
            states.carried = states.current
        else:
            before = State.of(self._brought("before", seat.before))
            states.carried = before.read(await self._read(before.code))
        await self._lay(states)
        self._desk.transcript.add(
            "start",
            revisions=seat.revisions,
            code=first.code,
            code_sha256=first.code_sha256,
            before_sha256=None if seat.before is None else states.carried.code_sha256,
            reading=reading_facts(states.current.reading),
        )
        return states

    def _brought(self, option: str, path: str) -> str:
        """A file of the task's open half as text, unchanged."""
        tree = self._desk.task.environment
        if path not in tree.files:
            raise SeatError(f"cell {self._desk.cell}: {option}: {unknown_name('file of the task', path, tree.files)}")
        try:
            return tree[path].decode("utf-8")
        except UnicodeDecodeError as error:
            raise SeatError(f"cell {self._desk.cell}: {option}: {path} is no UTF-8: byte {error.start}") from None

    async def _evidence(self, states: States) -> tuple[Trace | None, Handling]:
        """What the arm's stream has for the state as it is, and what became of it."""
        arm = self._desk.arm
        stream = evidence_stream(arm)
        if stream == "none":
            return None, "none"
        source = states.current if stream == "current" else states.carried
        evidence = source.trace(beside=states.current)
        if evidence is None:
            return None, "none"
        if not evidence.stale or not getattr(arm, "guarded", False):
            return evidence, "shown"
        if self._seat.on_stale == "reject":
            return None, "rejected"
        states.reread(await self._read(states.current.code))
        return states.current.trace(beside=states.current), "refreshed"

    async def _reply(self, number: int, states: States, evidence: Trace | None, handling: Handling) -> str:
        """The model's reply to one revision's prompt."""
        desk, seat = self._desk, self._seat
        text = asked(desk, states.current, evidence, number=number, revisions=seat.revisions)
        desk.transcript.add(
            "revision",
            revision=number,
            revisions=seat.revisions,
            seed=desk.seeds.seed(number),
            seed_payload=desk.seeds.payload(number),
            prompt_sha256=digest_bytes(text.encode()),
            state_sha256=states.current.code_sha256,
            evidence=evidence_facts(evidence),
            evidence_handling=handling,
        )
        head = () if seat.system is None else (Message(role="system", content=seat.system),)
        messages = (*head, Message(role="user", content=text))
        seed = desk.seeds.seed(number)
        return (await desk.model.complete(Request(messages=messages, decoding=desk.decoding, seed=seed))).text

    async def _revise(self, number: int, states: States, action: Action) -> None:
        """Do what the action asks for, as far as it is admitted, and write down what came of it."""
        before = states.current.code_sha256
        admission = await self._patched(states, action.code) if isinstance(action, Patch) else None
        self._desk.transcript.add(
            "revised",
            revision=number,
            action=type(action).__name__.lower(),
            note=_note(action, admission),
            detail=action.reason if isinstance(action, Escalate) else "" if admission is None else admission.detail,
            code=action.code if isinstance(action, Patch) else None,
            admitted=None if admission is None else admission.refusal is None,
            before_sha256=before,
            after_sha256=states.current.code_sha256,
            verified_sha256=None if states.verified is None else states.verified.code_sha256,
            reading=reading_facts(states.current.reading),
        )

    async def _patched(self, states: States, code: str) -> Admission | None:
        """Let `code` replace the state, if it may; None where it is the state already."""
        new = State.of(code)
        if new.code_sha256 == states.current.code_sha256:
            return None
        admission = await admit(self._desk.workspace, code, timeout_s=self._seat.timeout_s)
        try:
            await self._lay(states)  # whatever the trial did to the files
        except FileToolError as fault:
            # The candidate's doing, so no VOID: what it left is judged.
            self._spoiled = True
            return Admission(refusal="spoils", detail=clipped(str(fault), 500))
        if admission.refusal is None:
            states.edit(new.read(await self._read(code)))
            await self._lay(states)
        return admission

    async def _read(self, code: str) -> PublicReading | None:
        """What the public tier says of the code; each call is an execution of its own."""
        return None if self._desk.check is None else await self._desk.check(code)

    async def _lay(self, states: States) -> State:
        """Put what ships into the workspace, in which nothing else is alive then. Raises a `FileToolError`."""
        ships = states.ships(restore=self._seat.restore)
        async with at_hand(self._desk.workspace, self._desk.helper) as helper:
            await helper.sweep()
            await Files(helper).write(self._seat.file, ships.code.encode())
        return ships

    async def _look(self, ships: State) -> None:
        """Hold the file that is judged against the state that ships, byte for byte."""
        async with at_hand(self._desk.workspace, self._desk.helper) as helper:
            left = await Files(helper).read(self._seat.file, max_bytes=len(ships.code.encode()) + 1)
        if left.truncated or digest_bytes(left.data) != ships.code_sha256:
            raise SeatError(f"{self._seat.file} is not what was laid a moment ago: nothing can be certified")

    async def _certified(self, states: States, told: str) -> Declared:
        """Run the public tier again on the very bytes that ship, and say which they are."""
        ships = await self._lay(states)
        await self._look(ships)
        reading = await self._read(ships.code)
        restored = ships.code_sha256 != states.current.code_sha256
        self._desk.transcript.add(
            "certified",
            code_sha256=ships.code_sha256,
            current_sha256=states.current.code_sha256,
            verified_sha256=None if states.verified is None else states.verified.code_sha256,
            restored=restored,
            reading=reading_facts(reading),
        )
        word = "uncertified" if reading is None or not reading.accepted else "certified"
        return Declared(note=f"{told}; {'the last verified' if restored else 'the current'} state ships, {word}")


def _note(action: Action, admission: Admission | None) -> str | None:
    """Why nothing changed, where that was not what the reply asked for; None otherwise."""
    match action:
        case Keep(malformed=malformed):
            return malformed
        case Patch() if admission is None:
            return "no-change"
        case Patch() if admission is not None:
            return admission.refusal
        case _:
            return None


def _one_of(name: str, value: object, known: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in known:
        raise PluginError(f"seat 'revise': {name} is {value!r}: expected one of {', '.join(known)}")
    return value
