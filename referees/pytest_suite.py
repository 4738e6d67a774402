"""
The referee `pytest`: a withheld pytest suite against an exhibit, in two rooms.

The suite runs in a room without the exhibit, the exhibit in a room without the suite; between them cross plain data
and handles, by the table in `pytest_wire`. So the subject's code is never in the process that holds the expected
values, can reach neither the suite nor the channel of the verdict, and no comparison ever runs code of its.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Annotated, Any

import anyio
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.canonical import digest_json
from harness.clock import fresh_token
from harness.errors import ExperimentError
from harness.ports import PublicCheck, RoomOpener
from harness.tasks.card import SuiteCard, explain, suite_card
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Exhibit, Tree
from harness.values import Evidence, Standing, TierReading, Verdict
from referees import pytest_bundle
from referees.pytest_battery import battery
from referees.pytest_bridge import Hearing, Order, hear
from referees.pytest_public import Found, PublicTier
from referees.pytest_report import read_report, sayable, tests_of, unread
from referees.pytest_room import Bounds
from referees.pytest_screen import screened

__all__ = ["PytestOptions", "PytestReferee"]

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


class PytestOptions(BaseModel):
    """The referee's options; a card's own limits take the place of the first three."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, strict=True
    )

    cpu_s: Annotated[int, Field(ge=1)] = 20
    """Seconds of the processor that the subject may use while one whole suite runs."""
    wall_s: Annotated[float, Field(gt=0)] = 120.0
    """Seconds that the subject may keep the suite waiting while it does nothing itself, all calls together."""
    memory_bytes: Annotated[int, Field(ge=32 << 20)] = 512 << 20
    """Bytes of address space of the subject's process."""
    calls: Annotated[int, Field(ge=1)] = 200_000
    """Calls of the subject that one suite may make."""
    answer_bytes: Annotated[int, Field(ge=1 << 20)] = 64 << 20
    """Bytes of all the subject's answers together."""
    judge_s: Annotated[float, Field(gt=0)] = 120.0
    """Seconds that the suite's own side may use of the processor, and as many that it may wait for anything else."""
    judge_bytes: Annotated[int, Field(ge=128 << 20)] = 768 << 20
    """Bytes of address space of the suite's own process."""


class PytestReferee:
    """Judges by a withheld pytest suite; made with the options of `PytestOptions`, as a mapping or by name."""

    name = "pytest"
    classes: Mapping[str, Standing] = CLASSES

    def __init__(self, options: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        try:
            self.options = PytestOptions.model_validate({**(options or {}), **named})
        except ValidationError as error:
            faults = "\n  ".join(explain(error, PytestOptions, "options"))
            raise ExperimentError(f"options of referee 'pytest':\n  {faults}") from None

    def suite(self, sealed: SealedHalf) -> Mapping[str, Any]:
        """What is pinned of a suite: its digest over tests, card, limits and runner; its ids; how many there are."""
        card = suite_card(sealed.card)
        digest = digest_json(
            {
                "tests": sealed.tests.digest,
                "card": card.model_dump(mode="json"),
                "options": self.options.model_dump(mode="json"),
                "runner": pytest_bundle.runner_digest(),
            }
        )
        counts = {"suite": len(card.ids), "public": len(card.public)}
        return {"digest": digest, "ids": list(card.ids), "counts": counts, "runner": pytest_bundle.versions()}

    def reference(self, sealed: SealedHalf) -> Tree:
        """The reference solution, which must PASS before anything is judged."""
        return sealed.solution

    def battery(self, task: OpenHalf, sealed: SealedHalf) -> Mapping[str, Tree]:
        """Degenerate candidates by name, each of which must be rejected before anything is judged."""
        return battery(suite_card(sealed.card), task.environment)

    async def judge(self, exhibit: Exhibit, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener) -> Verdict:
        """The verdict on an exhibit. Raises `RefereeError` when the referee itself fails: then nothing was decided."""
        del task  # the suite alone decides; what the seat was told is no part of it
        started = anyio.current_time()
        card, nonce = suite_card(sealed.card), fresh_token()
        refused = await anyio.to_thread.run_sync(screened, exhibit.tree, card.forbidden)
        given = card if refused is None else card.model_copy(update={"forbidden": []})
        found = await self._run(exhibit, given, sealed.tests, rooms, nonce=nonce)
        reading, detail = (found.reading, found.detail) if refused is None else ("SCREENED", refused)
        tests = tests_of(card.ids, found.report, found.reading) if refused is None else unread(card.ids)
        passed = sum(test.reading == "PASS" for test in tests)
        told = [[test.id, test.reading] for test in tests]
        suite = str((await anyio.to_thread.run_sync(self.suite, sealed))["digest"])
        return Verdict(
            reading=reading,
            standing=self.classes[reading],
            evidence=Evidence(
                code=exhibit.digest,
                suite=suite,
                execution=digest_json({"nonce": nonce, "reading": reading, "tests": told}),
            ),
            tiers=(TierReading(tier="suite", reading=reading, passed=passed, total=len(card.ids)),),
            tests=tests,
            detail=sayable(detail),
            would_be=None if refused is None else found.reading,
            seconds=anyio.current_time() - started,
            cpu_s=found.cpu_s,
            limits={name: float(value) for name, value in asdict(self._bounds(card)).items()},
        )

    @asynccontextmanager
    async def public_check(
        self, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener
    ) -> AsyncIterator[PublicCheck | None]:
        """A check of the tests that the card makes public; None where it makes none so."""
        card = suite_card(sealed.card)
        if not card.public:
            yield None
            return

        async def run(exhibit: Exhibit, only: list[str]) -> Found:
            refused = await anyio.to_thread.run_sync(screened, exhibit.tree, card.forbidden)
            if refused is not None:
                return Found(reading="SCREENED", detail=refused)
            return await self._run(exhibit, card, sealed.tests, rooms, nonce=fresh_token(), only=only)

        yield PublicTier(
            card=card,
            environment=task.environment,
            standing=self.classes.__getitem__,
            suite=str((await anyio.to_thread.run_sync(self.suite, sealed))["digest"]),
            run=run,
        )

    def _bounds(self, card: SuiteCard) -> Bounds:
        own = {key: value for key, value in card.limits.model_dump().items() if value is not None}
        return Bounds(**{**self.options.model_dump(), **own})

    async def _run(
        self,
        exhibit: Exhibit,
        card: SuiteCard,
        tests: Tree,
        rooms: RoomOpener,
        *,
        nonce: str,
        only: list[str] | None = None,
    ) -> Found:
        order = Order(
            exhibit=_sources(exhibit.tree),
            suite=tests,
            interface=[module.model_dump(mode="json") for module in card.interface],
            forbidden=card.forbidden,
            bounds=self._bounds(card),
            nonce=nonce,
            only=only,
        )
        hearing = await hear(order, rooms)
        found = _decided(hearing, card, order)
        return found if found.report is not None else replace(found, detail=found.detail + _left_out(exhibit, card))


def _decided(hearing: Hearing, card: SuiteCard, order: Order) -> Found:
    """PASS if every wanted test passed in full, else the class of the first that did not."""
    wanted = card.ids if order.only is None else order.only
    report = None
    if hearing.events:
        report = read_report(card.ids, wanted, hearing.events, order.nonce, whole=hearing.reading is None)
    if hearing.reading is not None or report is None:
        return Found(reading=hearing.reading or "CRASH", detail=hearing.detail, report=report, cpu_s=hearing.cpu_s)
    first = report.first
    if first is None and hearing.late is not None:
        reading, detail = hearing.late[0], f"after its last answer: {hearing.late[1]}"
    elif first is None:
        reading, detail = "PASS", f"{report.passed} of {len(wanted)} tests passed"
    else:
        said = "; ".join(part for part in (first.word, first.line, first.detail) if part)
        reading, detail = first.fault or "FAIL", f"{first.id}: {said}"
    return Found(reading=reading, detail=detail, report=report, cpu_s=hearing.cpu_s)


def _sources(tree: Tree) -> Tree:
    """The exhibit without compiled Python, which no screen could read."""
    return Tree({path: file for path, file in tree.files.items() if not path.endswith((".pyc", ".pyo", ".so"))})


def _left_out(exhibit: Exhibit, card: SuiteCard) -> str:
    """A hint where a module of the interface was among what the harness could not take out of the workspace."""
    modules = {module.module.partition(".")[0] for module in card.interface}
    lost = [item for item in exhibit.dropped if item.path.partition("/")[0].removesuffix(".py") in modules]
    return "".join(f"; {item.path} was left out of the exhibit: {item.why}" for item in lost[:3])
