"""
A line on which many candidates are judged, one after the other, in one kept room.

Candidates of one line share a zygote and nothing else: each runs in a child of its own that can leave nothing behind.
References run in another room, so that a candidate's process never descends from one that has seen a reference.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import anyio.to_thread

from harness.clock import Clock, fresh_token
from harness.errors import RefereeError, WorkspaceError
from harness.ports import RoomOpener
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Exhibit
from harness.values import Evidence, TierReading, Verdict
from referees.evalplus_cache import VerdictCache
from referees.evalplus_cell import Cell, CellLost, sing
from referees.evalplus_expected import Expected, ExpectedStore
from referees.evalplus_facts import tests_of
from referees.evalplus_kept import Kept, kept
from referees.evalplus_options import EvalPlusOptions
from referees.evalplus_suite import Suite, Suites
from referees.evalplus_tiers import CLASSES, TierRun, crashed, job_of, judge_tier, not_run

__all__ = ["Line", "Means", "open_line"]

T = TypeVar("T")

_DOUBTFUL = frozenset({"TIMEOUT", "MEMORY", "CRASH"})


@dataclass(frozen=True, kw_only=True)
class Means:
    """What a line works with. `image` is the digest of the rooms' image, part of what a kept verdict is found by."""

    options: EvalPlusOptions
    suites: Suites
    store: ExpectedStore
    clock: Clock
    cache: VerdictCache | None = None
    image: str = ""

    def __post_init__(self) -> None:
        if self.cache is not None and not self.image:
            raise ValueError(
                "verdicts are kept by image: expected `image`, the digest of the rooms' image, with `cache`"
            )


class Line:
    """
    Judges in the order of asking. Never raises for what a candidate does.

    A zygote that is lost while a candidate runs is tried again in a fresh room, where a known program is judged first.
    If that goes well and the zygote is lost again, the candidate did it: CRASH. Anything else that fails is ours, and
    so is the loss of a whole room, however often: nothing that a candidate may do ends one.
    """

    def __init__(self, means: Means, candidates: Kept, references: Kept) -> None:
        self._means, self._candidates, self._references = means, candidates, references

    async def judge(self, exhibit: Exhibit, task: OpenHalf, sealed: SealedHalf) -> Verdict:  # noqa: ARG002 - as a referee's
        """The verdict on an exhibit. Raises `RefereeError` or `WorkspaceError` when, twice, it could not be had."""
        return await self.verdict(exhibit, sealed)

    async def verdict(self, exhibit: Exhibit, sealed: SealedHalf) -> Verdict:
        """The verdict on an exhibit. Raises `RefereeError` or `WorkspaceError` when, twice, it could not be had."""
        means, suite = self._means, self._means.suites(sealed)
        if means.cache is None:
            return await self._judge(exhibit, suite)
        look = partial(means.cache.get, suite=suite.digest, image=means.image, source=exhibit.digest)
        verdict = await anyio.to_thread.run_sync(look)
        if verdict is None:
            verdict = await self._judge(exhibit, suite)
            await anyio.to_thread.run_sync(partial(means.cache.put, verdict, image=means.image))
        return verdict

    async def _judge(self, exhibit: Exhibit, suite: Suite) -> Verdict:
        expected = await self._means.store.get(suite, self._references)
        started = self._means.clock.monotonic()
        done = await self._done(lambda cell: _examine(cell, exhibit, suite, expected))
        if isinstance(done, CellLost):
            done = _Examined(public=crashed(suite, done))
        return _verdict(exhibit, suite, expected, done, seconds=self._means.clock.monotonic() - started)

    async def public(self, suite: Suite, code: bytes) -> tuple[TierRun, Expected]:
        """The public tier alone, for a seat's rounds. Raises as `judge` does."""
        expected = await self._means.store.get(suite, self._references)
        done = await self._done(lambda cell: judge_tier(cell, suite, "public", expected, code, full=True))
        return (crashed(suite, done) if isinstance(done, CellLost) else done), expected

    async def _done(self, work: Callable[[Cell], Awaitable[T]]) -> T | CellLost:
        """What `work` gives, or how the zygote was lost for the second time."""
        lost: list[CellLost] = []
        failed: list[RefereeError | WorkspaceError] = []
        while len(lost) < 2:
            try:
                return await self._candidates.do(work)
            except CellLost as error:
                lost.append(error)
            except (RefereeError, WorkspaceError) as error:
                failed.append(error)
                if len(failed) == 2:
                    raise
        # It ran right after a known program was judged rightly in a fresh room, and took that one down as well.
        return lost[1]


@asynccontextmanager
async def open_line(means: Means, rooms: RoomOpener) -> AsyncIterator[Line]:
    """A line whose rooms come from `rooms`; they are opened when first needed, and closed when the block is left."""
    candidates, references = (Kept(rooms, python=means.options.python) for _ in range(2))
    async with kept(candidates, references):
        yield Line(means, candidates, references)


@dataclass(frozen=True, kw_only=True)
class _Examined:
    """What the tiers came to: the hidden one is None where it was not reached."""

    public: TierRun
    hidden: TierRun | None = None
    python: str = ""


async def _examine(cell: Cell, exhibit: Exhibit, suite: Suite, expected: Expected) -> _Examined:
    """The public tier, and after a PASS the hidden one, in a child of its own. Raises `CellLost` at any doubt."""
    entry = exhibit.tree.files.get(suite.options.file)
    if entry is None:
        return _Examined(public=_missing(exhibit, suite), python=cell.python)
    hidden = None
    full = suite.options.public_tier == "full"
    public = await judge_tier(cell, suite, "public", expected, entry.data, full=full)
    # A task without hidden calls is decided by its public ones.
    if public.reading == "PASS" and suite.total("hidden"):
        hidden = await judge_tier(cell, suite, "hidden", expected, entry.data, full=False)
    if (hidden or public).reading in _DOUBTFUL:
        await sing(cell)
    return _Examined(public=public, hidden=hidden, python=cell.python)


def _missing(exhibit: Exhibit, suite: Suite) -> TierRun:
    file = suite.options.file
    dropped = "".join(f" (it was left out: {entry.why})" for entry in exhibit.dropped if entry.path == file)
    why = f"build: the exhibit has no {file!r}{dropped}"
    return not_run(suite, "NO_BUILD", why)


def _verdict(exhibit: Exhibit, suite: Suite, expected: Expected, examined: _Examined, *, seconds: float) -> Verdict:
    """The verdict that two tiers make. The hidden one tells its class and nothing else."""
    public, hidden = examined.public, examined.hidden
    reading = (hidden or public).reading
    execution = f"{fresh_token()} python {examined.python}" if examined.python else fresh_token()
    return Verdict(
        reading=reading,
        standing=CLASSES[reading],
        evidence=Evidence(code=exhibit.digest, suite=suite.digest, execution=execution),
        tiers=(
            TierReading(tier="public", reading=public.reading, passed=public.passed, total=len(public.calls)),
            TierReading(tier="hidden", reading=hidden.reading)
            if hidden is not None
            else TierReading(tier="hidden", reading="NOT_RUN", ran=False),
        ),
        tests=tests_of(suite, expected, public),
        detail=f"public tier, {public.why}" if hidden is None else f"hidden tier: {hidden.reading}",
        seconds=seconds,
        cpu_s=_sum(public.cpu_s, 0.0 if hidden is None else hidden.cpu_s),
        limits=_limits(suite, expected),
    )


def _sum(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left + right


def _limits(suite: Suite, expected: Expected) -> dict[str, float]:
    """What the candidate's process on the public tier was under; a call's is the longest that one had."""
    job = job_of(suite, "public", expected["public"], b"")
    call_s = max([job.least, *job.longer.values()])
    return {"call_cpu_s": call_s, "build_cpu_s": job.build, "tier_cpu_s": job.budget, "memory_bytes": job.memory}
