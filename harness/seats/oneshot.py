"""The seat that works in rounds of one completion each: a packet, a reply, its code, and what the public tests say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from harness.canonical import digest_bytes
from harness.errors import PluginError
from harness.facts import facts_json, unbuilt_json
from harness.messages import Message, Request
from harness.seats import options
from harness.seats.desk import Desk
from harness.seats.extraction import extract_code
from harness.seats.mirroring import AfterSource, in_step, packet
from harness.seats.prompt_bound import refuse_a_long_prompt
from harness.seats.showing import round_view
from harness.tree import Tree
from harness.values import Declared
from harness.views import PastRound, Previous, PublicReading
from harness.workspaces.exhibits import lay
from harness.workspaces.file_helper import at_hand

__all__ = ["MAX_CANDIDATE_BYTES", "Candidate", "OneShotSeat", "incumbent", "shipped"]

MAX_CANDIDATE_BYTES = 1 << 20
"""A candidate over this many bytes counts as no code: no task has such a solution, and no referee should read one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """
    The code of one round, empty where the reply had none, and what the public tests said of it, if there are any. What
    is older than every round has a round below 1: the newest of a pool is 0.
    """

    round: int
    code: str
    reading: PublicReading | None = None

    @property
    def accepted(self) -> bool:
        """Whether there is code and the public tests accepted it."""
        return bool(self.code) and self.reading is not None and self.reading.accepted


class OneShotSeat:
    """
    Rounds of one completion, each a conversation of its own: what a round knows of those before is in its packet.

    `rounds` (1 to 64) is the most there may be; `file` is where the candidate is written, below `/workspace`; `system`
    is a system message for every round, or None for none; `stop_on_pass` ends the rounds at the first candidate that
    the public tests accept; `after_source` says what an arm that mirrors another does once that one has no more rounds
    (`end` or `last`); a prompt over `max_prompt_tokens` has the cell REFUSED. Raises `PluginError` for an option that
    can't be used.
    """

    name = "oneshot"

    def __init__(
        self,
        *,
        rounds: int = 2,
        file: str = "solution.py",
        system: str | None = None,
        stop_on_pass: bool = True,
        after_source: AfterSource = "end",
        max_prompt_tokens: int | None = None,
    ) -> None:
        self.rounds = options.whole(self.name, "rounds", rounds, low=1, high=64)
        self.file = options.file_path(self.name, "file", file)
        self.system = None if system is None else options.text(self.name, "system", system)
        self.stop_on_pass = options.flag(self.name, "stop_on_pass", stop_on_pass)
        self.after_source = _after_source(after_source)
        self.max_prompt_tokens = (
            None
            if max_prompt_tokens is None
            else options.whole(self.name, "max_prompt_tokens", max_prompt_tokens, low=1, high=1 << 20)
        )

    def options(self) -> Mapping[str, Any]:
        """The options as a registration pins them."""
        return {
            "rounds": self.rounds,
            "file": self.file,
            "system": self.system,
            "stop_on_pass": self.stop_on_pass,
            "after_source": self.after_source,
            "max_prompt_tokens": self.max_prompt_tokens,
        }

    async def sit(self, desk: Desk) -> Declared:
        """Work through the rounds at `desk`."""
        return await _Sitting(self, desk).through()


class _Sitting:
    """One cell's rounds. At every moment the workspace holds what ships if the seat is stopped right then."""

    def __init__(self, seat: OneShotSeat, desk: Desk) -> None:
        self._seat = seat
        self._desk = desk
        self._done: list[Candidate] = []
        self._written: str | None = None
        self._past: list[PastRound] = []

    async def through(self) -> Declared:
        """All rounds, or as many as it takes until the public tests accept a candidate."""
        rounds = self._seat.rounds
        for number in range(1, rounds + 1):
            before = self._incumbent()
            reply = await self._reply(number)
            if reply is None:
                return Declared(note=f"what it mirrors has no round {number} of {rounds}")
            code = self._extracted(number, reply)
            await self._write([*self._done, Candidate(round=number, code=code)])
            self._done.append(Candidate(round=number, code=code, reading=await self._public(number, code)))
            self._past.append(PastRound(before=_told(before), after=_told(self._done[-1])))
            await self._write(self._done)
            if self._done[-1].accepted and self._seat.stop_on_pass:
                return Declared(note=f"the public tests accepted the candidate of round {number} of {rounds}")
        kept = shipped(self._done)
        ending = "no reply had any code" if kept is None else f"the candidate of round {kept.round} is left"
        return Declared(note=f"{rounds} rounds done; {ending}")

    async def _reply(self, number: int) -> str | None:
        """One round's packet and the model's reply to it; None where what it mirrors has no such round."""
        desk, best = self._desk, self._incumbent()
        previous = _told(best)
        view = replace(
            round_view(desk, number=number, rounds=self._seat.rounds, previous=previous), past=tuple(self._past)
        )
        state = await in_step(desk, view, self._seat.after_source)
        if state is None:
            return None
        await refuse_a_long_prompt(
            desk, view, state, self._seat.max_prompt_tokens, lambda text: self._asked(text, number)
        )
        text = packet(desk, view, state)
        desk.transcript.add(
            "round",
            round=number,
            rounds=self._seat.rounds,
            seed=desk.seeds.seed(number),
            seed_payload=desk.seeds.payload(number),
            prompt_sha256=digest_bytes(text.encode()),
            previous_round=None if previous is None or best is None else best.round,
        )
        return (await desk.model.complete(self._asked(text, number))).text

    def _asked(self, text: str, number: int) -> Request:
        """The request of a round whose packet is `text`."""
        head = () if self._seat.system is None else (Message(role="system", content=self._seat.system),)
        messages = (*head, Message(role="user", content=text))
        return Request(messages=messages, decoding=self._desk.decoding, seed=self._desk.seeds.seed(number))

    def _incumbent(self) -> Candidate | None:
        """What a packet would be made from now."""
        return incumbent([*_older(self._desk.pool), *self._done])

    def _extracted(self, number: int, reply: str) -> str:
        """The code of a reply, empty where it has none or far too much."""
        found = extract_code(reply, self._desk.task.details.get("entry_point"))
        data = found.code.encode()
        over = len(data) > MAX_CANDIDATE_BYTES
        code = "" if over else found.code
        self._desk.transcript.add(
            "extraction",
            round=number,
            rule=found.rule,
            code=code,
            code_sha256=digest_bytes(data),
            code_bytes=len(data),
            over_the_cap=over,
        )
        return code

    async def _public(self, number: int, code: str) -> PublicReading | None:
        """What the public tests say of the code, where the referee has any."""
        if self._desk.check is None:
            return None
        reading = await self._desk.check(code)
        self._desk.transcript.add(
            "public",
            round=number,
            reading=reading.reading,
            accepted=reading.accepted,
            passed=reading.passed,
            total=reading.total,
            facts=facts_json(reading.facts),
            **unbuilt_json(reading),
        )
        return reading

    async def _write(self, candidates: Sequence[Candidate]) -> None:
        """Put what ships into the workspace. An empty candidate never takes the place of a file that is there."""
        kept = shipped(candidates)
        if kept is None and (self._written is not None or self._seat.file in self._desk.task.environment):
            return
        code = "" if kept is None else kept.code
        if code != self._written:
            async with at_hand(self._desk.workspace, self._desk.helper) as helper:
                await lay(helper, Tree.of({self._seat.file: code}))
            self._written = code


def incumbent(candidates: Sequence[Candidate]) -> Candidate | None:
    """What a packet shows: of the candidates with code the one with most public tests passed, the newest on a tie."""
    with_code = [candidate for candidate in candidates if candidate.code]
    return max(with_code, key=lambda one: (one.reading.passed if one.reading else 0, one.round), default=None)


def _told(candidate: Candidate | None) -> Previous | None:
    """A candidate as an arm may see it, where it has code and the public tests said something of it."""
    if candidate is None or not candidate.code or candidate.reading is None:
        return None
    return Previous(code=candidate.code, reading=candidate.reading)


def _older(pool: Sequence[Previous]) -> list[Candidate]:
    """The pool's candidates, the newest of which is just older than round 1."""
    first = 1 - len(pool)
    return [Candidate(round=first + n, code=one.code, reading=one.reading) for n, one in enumerate(pool)]


def _after_source(value: AfterSource) -> AfterSource:
    if value not in get_args(AfterSource):
        known = ", ".join(map(repr, get_args(AfterSource)))
        raise PluginError(f"seat 'oneshot': option after_source is {value!r}: expected one of {known}")
    return value


def shipped(candidates: Sequence[Candidate]) -> Candidate | None:
    """The candidate that is left for the referee: the newest accepted one, else the newest with code."""
    with_code = [candidate for candidate in candidates if candidate.code]
    accepted = [candidate for candidate in with_code if candidate.accepted]
    ranked = accepted or with_code
    return ranked[-1] if ranked else None
