"""A referee on trial: it is asked for verdicts under a bound, and each is looked at whoever asked for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import anyio

from harness.errors import Blamed, unwrapped
from harness.ports import Referee, RoomOpener
from harness.tasks.task import OpenHalf, Task
from harness.tree import Exhibit, Tree
from harness.values import Verdict

__all__ = ["Answer", "Make", "Trial"]

Make: TypeAlias = Callable[[Mapping[str, Any]], Referee]
"""What a referee's entry point names: makes one from its options."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """
    What came of one judgement: a verdict, an error that takes the blame (`blamed`), any other error (`raised`), or
    nothing within the bound (`late`). `said` is the reading, or what the error says.
    """

    kind: Literal["verdict", "blamed", "raised", "late"]
    said: str
    seconds: float
    verdict: Verdict | None = None

    @property
    def standing(self) -> str:
        """`accepted`, `rejected` or `unscorable`; `none` where there is no verdict."""
        return "none" if self.verdict is None else self.verdict.standing

    def __str__(self) -> str:
        return f"{self.said} ({self.standing})" if self.verdict is not None else f"{self.kind}: {self.said[:200]}"


@dataclass(kw_only=True)
class Trial:
    """
    `referee` judges `task` in `rooms`, each exhibit within `bound_s` seconds. `malformed` says what was no verdict;
    `runs_here` is whether a candidate was run on this machine, without a room.
    """

    make: Make
    name: str
    options: Mapping[str, Any]
    task: Task
    rooms: RoomOpener
    bound_s: float
    arms: Sequence[str]
    hostile: Mapping[str, Tree]
    runs_here: bool = False
    referee: Referee = field(init=False)
    malformed: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.referee = self.make(self.options)

    async def judge(self, tree: Tree, *, task: OpenHalf | None = None, rooms: RoomOpener | None = None) -> Answer:
        """What the referee says of `tree`. A cancellation from outside comes through, nothing else."""
        exhibit = Exhibit(tree=tree)
        started = anyio.current_time()
        answer: tuple[Literal["verdict", "blamed", "raised", "late"], str, Verdict | None]
        answer = "late", f"no answer within {self.bound_s:g} s", None
        with anyio.move_on_after(self.bound_s):
            try:
                verdict = await self.referee.judge(
                    exhibit, task or self.task.open, self.task.sealed, rooms or self.rooms
                )
                answer = "verdict", verdict.reading, verdict
            except (Exception, SystemExit) as error:  # noqa: BLE001 - what it may not raise is what is looked for
                leaf = unwrapped(error) if isinstance(error, BaseExceptionGroup) else error
                answer = "blamed" if isinstance(leaf, Blamed) else "raised", f"{type(leaf).__name__}: {leaf}", None
        kind, said, found = answer
        if found is not None:
            self.malformed += _faults(found, exhibit, self)
            self.verdicts.append(found)
        return Answer(kind=kind, said=said, seconds=anyio.current_time() - started, verdict=found)


def _faults(verdict: Verdict, exhibit: Exhibit, trial: Trial) -> Iterator[str]:
    known = trial.referee.classes.get(verdict.reading)
    if known != verdict.standing:
        yield f"{verdict.reading!r} came as {verdict.standing}, its class table has {known or 'no such reading'}"
    if verdict.evidence.code != exhibit.digest:
        yield f"evidence.code is {verdict.evidence.code[:12]!r}, the exhibit is {exhibit.digest[:12]!r}"
    suite = trial.referee.suite(trial.task.sealed).get("digest")
    if verdict.evidence.suite != suite:
        yield f"evidence.suite is {verdict.evidence.suite[:12]!r}, the suite is {str(suite)[:12]!r}"
    if verdict.evidence.execution in {known.evidence.execution for known in trial.verdicts}:
        yield f"evidence.execution {verdict.evidence.execution[:12]!r} is an earlier execution's"
