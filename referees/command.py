"""
The referee `command`: a withheld suite in any language against a program, in two rooms.

The suite and its runner are in a room without the exhibit, the exhibit in a room without the suite; a test reaches the
program by the command `subject`, and bytes come back. So the subject's code is never in the runner's process or room,
and the report that decides stands where it can't write. A suite's side that breaks is nobody's fault until the
reference was heard in the exhibit's place.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Annotated, Any

import anyio
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.canonical import digest_json
from harness.clock import fresh_token
from harness.errors import ExperimentError, RefereeError
from harness.ports import PublicCheck, RoomOpener
from harness.tasks.card import explain, read_card
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Exhibit, Tree
from harness.values import Evidence, Standing, TestReading, TierReading, Verdict
from referees.command_battery import battery
from referees.command_bridge import Broken, Hearing, Order, hear
from referees.command_bundle import runner_digest
from referees.command_card import CommandCard
from referees.command_readers import read_report
from referees.command_report import Outcome, Report, Unreadable
from referees.command_screen import screened
from referees.command_subject_line import Bounds

__all__ = ["CommandOptions", "CommandReferee"]

CLASSES: Mapping[str, Standing] = MappingProxyType(
    {
        "PASS": "accepted",
        "FAIL": "rejected",
        "NO_BUILD": "rejected",
        "INTERFACE_MISS": "rejected",
        "TIMEOUT": "rejected",
        "MEMORY": "rejected",
        "CRASH": "rejected",
        "SCREENED": "rejected",
        "UNSCORABLE": "unscorable",
    }
)


class CommandOptions(BaseModel):
    """The referee's options; a card's own limits take the place of those of the same name."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, strict=True
    )

    cpu_s: Annotated[int, Field(ge=1)] = 20
    """Seconds of the processor that all calls of the program may use while one whole suite runs."""
    wall_s: Annotated[float, Field(gt=0)] = 60.0
    """Seconds in which nothing of the program could run, for reasons of its own, all calls together."""
    memory_bytes: Annotated[int, Field(ge=32 << 20)] = 512 << 20
    """Bytes of memory that one call may hold, all its processes together."""
    build_s: Annotated[float, Field(gt=0)] = 120.0
    """Seconds of the processor that building the exhibit may use, and as many in which nothing of it could run."""
    calls: Annotated[int, Field(ge=1)] = 20_000
    """Calls of the program that one suite may make."""
    output_bytes: Annotated[int, Field(ge=1 << 10)] = 1 << 20
    """Bytes of either output of one call."""
    answer_bytes: Annotated[int, Field(ge=1 << 20)] = 64 << 20
    """Bytes of all outputs of all calls together."""
    judge_s: Annotated[float, Field(gt=0)] = 300.0
    """Seconds that the suite's own side may take on top of `wall_s`."""
    report_bytes: Annotated[int, Field(ge=1 << 10, le=64 << 20)] = 8 << 20
    """Bytes of the runner's report."""


class CommandReferee:
    """Judges by a withheld suite's own runner; made with the options of `CommandOptions`, as a mapping or by name."""

    name = "command"
    classes: Mapping[str, Standing] = CLASSES

    def __init__(self, options: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        try:
            self.options = CommandOptions.model_validate({**(options or {}), **named})
        except ValidationError as error:
            faults = "\n  ".join(explain(error, CommandOptions, "options"))
            raise ExperimentError(f"options of referee 'command':\n  {faults}") from None

    def suite(self, sealed: SealedHalf) -> Mapping[str, Any]:
        """What is pinned of a suite: its digest over tests, card, limits and runner; its ids; how many there are."""
        card = read_card(CommandCard, sealed.card, self.name)
        digest = digest_json(
            {
                "tests": sealed.tests.digest,
                "card": card.model_dump(mode="json"),
                "options": self.options.model_dump(mode="json"),
                "runner": runner_digest(),
            }
        )
        counts = {"suite": len(card.declared)}
        return {"digest": digest, "ids": list(card.ids), "counts": counts, "runner": {"name": card.runner}}

    def reference(self, sealed: SealedHalf) -> Tree:
        """The reference solution, which must PASS before anything is judged."""
        return sealed.solution

    def battery(self, task: OpenHalf, sealed: SealedHalf) -> Mapping[str, Tree]:
        """Degenerate candidates by name, each of which must be rejected before anything is judged."""
        return battery(read_card(CommandCard, sealed.card, self.name), task.environment)

    async def judge(self, exhibit: Exhibit, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener) -> Verdict:
        """The verdict on an exhibit. Raises `RefereeError` when the referee itself fails: then nothing was decided."""
        del task  # the suite alone decides; what the seat was told is no part of it
        started = anyio.current_time()
        card = read_card(CommandCard, sealed.card, self.name)
        case = _Case(card=card, tests=sealed.tests, bounds=self._bounds(card), rooms=rooms)
        ruling = await case.rule(exhibit.tree, sealed.solution)
        refused = await anyio.to_thread.run_sync(screened, exhibit.tree, card.forbidden)
        reading = ruling.reading if refused is None else "SCREENED"
        suite = str((await anyio.to_thread.run_sync(self.suite, sealed))["digest"])
        bounds = case.bounds
        return Verdict(
            reading=reading,
            standing=self.classes[reading],
            evidence=Evidence(code=exhibit.digest, suite=suite, execution=ruling.execution),
            tiers=(TierReading(tier="suite", reading=reading, passed=ruling.passed, total=len(card.declared)),),
            tests=ruling.tests(card),
            detail=_plain(ruling.detail + _left_out(exhibit, card) if refused is None else refused),
            would_be=None if refused is None else ruling.reading,
            seconds=anyio.current_time() - started,
            cpu_s=ruling.cpu_s,
            limits={"cpu_s": bounds.cpu_s, "wall_s": bounds.wall_s, "memory_bytes": bounds.memory_bytes},
        )

    @asynccontextmanager
    async def public_check(
        self, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener
    ) -> AsyncIterator[PublicCheck | None]:
        """None: no runner can be trusted to run the public tests alone."""
        del task, sealed, rooms
        yield None

    def _bounds(self, card: CommandCard) -> Bounds:
        own = {key: value for key, value in card.limits.model_dump().items() if value is not None}
        return Bounds(**{**self.options.model_dump(), **own})


class _Ruling:
    """One reading and what it rests on."""

    def __init__(
        self, reading: str, detail: str, *, hearing: Hearing | None, report: Report | None, nonce: str
    ) -> None:
        self.reading = reading
        self.detail = detail
        self.report = report
        self.cpu_s = hearing.cpu_s if hearing else None
        self.passed = report.passed if report else 0
        outcomes = [[item.id, item.word] for item in report.outcomes] if report else []
        self.execution = digest_json({"nonce": nonce, "reading": reading, "outcomes": outcomes})

    def tests(self, card: CommandCard) -> tuple[TestReading, ...]:
        """Each test by its id, where the runner names them."""
        outcomes = self.report.outcomes if self.report else [Outcome(id=test, word="not run") for test in card.ids]
        words = {"passed": "PASS", "missing": "NOT_RUN", "not run": "NOT_RUN"}
        return tuple(
            TestReading(id=item.id, reading=words.get(item.word, "FAIL"), detail=_plain(_said(item)))
            for item in (outcomes if card.ids else ())
        )


class _Case:
    """A suite, and what it is heard under."""

    def __init__(self, *, card: CommandCard, tests: Tree, bounds: Bounds, rooms: RoomOpener) -> None:
        self.card = card
        self.tests = tests
        self.bounds = bounds
        self.rooms = rooms

    async def rule(self, exhibit: Tree, reference: Tree) -> _Ruling:
        """
        The reading of an exhibit. TIMEOUT, which a busy machine could bring about, stands if it comes twice.

        Where a hearing broke, the reference is heard: unless it passes, the referee could not work. If it does, and the
        hearing of the exhibit breaks again, the exhibit did it.
        """
        first = await self._hear(exhibit)
        if isinstance(first, _Ruling) and first.reading == "TIMEOUT":
            first = await self._hear(exhibit)
        if isinstance(first, _Ruling):
            return first
        control = await self._hear(reference)
        if not isinstance(control, _Ruling) or control.reading != "PASS":
            said = control.why if isinstance(control, Broken) else f"{control.reading}, {control.detail}"
            raise RefereeError(f"{first.why}. With the reference in its place: {said}")
        return await self._again(exhibit)

    async def _again(self, exhibit: Tree) -> _Ruling:
        second = await self._hear(exhibit)
        if isinstance(second, _Ruling):
            return second
        why = f"{second.why}: twice with this exhibit, and not with the reference in between"
        return _Ruling(second.like, why, hearing=None, report=None, nonce=fresh_token())

    async def _hear(self, exhibit: Tree) -> _Ruling | Broken:
        card, nonce = self.card, fresh_token()
        order = Order(
            exhibit=_without(exhibit, card.ignore),
            suite=self.tests,
            program=card.program,
            needs=card.needs,
            build=card.build,
            prepare=card.prepare,
            command=card.command,
            report=card.report,
            environment=card.environment,
            crossing=card.crossing,
            bounds=self.bounds,
            nonce=nonce,
        )
        hearing = await hear(order, self.rooms)
        if hearing.broken is not None:
            return hearing.broken
        if hearing.reading is not None:
            return _Ruling(hearing.reading, hearing.detail, hearing=hearing, report=None, nonce=nonce)
        return await self._decided(hearing, nonce)

    async def _decided(self, hearing: Hearing, nonce: str) -> _Ruling | Broken:
        try:
            report = await anyio.to_thread.run_sync(read_report, self.card, hearing.report, hearing.status)
        except Unreadable as error:
            why = f"{error}{hearing.said}"
            if not hearing.calls:
                raise RefereeError(f"{why}; the program under test was never called") from None
            return Broken(why=why)
        if report.first is None:
            detail = f"{report.passed} of {len(self.card.declared)} tests passed"
            return _Ruling("PASS", detail, hearing=hearing, report=report, nonce=nonce)
        detail = f"{report.first.id}: {_said(report.first)}"
        reading, died = hearing.died[0] if hearing.died else ("FAIL", "")
        return _Ruling(reading, f"{detail}; {died}" if died else detail, hearing=hearing, report=report, nonce=nonce)


def _said(outcome: Outcome) -> str:
    """Why a test did not pass; nothing for one that did."""
    if outcome.word == "passed":
        return ""
    return f"{outcome.word}: {outcome.detail}" if outcome.detail else outcome.word


def _plain(text: str) -> str:
    """Text that can be written as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _without(tree: Tree, ignore: list[str]) -> Tree:
    """The tree without the files and folders named."""
    names = tuple(name.rstrip("/") for name in ignore)
    kept = {
        path: file
        for path, file in tree.files.items()
        if not any(path == name or path.startswith(f"{name}/") for name in names)
    }
    return Tree(kept)


def _left_out(exhibit: Exhibit, card: CommandCard) -> str:
    """A hint where the program's own file was among what the harness could not take out of the workspace."""
    wanted = {card.main, *card.needs, *(word.removeprefix("./") for word in card.program)}
    lost = [item for item in exhibit.dropped if item.path in wanted]
    return "".join(f"; {item.path} was left out of the exhibit: {item.why}" for item in lost[:3])
