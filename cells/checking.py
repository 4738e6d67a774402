"""
Characterising tasks before anybody relies on them: reference, degenerate battery, mutants; dead arms; flaky tests.

Of an experiment file, of a task folder or a folder of them, or of a run, in whose record the outcome can be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cells.backends import usable_backend
from cells.busy import busy_machine
from cells.freeze import reopen_for_judging, settle_for_judging
from cells.house import House
from cells.verdicts import judge
from harness import plugins
from harness.canonical import plain
from harness.clock import Clock
from harness.errors import DriftError, RefereeError, TaskError
from harness.experiment import RefereeLimitsEntry
from harness.ports import Referee, RoomOpener
from harness.record import Record
from harness.registration import load_registration
from harness.tasks.characterise import Characterised, Judge, characterise, holds, least_margin
from harness.tasks.flaky import Flaky, flaky
from harness.tasks.folder import load_folders
from harness.tasks.generated_mutants import generated_mutants
from harness.tasks.suite_arms import DeadArms, dead_arms
from harness.tasks.task import Task
from harness.walls import Caps, Walls

__all__ = ["Case", "Checked", "How", "check_tasks", "folder_cases", "keep", "run_cases"]

_USUAL = "pytest"
"""Who judges a folder that names nobody."""
_SAID = 300
"""Characters of a referee's reason that a sentence of `why` has."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One task with what judges it."""

    task: Task
    referee: Referee
    rooms: RoomOpener
    judge: Judge | None = None


@dataclass(frozen=True, kw_only=True)
class How:
    """
    `rounds` of everything, at least two where the machine is kept busy (`load`) in all but the first; `at_once` at a
    time; with `generated` so many mutants that nobody wrote.
    """

    rounds: int = 1
    load: bool = False
    at_once: int = 2
    generated: int = 0


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What is known of one task's suite: the rows of the first round, and what later ones said otherwise."""

    task: str
    suite: str
    rows: tuple[Characterised, ...]
    dead: DeadArms
    flaky: tuple[Flaky, ...]
    rounds: int
    loaded: int
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether the suite may be relied on: every candidate as it must be, in every round."""
        return holds(self.rows) and not self.flaky

    @property
    def why(self) -> list[str]:
        """What does not hold, a sentence each; empty where the suite holds."""
        bad = [row for row in self.rows if not row.holds and row.kind != "generated"]
        rows = [f"{row.called}: {row.word} ({row.reading or _first(row.detail)})" for row in bad]
        return rows + [f"{item.candidate} is flaky at {item.test or 'its reading'}" for item in self.flaky]

    def of(self, kind: str) -> list[Characterised]:
        """The rows of a kind."""
        return [row for row in self.rows if row.kind == kind]

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON data, for scripts and for a record."""
        counts = {
            kind: {"held": sum(row.holds for row in self.of(kind)), "of": len(self.of(kind))}
            for kind in ("reference", "battery", "mutant", "generated")
        }
        return {
            "task": self.task,
            "suite": self.suite,
            "holds": self.holds,
            "why": self.why,
            "counts": counts,
            "least_margin": least_margin(self.rows),
            "dead": asdict(self.dead),
            "flaky": [asdict(item) for item in self.flaky],
            "rounds": self.rounds,
            "loaded_rounds": self.loaded,
            "rows": [{key: value for key, value in asdict(row).items() if key != "tests"} for row in self.rows],
        }


def _first(detail: str) -> str:
    """Why there is no reading, as far as a sentence takes it."""
    return detail if len(detail) <= _SAID else f"{detail[:_SAID]}..."


async def check_tasks(
    cases: Sequence[Case], how: How, *, clock: Clock, say: Callable[[str], None], seen: Callable[[Checked], None]
) -> list[Checked]:
    """
    Characterise every case; `seen` gets each as it is done. Raises `TaskError` for a mutant that can't be made, and
    `Blamed` when a room could not work; a referee that could not work gives a row that does not hold.
    """
    found = []
    for case in cases:
        say(f"{case.task.key}: judging its reference, battery and mutants")
        found.append(await _checked(case, how, clock))
        seen(found[-1])
    return found


async def _checked(case: Case, how: How, clock: Clock) -> Checked:
    task, started = case.task, clock.monotonic()
    made = None
    if how.generated:
        made = generated_mutants(task.sealed.solution, task.open.environment, most=how.generated)
    once = partial(characterise, case.referee, task, case.rooms, at_once=how.at_once, generated=made, judge=case.judge)
    rounds = [await once()]
    wanted = max(how.rounds, 2 if how.load else 1)
    for _ in range(wanted - 1):
        if how.load:
            async with busy_machine():
                rounds.append(await once())
        else:
            rounds.append(await once())
    return Checked(
        task=task.key,
        suite=str(case.referee.suite(task.sealed)["digest"]),
        rows=rounds[0],
        dead=dead_arms(rounds[0], task.sealed.tests),
        flaky=flaky(rounds),
        rounds=len(rounds),
        loaded=len(rounds) - 1 if how.load else 0,
        seconds=clock.monotonic() - started,
    )


async def folder_cases(folder: Path, *, referee: str, backend: str, image: str) -> list[Case]:
    """
    The tasks of a folder for a registered referee with its default options, in rooms of a backend that is here, under
    the limits that an experiment gives a referee's rooms by default. Without a name it is `pytest`. Raises `TaskError`
    for a task that is none of its referee's, with the names there are.
    """
    made: Referee = plugins.load("referees", referee or _USUAL)({})
    cases = []
    for task in load_folders(folder):
        try:
            made.suite(task.sealed)
        except (TaskError, RefereeError) as error:
            if referee:
                raise TaskError(f"{task.key} is no task for {referee!r}: {error}") from error
            names = ", ".join(sorted(plugins.table("referees")))
            raise TaskError(
                f"{error}\n{task.key} does not say who judges it, and is no task for {_USUAL!r}, which was taken: add "
                f"--referee NAME, one of {names}"
            ) from error
        name = task.sealed.image or image
        engine = await usable_backend(backend, name)
        walls = Walls(image=name, caps=Caps(**RefereeLimitsEntry().model_dump()))
        cases.append(Case(task=task, referee=made, rooms=partial(engine.open, walls, run="characterise")))
    return cases


async def run_cases(place: Path, *, is_run: bool, clock: Clock, say: Callable[[str], None]) -> list[Case]:
    """The tasks of an experiment file, or with `is_run` of the run in a folder, judged as its cells are."""
    if is_run:
        frozen, changed = await reopen_for_judging(place, clock=clock)
        for what in changed:
            say(f"not as it was frozen: {what}")
    else:
        frozen = await settle_for_judging(place, clock=clock, say=say)
    house = House.of(frozen, clock=clock)
    return [
        Case(
            task=task,
            referee=house.parts.referee,
            rooms=house.rooms(task),
            judge=partial(judge, house, task),
        )
        for task in house.parts.tasks.values()
    ]


def keep(folder: Path, found: Sequence[Checked], *, clock: Clock) -> None:
    """
    Append what was found to the record of the run in `folder`, an entry a task; it is opened where nothing was run yet.

    One that does not hold withdraws the task from all arms when the run goes on; see `counting` for which counts.
    Raises `DriftError`, and keeps nothing, where what was judged by is not the suite that the run is pinned to.
    """
    registration = load_registration(folder)
    for one in found:
        pinned = registration.pins[f"suite {one.task}"]["digest"]
        if one.suite != pinned:
            raise DriftError(
                f"{one.task} was judged by suite {one.suite}: the run is pinned to {pinned}, so nothing is kept in its "
                "record. Put back what changed, or freeze again"
            )
    with Record(folder, registration_digest=registration.digest, clock=clock) as record:
        if record.head is None:
            record.append("run.opened", {"registration": registration.id})
        for one in found:
            record.append("suite.characterised", plain(one.to_json()))
