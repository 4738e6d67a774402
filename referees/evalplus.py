# ruff: noqa: ARG002 - the contract hands every referee more than this one needs
"""
The `evalplus` referee: a public and a hidden tier of calls, judged by values.

The judge (this process) holds the expected values. Inside one sealed room a zygote forks a confined child for every
candidate and tier; what the child's calls return comes back as bytes, which only the judge compares. A candidate that
owned its whole room could claim other values, and would still have to know the right ones.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

from harness.clock import Clock, SystemClock, fresh_token
from harness.ports import PublicCheck, RoomOpener
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Exhibit, Tree
from harness.values import Standing, Verdict
from harness.views import PublicReading
from referees.evalplus_battery import degenerates
from referees.evalplus_cache import VerdictCache
from referees.evalplus_expected import ExpectedStore
from referees.evalplus_facts import facts_of, unbuilt_of
from referees.evalplus_line import Line, Means, open_line
from referees.evalplus_options import read_options
from referees.evalplus_suite import Suite, Suites
from referees.evalplus_tiers import CLASSES
from referees.room_memory import OWN_BYTES, ample

__all__ = ["EvalPlusReferee"]


class EvalPlusReferee:
    """
    Judges `solution.py` by EvalPlus's inputs. Made with the options of `EvalPlusOptions`, as a mapping or by name;
    raises `ExperimentError` for others.
    """

    name = "evalplus"
    classes: Mapping[str, Standing] = CLASSES
    clock: ClassVar[Clock] = SystemClock()

    def __init__(self, options: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        self.options = read_options({**(options or {}), **named})
        self._suites, self._store = Suites(self.options), ExpectedStore()
        self._least = self.options.memory_bytes + OWN_BYTES

    def suite(self, sealed: SealedHalf) -> Mapping[str, Any]:
        """
        What a verdict on this task depends on: counts, rule, options, digests; `digest` names all of it, `source`, the
        SHA-256 of the referee's own modules, included.
        """
        return self._suites(sealed).description

    def reference(self, sealed: SealedHalf) -> Tree:
        """The candidate that must PASS: prompt and canonical solution."""
        suite = self._suites(sealed)
        return Tree.of({self.options.file: suite.reference})

    def battery(self, task: OpenHalf, sealed: SealedHalf) -> Mapping[str, Tree]:
        """Degenerate candidates by name; every one must be rejected."""
        suite = self._suites(sealed)
        return degenerates(suite.entry_point, self.options.file)

    async def judge(self, exhibit: Exhibit, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener) -> Verdict:
        """The verdict on an exhibit. Raises `RefereeError` or `WorkspaceError` when, twice, it could not be had."""
        async with self.line(rooms) as line:
            return await line.judge(exhibit, task, sealed)

    async def judge_many(self, work: Sequence[tuple[Exhibit, SealedHalf]], rooms: RoomOpener) -> list[Verdict]:
        """Judge many exhibits on one line: references and controls, or a pool of samples."""
        async with self.line(rooms) as line:
            return [await line.verdict(exhibit, sealed) for exhibit, sealed in work]

    def line(
        self, rooms: RoomOpener, *, cache: VerdictCache | None = None, image: str = ""
    ) -> AbstractAsyncContextManager[Line]:
        """
        A line that judges many exhibits in one kept room. With `cache`, verdicts are looked for and kept there, by the
        suite, `image` (the digest of the rooms' image) and the exhibit; without it every judgement is an execution.
        Raises `ValueError` for a cache without an image. A room with too little memory for `memory_bytes` raises
        `RefereeError` from whatever is to be judged in it.
        """
        means = Means(
            options=self.options, suites=self._suites, store=self._store, clock=self.clock, cache=cache, image=image
        )
        return open_line(means, ample(rooms, least=self._least, option="memory_bytes"))

    def cache_at(self, folder: Path, *, damaged: Callable[[Path], None]) -> VerdictCache:
        """A cache of verdicts for lines, in a folder; `damaged` is told of each file there that can't be believed."""
        return VerdictCache(folder, damaged=damaged)

    def room_bytes(self, sealed: SealedHalf) -> int:
        """The memory that a room must have, in bytes: what one candidate may hold, and the zygote's own."""
        return self._least

    def weight(self, sealed: SealedHalf) -> float:
        """CPU seconds that the reference took on all calls, as far as that is known: 0 before it first ran."""
        return self._store.weight(self._suites(sealed))

    @asynccontextmanager
    async def public_check(
        self, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener
    ) -> AsyncIterator[PublicCheck | None]:
        """The public tier for a seat's rounds, in one kept room. What could not work raises before the seat begins."""
        async with self.line(rooms) as line:
            check = _Check(line, self._suites(sealed))
            await check.open()
            yield check


class _Check:
    """The public tier of one task, as a seat may ask for it."""

    def __init__(self, line: Line, suite: Suite) -> None:
        self._line, self._suite = line, suite

    async def open(self) -> None:
        """Have the room and the expected values. Raises `RefereeError` or `WorkspaceError`."""
        await self._line.public(self._suite, b"")

    async def __call__(self, code: str) -> PublicReading:
        """
        What the public tier says of `code`. Raises `RefereeError` or `WorkspaceError` when, twice, it can't be had.
        """
        run, expected = await self._line.public(self._suite, code.encode("utf-8", "surrogatepass"))
        return PublicReading(
            reading=run.reading,
            accepted=CLASSES[run.reading] == "accepted",
            passed=run.passed,
            total=len(run.calls),
            facts=facts_of(self._suite, expected, run),
            suite=self._suite.digest,
            execution=fresh_token(),
            unbuilt=unbuilt_of(run),
        )
