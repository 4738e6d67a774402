"""The census of classes, of one condition or of an arm over all its tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

from cells.readable import Cell
from cells.settled import Settled
from harness.values import Halt, Limit, Void

__all__ = ["CLASSES", "Census", "Group", "by_arm", "by_condition", "census"]

CLASSES = (
    *("PASS", "FAIL", "NO_BUILD", "INTERFACE_MISS", "TIMEOUT", "MEMORY", "CRASH", "UNSCORABLE"),
    *("HALT", "FAILED_BOOT", "VOID", "REFUSED", "MISSING", "DOUBLED"),
)
"""The classes that every census prints, at zero too; a referee's finer ones stand after them."""


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Group:
    """Cells counted together: a condition, or an arm with its extras and model over all tasks (`task` is None)."""

    benchmark: str | None
    task: str | None
    arm: str
    extras: str
    model: str

    @property
    def label(self) -> str:
        """The group as text, with `|` between its parts."""
        head = () if self.task is None else (str(self.benchmark), self.task)
        return "|".join((*head, self.arm, self.extras, self.model))


@dataclass(frozen=True, kw_only=True, slots=True)
class Census:
    """
    How the cells of a group ended. The counts add up to `planned`; `judged` cells are those that passed or failed,
    `unscorable` those that the referee could not decide, whatever it calls that.

    `pass_rate` is over judged cells, None if there is none; with the halts counted as failures it is `rate_low`, with
    them as passes `rate_high`. `would_be` counts what the referee read of halted cells' exhibits, a diagnostic.
    """

    group: Group
    planned: int
    judged: int
    passed: int
    halted: int
    void: int
    unscorable: int
    classes: Mapping[str, int]
    halts: Mapping[str, int]
    voids: Mapping[str, int]
    would_be: Mapping[str, int]
    pass_rate: float | None
    rate_low: float | None
    rate_high: float | None

    @property
    def beside(self) -> str:
        """What the pass rate is never shown without."""
        others = self.planned - self.judged - self.halted - self.void - self.unscorable
        rest = f", {self.unscorable} unscorable" if self.unscorable else ""
        rest += f", {others} otherwise unjudged" if others else ""
        return f"{self.judged} of {self.planned} judged, {self.halted} halted, {self.void} void{rest}"


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def census(group: Group, cells: Iterable[Cell], settled: Settled) -> Census:
    """Count the classes of `cells`."""
    keys = tuple(cells)
    found = [settled.outcomes[key] for key in keys if key in settled.outcomes]
    classes = Counter(dict.fromkeys(CLASSES, 0))
    classes.update(settled.label(key).partition("(")[0] for key in keys)
    halts = Counter(dict.fromkeys(get_args(Limit), 0))
    halts.update(outcome.end.limit for outcome in found if isinstance(outcome.end, Halt))
    voids = Counter(outcome.end.cause for outcome in found if isinstance(outcome.end, Void))
    would_be = Counter(outcome.would_be.reading for outcome in found if outcome.would_be is not None)
    judged = [outcome.passed for outcome in found if outcome.passed is not None]
    passed, halted = sum(judged), classes["HALT"]
    return Census(
        group=group,
        planned=len(keys),
        judged=len(judged),
        passed=passed,
        halted=halted,
        void=classes["VOID"],
        unscorable=sum(outcome.undecided for outcome in found),
        classes={name: classes[name] for name in (*CLASSES, *sorted(classes.keys() - set(CLASSES)))},
        halts=dict(halts),
        voids=dict(sorted(voids.items())),
        would_be=dict(sorted(would_be.items())),
        pass_rate=_rate(passed, len(judged)),
        rate_low=_rate(passed, len(judged) + halted),
        rate_high=_rate(passed + halted, len(judged) + halted),
    )


def _grouped(cells: Iterable[Cell], *, tasks: bool) -> dict[Group, list[Cell]]:
    groups: dict[Group, list[Cell]] = {}
    for cell in cells:
        benchmark, task = (cell.benchmark, cell.task) if tasks else (None, None)
        group = Group(benchmark=benchmark, task=task, arm=cell.arm, extras=cell.extras, model=cell.model)
        groups.setdefault(group, []).append(cell)
    return groups


def by_condition(cells: Iterable[Cell]) -> dict[Group, list[Cell]]:
    """The cells of each condition, in the order declared."""
    return _grouped(cells, tasks=True)


def by_arm(cells: Iterable[Cell]) -> dict[Group, list[Cell]]:
    """The cells of each arm with its extras and model, in the order declared."""
    return _grouped(cells, tasks=False)
