"""What each round of a recorded try was made from, made again from its transcript, its unit's pool and its pins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from cells.arm_making import made_arm
from cells.audit.findings import AuditedRun, Events
from cells.mirrors import mirror_sources
from cells.parts import StoreOrigin
from cells.pools.candidates import Pool, parse_pool
from harness.briefing import briefing_code
from harness.canonical import digest_bytes
from harness.casebook import recall_tasks
from harness.ports import Arm
from harness.seats.oneshot import Candidate, incumbent
from harness.tasks.task import OpenHalf
from harness.values import CellKey
from harness.views import Fact, PastRound, Previous, PublicReading, RoundView

__all__ = ["Materials", "Round", "rounds_of"]

_TASKS = 16
"""How many tasks are kept at hand: a record plays the arms of a unit close to each other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """
    One round as its transcript tells it: the `event` that began it, the prompt that was sent, the messages before it
    (role and text), the reply (None where none followed), the state of a mirror, what was extracted, the candidates
    that were there before it and after it, and the rounds that were over.
    """

    event: Mapping[str, Any]
    head: tuple[tuple[str, str], ...]
    sent: str | None
    reply: str | None
    mirror: Mapping[str, Any] | None
    extracted: Mapping[str, Any] | None
    before: tuple[Candidate, ...]
    after: tuple[Candidate, ...]
    past: tuple[PastRound, ...]

    @property
    def number(self) -> int:
        """Which round it is, from 1."""
        return int(self.event["round"])

    @property
    def best(self) -> Candidate | None:
        """The incumbent before it."""
        return incumbent(self.before)

    @property
    def previous(self) -> Previous | None:
        """The incumbent as a packet may see it: only where the public tests said anything of it."""
        return _shown(self.best)

    @property
    def over(self) -> tuple[PastRound, ...]:
        """The rounds that are over after it."""
        own = next((one for one in self.after if one.round == self.number), None)
        return (*self.past, PastRound(before=self.previous, after=_shown(own)))


def _shown(candidate: Candidate | None) -> Previous | None:
    if candidate is None or not candidate.code or candidate.reading is None:
        return None
    return Previous(code=candidate.code, reading=candidate.reading)


@dataclass
class _Telling:
    """A round while its events come by."""

    before: tuple[Candidate, ...]
    past: tuple[PastRound, ...] = ()
    event: Mapping[str, Any] | None = None
    mirror: Mapping[str, Any] | None = None
    head: tuple[tuple[str, str], ...] = ()
    sent: str | None = None
    reply: str | None = None
    extracted: Mapping[str, Any] | None = None
    reading: PublicReading | None = None

    def told(self) -> Round:
        assert self.event is not None  # asked for a round that began alone
        return Round(
            event=self.event,
            head=self.head,
            sent=self.sent,
            reply=self.reply,
            mirror=self.mirror,
            extracted=self.extracted,
            before=self.before,
            after=self.candidates(),
            past=self.past,
        )

    def candidates(self) -> tuple[Candidate, ...]:
        """Those before it, and its own."""
        if self.event is None or self.extracted is None:
            return self.before
        code = self.extracted["code"]
        return (*self.before, Candidate(round=self.event["round"], code=code, reading=self.reading))


def rounds_of(events: Events, pool: Sequence[Previous] = ()) -> Iterator[Round]:
    """The rounds of a transcript in order; `pool` are the candidates that its unit had before the first."""
    first = 1 - len(pool)
    older = tuple(Candidate(round=first + at, code=one.code, reading=one.reading) for at, one in enumerate(pool))
    now = _Telling(before=older)
    for event in events:
        match event.get("event"):
            case "mirror" | "round" as kind:
                if now.event is not None:
                    over = now.told()
                    yield over
                    now = _Telling(before=over.after, past=over.over)
                setattr(now, "mirror" if kind == "mirror" else "event", event)
            case "request" if now.event is not None and now.sent is None:
                told = [(message["role"], message["content"]) for message in event["messages"]]
                now.head, now.sent = tuple(told[:-1]), told[-1][1] if told else ""
            case "completion" if now.event is not None:
                now.reply = event["text"]
            case "extraction":
                now.extracted = event
            case "public":
                now.reading = _reading(event)
            case _:
                pass
    if now.event is not None:
        yield now.told()


def _reading(event: Mapping[str, Any]) -> PublicReading:
    facts = tuple(Fact(**fact) for fact in event["facts"])
    told = {name: event[name] for name in ("reading", "accepted", "passed", "total")}
    return PublicReading(**told, facts=facts, unbuilt=event.get("unbuilt"))


@dataclass
class Materials:
    """
    What a run pinned and its prompts were made of. Raises `IntegrityError` for a blob that is gone or another, which
    `files` reports, and `PluginError` for an arm that is not installed.
    """

    run: AuditedRun
    _recall: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        run = self.run

        @lru_cache(maxsize=_TASKS)
        def recall(key: str) -> OpenHalf:
            return recall_tasks(run.store, run.registration.pins, [key])[key].open

        self._recall = recall

    @cached_property
    def arms(self) -> dict[str, Arm]:
        """The experiment's arms, by name."""
        origin = StoreOrigin(self.run.store, self.run.registration.pins)
        entries = self.run.experiment.arms
        return {one if isinstance(one, str) else one.name: made_arm(one, origin) for one in entries}

    @cached_property
    def sources(self) -> dict[str, str]:
        """Of each mirroring arm the arm that it mirrors."""
        return mirror_sources(self.arms)

    def is_pinned(self, arm: str) -> bool:
        """Whether the arm that is installed here has the bytes that were registered."""
        pin = self.run.pin(f"arm {arm}") or {}
        return bool(digest_bytes(self.arms[arm].content) == pin.get("sha256"))

    def task(self, cell: CellKey) -> OpenHalf:
        """The open half of a cell's task."""
        half: OpenHalf = self._recall(f"{cell.benchmark}/{cell.task}")
        return half

    @cached_property
    def _pool(self) -> Pool | None:
        entry = self.run.experiment.population
        if entry is None:
            return None
        # By the digest that the experiment itself names: a pin that was turned to another file changes nothing.
        return parse_pool(self.run.store.get(entry.sha256), entry.pool)

    def pool(self, cell: CellKey) -> tuple[Previous, ...]:
        """The candidates that a cell's unit had before its first round."""
        return () if self._pool is None else self._pool.previous(cell.unit)

    def view(self, cell: CellKey, told: Round) -> RoundView:
        """What the cell's arm saw of a round, but for what it mirrors."""
        half = self.task(cell)
        return RoundView(
            instruction=half.instruction,
            details=half.details,
            extras={} if cell.extras == "none" else {cell.extras: half.extras[cell.extras]},
            round=told.number,
            rounds=told.event["rounds"],
            previous=told.previous,
            past=told.past,
            nonce=briefing_code(
                self.run.experiment.seat.seed_namespace, str(cell), digest_bytes(self.arms[cell.arm].content)
            ),
        )
