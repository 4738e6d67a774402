"""A judge of samples on fakes: tasks, samples, and a referee whose verdict is what a sample says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from cells.judging_samples import Judged, Judging, judge_samples, results_beside
from cells.judging_view import JudgingView
from harness import plugins
from harness.clock import SystemClock
from harness.errors import RefereeError
from harness.values import Evidence, TierReading, Verdict
from tests.cells.houses import TASKS
from tests.fake_workspace import FakeBackend, FakeWorkspace


class ScriptedJudge:
    """
    Its verdict is a sample's first word: a class, `BASE` for one that passes the public tier alone, `VOID` for nothing
    at all, `ONCE` for nothing the first time. `judged` are the sources in their order, `most` those judged at once.
    """

    name = "evalplus"
    classes: Mapping[str, Any] = {"PASS": "accepted", "FAIL": "rejected", "NO_BUILD": "rejected", "TIMEOUT": "rejected", "UNSCORABLE": "unscorable"}  # fmt: skip

    def __init__(self) -> None:
        self.judged: list[str] = []
        self.lines = self.at_once = self.most = 0
        self.source = "the referee's own"
        self.before: Callable[[str], None] = lambda _source: None
        self.options: Any = None
        self.keeping: list[tuple[Any, str]] = []
        self.weight: Callable[[Any], float] = lambda _sealed: 0.0

    def __call__(self, options: Mapping[str, Any]) -> ScriptedJudge:
        """Made with options, as a referee is."""
        kept = {
            "hidden_cap": 300,
            "public_tier": "full",
            "prelude": True,
            "memory_bytes": 1 << 20,
            "file": "solution.py",
            **options,
        }
        self.options = SimpleNamespace(**kept, model_dump=lambda mode: kept)
        return self

    def suite(self, sealed: Any) -> dict[str, Any]:
        """By the task's reference and the options."""
        cap, prelude = self.options.hidden_cap, self.options.prelude
        return {"digest": f"{sealed.solution.digest[:8]} {cap} {prelude}", "source": self.source}

    @asynccontextmanager
    async def line(self, rooms: Any, *, cache: Any = None, image: str = "") -> AsyncIterator[ScriptedJudge]:
        """One room a line."""
        self.lines += 1
        self.keeping.append((cache, image))
        async with rooms():
            yield self

    def cache_at(self, folder: Path, *, damaged: Callable[[Path], None]) -> Any:
        """One that has answered twice, and has met a damaged file."""
        damaged(folder / "ab" / "abcd")
        return SimpleNamespace(folder=folder, found=2)

    async def judge(self, exhibit: Any, task: Any, sealed: Any) -> Verdict:
        """What the sample says."""
        source = exhibit.tree.text("solution.py")
        self.judged.append(source)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await anyio.sleep(0.001)
        self.at_once -= 1
        self.before(source)
        word = source.split()[0]
        if word == "VOID" or (word == "ONCE" and self.judged.count(source) == 1):
            raise RefereeError("the room is gone")
        reading = {"BASE": "FAIL", "ONCE": "PASS"}.get(word, word)
        public = TierReading(tier="public", reading="PASS" if word == "BASE" else reading, passed=1, total=1)
        return Verdict(
            reading=reading,
            standing=self.classes[reading],
            evidence=Evidence(code=exhibit.digest, suite=self.suite(sealed)["digest"], execution="x"),
            tiers=(public, TierReading(tier="hidden", reading=reading)),
            detail="said \x1b[31m",
            seconds=0.001,
        )


class Bench:
    """A folder with tasks and samples, a judge and a backend. `notes` is what was said on the way."""

    def __init__(self, folder: Path, judge: ScriptedJudge, facts: dict[str, Any]) -> None:
        self.folder, self.judge, self.facts = folder, judge, facts
        self.notes, self.stop_after = "", 10**9
        self.backend = FakeBackend(name="docker", make=lambda name: FakeWorkspace(name=name, facts=facts))
        self.data = folder / "tasks.jsonl"
        self.data.write_text("".join(json.dumps(task) + "\n" for task in TASKS))
        self.samples, self.out = folder / "samples.jsonl", folder / "samples_proctor.jsonl"

    def give(self, *samples: str | tuple[int, str]) -> Path:
        """Write samples: each of the next task of three, or with the number of its task."""
        rows = [item if isinstance(item, tuple) else (at % 3, item) for at, item in enumerate(samples)]
        lines = [json.dumps({"task_id": f"Fake/{task}", "solution": text}) + "\n" for task, text in rows]
        self.samples.write_text("".join(lines))
        return self.samples

    def asked(self, **changes: Any) -> Judging:
        """What is asked for."""
        made = Judging(
            samples=self.samples,
            benchmark="fake",
            data=self.data,
            out=results_beside(self.samples),
            options={},
            backend="docker",
            image="proctor-seat",
            workers=2,
            extract=False,
            all_tasks=False,
            again=False,
        )
        return replace(made, **changes)

    def run(self, **changes: Any) -> Judged:
        """Judge, and keep what was said; stops after so many verdicts."""
        stream, self.judge.judged = StringIO(), []

        async def work() -> Judged:
            stop = anyio.Event()

            def before(_source: str) -> None:
                if len(self.judge.judged) >= self.stop_after:
                    stop.set()

            self.judge.before = before
            view = JudgingView(stream, SystemClock())
            return await judge_samples(self.asked(**changes), view=view, stop=stop, clock=SystemClock())

        try:
            return anyio.run(work)
        finally:
            self.notes = stream.getvalue()

    def rows(self) -> list[dict[str, Any]]:
        """The results on the disk."""
        return [json.loads(line) for line in self.out.read_text().splitlines()]


def made_bench(folder: Path, monkeypatch: pytest.MonkeyPatch, **facts: Any) -> Bench:
    """A bench whose judge and backend take the places of the registered ones; `facts` are what its rooms tell."""
    bench, real = Bench(folder, ScriptedJudge(), facts), plugins.load

    def load(kind: plugins.Kind, name: str) -> Any:
        if kind == "workspaces":
            return lambda: bench.backend
        return bench.judge if kind == "referees" else real(kind, name)

    monkeypatch.setattr(plugins, "load", load)
    return bench
