"""
Judging a file of samples: read it, find what is judged already, judge the rest in sealed rooms, and count.

The main path is `judge_samples`, to be read top to bottom. Nothing is started before everything asked for is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import anyio

from cells.judging_line import Job, Judge, Lined, Shift, judge_jobs
from cells.judging_results import Basis, Result, ResultFile, result_of
from cells.judging_rooms import JudgingRooms, rooms_for
from cells.judging_view import JudgingView
from harness import plugins
from harness.canonical import digest_bytes, digest_json
from harness.clock import Clock
from harness.errors import Blamed, TaskError, UsageError
from harness.tasks.evalplus import EvalPlusFile, open_evalplus
from harness.tasks.evalplus_file import BENCHMARKS
from harness.tasks.samples import Sample, read_samples, samples_digest, source_of
from harness.values import Verdict

__all__ = ["Judged", "Judging", "judge_samples", "results_beside"]

_NAMED = 8
"""How many ignored keys are named."""
_TASKS_KEPT = 600
"""So many parsed tasks are held: all of a benchmark, since each is asked for its weight before any is judged."""


@dataclass(frozen=True, kw_only=True)
class Judging:
    """
    What was asked for. `data` is a file of tasks instead of the benchmark's own; `options` are the referee's; `cache`
    is a folder of verdicts that other files of samples have brought. Raises `UsageError` for a cache of verdicts where
    every sample is to be judged `again`.
    """

    samples: Path
    benchmark: str
    data: Path | None
    out: Path
    options: Mapping[str, Any]
    backend: str
    image: str
    workers: int
    extract: bool
    all_tasks: bool
    again: bool
    cache: Path | None = None

    def __post_init__(self) -> None:
        if self.again and self.cache is not None:
            raise UsageError("--again judges everything, and --cache spares it: leave one of them out")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """
    What came of it. `results` has a place for each of `samples`: None where there is no verdict. `rules` counts by
    which rule code was taken out of chat answers, `ignored` the keys of samples that were not looked at; `reused` are
    the results that an earlier judge had written.
    """

    asked: Judging
    tasks: EvalPlusFile
    samples: Sequence[Sample]
    samples_sha256: str
    results: Sequence[Result | None]
    void: Mapping[int, Blamed]
    stopped: Blamed | None
    interrupted: bool
    reused: int
    rules: Mapping[str, int]
    ignored: Mapping[str, int]
    classes: Sequence[str]
    options: Mapping[str, Any]
    fence: Mapping[str, Any]
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether every sample has its verdict."""
        return None not in self.results


@dataclass(frozen=True, kw_only=True)
class _Work:
    """The jobs, and which samples each is for: programs that are given several times are judged once."""

    tasks: EvalPlusFile
    samples: Sequence[Sample]
    jobs: Mapping[Job, Sequence[int]]
    rules: Counter[str] = field(default_factory=Counter)
    ignored: Mapping[str, int] = field(default_factory=dict)


async def judge_samples(asked: Judging, *, view: JudgingView, stop: anyio.Event, clock: Clock) -> Judged:
    """
    Judge what has no verdict yet. When `stop` is set, rooms are closed and what is judged is kept.

    Raises `UsageError`s for files and options that are not right, `GateRefused` for rooms that are not what the fence
    asks for, `StorageError` when results can't be kept.
    """
    began = clock.monotonic()
    work = _work(asked)
    if work.ignored:
        view.note(_ignored(work.ignored))
    judge: Judge = plugins.load("referees", "evalplus")(asked.options)
    rooms = await rooms_for(asked.backend, asked.image, candidate_bytes=judge.options.memory_bytes)
    docket = _Docket(work, judge, rooms, view)
    docket.keep(asked.cache)
    with ResultFile(asked.out) as file:
        docket.recall(file, again=asked.again)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rooms.backend.reap)
            shift = await docket.judge(file, workers=asked.workers, stop=stop)
            tasks.cancel_scope.cancel()
    return Judged(
        asked=asked,
        tasks=work.tasks,
        samples=work.samples,
        samples_sha256=samples_digest(work.samples),
        results=docket.results,
        void={index: error for job, error in (shift.void if shift else ()) for index in work.jobs[job]},
        stopped=shift.stopped if shift else None,
        interrupted=shift is None,
        reused=docket.reused,
        rules=work.rules,
        ignored=work.ignored,
        classes=tuple(judge.classes),
        options=judge.options.model_dump(mode="json"),
        fence={**rooms.to_json(), "facts_that_agree": docket.facts},
        seconds=clock.monotonic() - began,
    )


def results_beside(samples: Path) -> Path:
    """Where results go unless it is said: beside the samples, under their name."""
    whole = samples.resolve()
    stem = whole.name.removesuffix(".gz").removesuffix(".jsonl")
    return whole.with_name(f"{stem}_proctor.jsonl")


def _named_rightly(benchmark: str, tasks: EvalPlusFile) -> None:
    """Refuse figures of one of EvalPlus's benchmarks under the name of the other."""
    for task_id in tasks.ids if benchmark in BENCHMARKS else ():
        family = task_id.partition("/")[0].lower()
        if family in BENCHMARKS and family != benchmark:
            raise TaskError(
                f"{tasks.path} holds {task_id!r}, a task of {family}, not of {benchmark}: "
                f"expected --benchmark {family}, or a name of your own"
            )


def _work(asked: Judging) -> _Work:
    """Everything that is asked for, read and found right."""
    try:
        tasks = open_evalplus(asked.data or asked.benchmark, benchmark=asked.benchmark)
    except TaskError as error:
        raise error if asked.data else TaskError(f"{error}; or name a file with --data") from error
    _named_rightly(asked.benchmark, tasks)
    ignored: Counter[str] = Counter()
    samples = read_samples(asked.samples, tasks.ids, ignored=ignored)
    if asked.all_tasks and (missing := sorted(set(tasks.ids) - {sample.task_id for sample in samples})):
        raise UsageError(
            f"--all-tasks: {len(missing)} of {len(tasks.ids)} tasks have no sample: {', '.join(missing[:10])}"
            + (", ..." if len(missing) > 10 else "")
        )
    rules: Counter[str] = Counter()
    jobs: dict[Job, list[int]] = {}
    details = cache(lambda task_id: tasks.task(task_id).open.details)
    for index, sample in enumerate(samples):
        source = _extracted(sample, details, rules, asked.samples) if asked.extract else _given(sample, details)
        jobs.setdefault(Job(task_id=sample.task_id, source=source), []).append(index)
    # Those of one task together, tasks in the order of their first: its values are looked up once.
    places = {task_id: place for place, task_id in enumerate(dict.fromkeys(job.task_id for job in jobs))}
    return _Work(
        tasks=tasks,
        samples=samples,
        jobs=dict(sorted(jobs.items(), key=lambda item: places[item[0].task_id])),
        rules=rules,
        ignored=ignored,
    )


def _ignored(keys: Mapping[str, int]) -> str:
    """The keys that say nothing about a sample, the first few by name."""
    named = [f"{key[:40]!r} ({count})" for key, count in list(keys.items())[:_NAMED]]
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    return f"keys of the samples that are ignored, as EvalPlus does (in so many lines): {', '.join(named)}{more}"


Details: TypeAlias = Callable[[str], Mapping[str, str]]
"""The details of a task's open half by its name: its prompt and its entry point."""


def _given(sample: Sample, details: Details) -> bytes:
    return source_of(sample, "" if sample.kind == "solution" else details(sample.task_id)["prompt"])


def _extracted(sample: Sample, details: Details, rules: Counter[str], path: Path) -> bytes:
    """The code of a chat answer, and a count for the rule that found it."""
    from harness.seats.extraction import extract_code

    if sample.kind != "solution":
        raise UsageError(
            f"{path}, {sample.where} ({sample.task_id}) has a completion, which goes behind the prompt: --extract "
            "takes whole chat answers, as solution"
        )
    found = extract_code(sample.text, details(sample.task_id)["entry_point"])
    rules[found.rule] += 1
    return found.code.encode()


class _Docket:
    """Where every sample stands: its result, or still to be judged."""

    def __init__(self, work: _Work, judge: Judge, rooms: JudgingRooms, view: JudgingView) -> None:
        self._work, self._judge, self._rooms, self._view = work, judge, rooms, view
        self.results: list[Result | None] = [None] * len(work.samples)
        self.reused = self.facts = 0
        self._task = lru_cache(maxsize=_TASKS_KEPT)(work.tasks.task)
        self._suites: dict[str, Mapping[str, Any]] = {}
        self._cache: Any = None
        self._referee = str(self._suite(work.samples[0].task_id)["source"])

    def keep(self, folder: Path | None) -> None:
        """Look for verdicts in a folder, and keep new ones there. Raises `UsageError` where it can't be one."""
        if folder is None:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--cache {folder} is no folder and can't be made one: {error.strerror}") from error
        said = "is damaged, or of another program: it is not believed, and judged again"
        self._cache = self._judge.cache_at(folder, damaged=lambda path: self._view.note(f"{path} {said}"))

    def recall(self, file: ResultFile, *, again: bool) -> None:
        """Take over the earlier results that were made of the very same, and begin the file with them."""
        classes = self._judge.classes
        known = {
            (item.task_id, item.basis.source): item
            for item in file.earlier
            if not again and classes.get(item.reading) == item.standing
        }
        for job in self._work.jobs:
            found = known.get((job.task_id, digest_bytes(job.source)))
            if found is not None and found.basis == self._basis(job, self._suite(job.task_id)["digest"]):
                self._settle(job, found)
        kept = [item for item in self.results if item is not None]
        self.reused = len(kept)
        if file.torn:
            self._view.note(f"{file.path}: a last line that was never finished is cut off; its sample is judged again")
        aside = file.begin(kept)
        if aside is not None:
            still = {item.basis for item in kept}
            other = sum(item.basis not in still for item in file.earlier)
            why = f"{other} of its {len(file.earlier)} results are of other samples, suites, rooms or options"
            if not other:
                why = "its samples now stand in other places"
            self._view.note(f"{file.path}: {'--again' if again else why}; the file as it was is now {aside.name}")

    async def judge(self, file: ResultFile, *, workers: int, stop: anyio.Event) -> Shift | None:
        """Judge the jobs that have no result; None when `stop` came first."""
        left = [job for job, places in self._work.jobs.items() if self.results[places[0]] is None]
        weights = self._weights(left)
        # Those of the longest tasks first, so that at the end no worker is alone with one; else as they were. What is
        # less than a tenth of a second is noise, and would make the order another one for each measurement.
        left.sort(key=lambda job: round(weights.get(job.task_id, 0.0), 1), reverse=True)
        self._view.begin(
            total=len(self.results),
            done=[item for item in self.results if item is not None],
            left=[job.task_id for job in left for _ in self._work.jobs[job]],
            weights=weights,
        )
        if not left:
            return Shift(void=(), stopped=None)
        shift: Shift | None = None
        looked = anyio.Event()

        async def told(job: Job, fate: Verdict | Blamed) -> None:
            await looked.wait()
            self._told(file, job, fate)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when, stop, tasks.cancel_scope)
            tasks.start_soon(self._look, looked)
            shift = await judge_jobs(
                left, judge=self._judge, task=self._task, opened=self._opened, workers=workers, told=told
            )
            tasks.cancel_scope.cancel()
        if self._cache is not None and self._cache.found:
            self._view.note(f"{self._cache.found} verdicts are those that {self._cache.folder} held")
        return shift

    def _opened(self) -> Lined:
        """A line, with the cache of verdicts where there is one: its rooms are named as a result names them."""
        rooms = self._rooms
        if self._cache is None:
            return self._judge.line(rooms)
        named = digest_json([rooms.image_digest, rooms.walls_digest, rooms.backend.name])
        return self._judge.line(rooms, cache=self._cache, image=named)

    def _weights(self, jobs: Sequence[Job]) -> Mapping[str, float]:
        """By task, the seconds that its reference took; of a single task there is nothing to tell apart."""
        names = dict.fromkeys(job.task_id for job in jobs)
        return {name: self._judge.weight(self._task(name).sealed) for name in names} if len(names) > 1 else {}

    async def _look(self, looked: anyio.Event) -> None:
        """Look at the walls of a room while the first programs are judged: no verdict counts before."""
        self.facts = await self._rooms.look()
        looked.set()

    def _told(self, file: ResultFile, job: Job, fate: Verdict | Blamed) -> None:
        """A job has its verdict, which outlives this process when this returns; or has none."""
        first = self._work.samples[self._work.jobs[job][0]]
        if isinstance(fate, Blamed):
            self._view.note(f"{job.task_id}, sample {first.number} ({first.where}): VOID({fate.cause}): {fate}")
            return
        basis = self._basis(job, fate.evidence.suite)
        made = self._settle(job, result_of(fate, basis, sample=first.number, where=first.where))
        file.add(made)
        self._view.judged(made)

    def _settle(self, job: Job, result: Result) -> list[Result]:
        """Give a verdict to each sample with that source."""
        places = self._work.jobs[job]
        first = self._work.samples[places[0]].number
        for place in places:
            sample = self._work.samples[place]
            copy_of = None if sample.number == first else first
            self.results[place] = result.for_sample(sample=sample.number, where=sample.where, copy_of=copy_of)
        return [item for place in places if (item := self.results[place]) is not None]

    def _suite(self, task_id: str) -> Mapping[str, Any]:
        """What the referee says of a task's suite, asked once a task."""
        if task_id not in self._suites:
            self._suites[task_id] = self._judge.suite(self._task(task_id).sealed)
        return self._suites[task_id]

    def _basis(self, job: Job, suite: str) -> Basis:
        return Basis(
            task_id=job.task_id,
            source=digest_bytes(job.source),
            suite=suite,
            referee=self._referee,
            image=self._rooms.image_digest,
            walls=self._rooms.walls_digest,
            backend=self._rooms.backend.name,
        )


async def _cancel_when(stop: anyio.Event, scope: anyio.CancelScope) -> None:
    await stop.wait()
    scope.cancel()
