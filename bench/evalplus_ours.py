"""
The `evalplus` referee on a file of samples, in a process of its own so that all it uses can be counted.

    python -m bench.evalplus_ours JOB.json

JOB.json has the keys of `Job`; what was said of each sample goes to the file that `out` names. Two workers mean two
lines, each with sealed rooms of its own, which take the next sample as soon as they are free. As in `proctor judge`,
samples of the longest tasks go first, and modules are compiled once, whatever is set for those who change them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from bench.evalplus_meter import Run, Watched, cpu_of
from bench.evalplus_peer import Outcome, scratch
from bench.evalplus_workloads import Sample
from harness import environment
from harness.plugins import load
from harness.ports import Workspace
from harness.tasks.evalplus import open_evalplus
from harness.tasks.task import Task
from harness.tree import Exhibit, Tree
from harness.walls import Caps, Walls

__all__ = ["Job", "OurRun", "Ours", "Rooms", "judge_all", "run_ours"]

_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Ours:
    """
    How we judge: where the rooms come from, how many candidates at a time, and the referee's options.

    A room has a little more memory than the 2 GiB of address space that its candidate may have.
    """

    backend: str
    image: str
    workers: int = 2
    options: Mapping[str, Any] = field(default_factory=dict)
    room_bytes: int = 3 << 30


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to judge: `data` and `samples` are files, `out` and `rooms` are written."""

    data: str
    samples: str
    out: str
    rooms: str
    ours: Ours


@dataclass(frozen=True, kw_only=True)
class OurRun:
    """One run of ours: what it used, and what was said of each sample. Times in seconds."""

    run: Run
    cpu_s: float
    judge_cpu_s: float
    first_verdict_s: float
    verdicts: Sequence[Mapping[str, Any]]

    def outcomes(self) -> list[Outcome]:
        """What EvalPlus could say too."""
        return [
            Outcome(base=row["tiers"].get("public") == "PASS", all=row["reading"] == "PASS") for row in self.verdicts
        ]


def run_ours(samples: Sequence[Sample], data: Path, ours: Ours) -> OurRun:
    """Judge `samples` in a process of its own. Ends the bench when that fails."""
    with scratch() as folder:
        lines = (json.dumps({"task_id": one.task_id, "solution": one.solution}) for one in samples)
        (folder / "samples").write_text("".join(f"{line}\n" for line in lines))
        names = {name: str(folder / name) for name in ("samples", "out", "rooms")}
        job = Job(data=str(data), ours=ours, **names)
        (folder / "job").write_text(json.dumps(asdict(job)))
        compiled = f"PYTHONPYCACHEPREFIX={environment.state_home() / 'bench' / 'compiled'}"
        argv = ["env", "-u", "PYTHONDONTWRITEBYTECODE", compiled]
        argv += [sys.executable, "-m", "bench.evalplus_ours", str(folder / "job")]
        run = Watched(rooms_file=folder / "rooms").run(argv, cwd=_ROOT, log=folder / "log")
        if run.status:
            sys.exit(f"our own run ended with {run.status}: {(folder / 'log').read_text()[-3000:]}")
        told = json.loads((folder / "out").read_text())
    return OurRun(
        run=run,
        cpu_s=run.cpu_s + told["rooms_cpu_s"],
        judge_cpu_s=told["judge_cpu_s"],
        first_verdict_s=told["first_verdict_s"],
        verdicts=told["verdicts"],
    )


class Rooms:
    """Opens sealed rooms, notes the control groups they run in, and what CPU time those had used when they closed."""

    def __init__(self, ours: Ours, noted: Path) -> None:
        self._backend: Any = load("workspaces", ours.backend)()
        self._walls = Walls(image=ours.image, caps=Caps(memory_bytes=ours.room_bytes))
        self._noted = noted
        self.cpu_s = 0.0

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Workspace]:
        """One fresh room."""
        async with self._backend.open(self._walls, run="bench-evalplus") as room:
            groups = await anyio.to_thread.run_sync(_groups, self._backend.name, room.name)
            with self._noted.open("a") as file:
                file.writelines(json.dumps(group) + "\n" for group in groups)
            try:
                yield room
            finally:
                self.cpu_s += sum(map(cpu_of, groups))


def _groups(backend: str, name: str) -> list[str]:
    """Where a room's control groups may be, by the backend's way of naming them."""
    if backend != "docker":
        return [f"proctor/{name}"]
    import docker

    client = docker.APIClient(version="auto")
    try:
        found = client.inspect_container(name)["Id"]
    finally:
        client.close()
    return [f"docker/{found}", f"system.slice/docker-{found}.scope"]


async def judge_all(job: Job, samples: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Every verdict, in the samples' order, and the times."""
    started = time.monotonic()
    referee, tasks = load("referees", "evalplus")(job.ours.options), open_evalplus(job.data)
    known = {name: tasks.task(name) for name in dict.fromkeys(sample["task_id"] for sample in samples)}
    shop = _Shop(
        referee=referee,
        rooms=Rooms(job.ours, Path(job.rooms)),
        known=known,
        queue=iter(_longest_first(samples, {name: referee.weight(task.sealed) for name, task in known.items()})),
        told=[{} for _ in samples],
    )
    loaded = time.monotonic()
    async with anyio.create_task_group() as tasks:
        for _ in range(job.ours.workers):
            tasks.start_soon(shop.work)
    return {
        "verdicts": shop.told,
        "load_s": loaded - started,
        "first_verdict_s": min(row["between"][1] for row in shop.told) - loaded,
        "rooms_cpu_s": shop.rooms.cpu_s,
        "judge_cpu_s": time.process_time(),
    }


def _longest_first(
    samples: Sequence[Mapping[str, str]], weights: Mapping[str, float]
) -> Iterable[tuple[int, Mapping[str, str]]]:
    """The samples with their places, those of one task together; a tenth of a second makes no difference."""
    places = {name: place for place, name in enumerate(weights)}
    return sorted(
        enumerate(samples),
        key=lambda item: (-round(weights[item[1]["task_id"]], 1), places[item[1]["task_id"]], item[0]),
    )


@dataclass(frozen=True, kw_only=True)
class _Shop:
    """Samples to judge, and what was said so far."""

    referee: Any
    rooms: Rooms
    known: Mapping[str, Task]
    queue: Iterator[tuple[int, Mapping[str, str]]]
    told: list[dict[str, Any]]

    async def work(self) -> None:
        """One line: the next sample, until there is none."""
        async with self.referee.line(self.rooms) as line:
            for at, sample in self.queue:
                exhibit = Exhibit(tree=Tree.of({"solution.py": sample["solution"]}))
                task, began = self.known[sample["task_id"]], time.monotonic()
                verdict = await line.judge(exhibit, task.open, task.sealed)
                self.told[at] = {
                    "reading": verdict.reading,
                    "tiers": {tier.tier: tier.reading for tier in verdict.tiers},
                    "detail": verdict.detail,
                    "cpu_s": verdict.cpu_s,
                    "between": [began, time.monotonic()],
                }


def main() -> None:
    """Judge, and write down what was said."""
    told = json.loads(Path(sys.argv[1]).read_text())
    job = Job(**{**told, "ours": Ours(**told["ours"])})
    samples = [json.loads(line) for line in Path(job.samples).read_text().splitlines()]
    Path(job.out).write_text(json.dumps(anyio.run(judge_all, job, samples)))


if __name__ == "__main__":
    main()
