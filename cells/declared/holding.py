"""
What two readings of one comparison are held against each other by: taken once from each reading, and then compared.

What is undefined in either is no agreement: it is counted beside what could be held, and where nothing could be, said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import copysign, log
from typing import Literal, TypeAlias

from cells.contrasts import ContrastReading
from cells.declared.class_counts import class_counts
from cells.declared.labels import Labels
from cells.figures import figure, p_text
from cells.ratios import RatioReading
from cells.readings import Scoreboard

__all__ = ["Aspect", "ClassSide", "ContrastSide", "Finding", "RatioSide", "Side", "findings"]

Aspect: TypeAlias = Literal["sign", "magnitude", "significance", "floor", "classes"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """
    One aspect of two readings. `how` says in what they differ, None where they agree; `over` what of it was left out,
    since it is undefined in one of them; `undefined` why nothing of it could be held against anything.
    """

    aspect: Aspect
    how: str | None = None
    over: str = ""
    undefined: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Task:
    """One task's ratio (`text` as it is printed), and whether the registered spread tells it from 1."""

    unit: str
    ratio: float | None
    text: str
    way: int
    resolved: bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RatioSide:
    """What one reading says of a ratio."""

    tasks: tuple[_Task, ...]
    wins: int
    losses: int
    p: float | None
    has_floor: bool
    alpha: float
    by_unit: Mapping[str, _Task] = field(compare=False, repr=False)

    @classmethod
    def of(cls, item: RatioReading, alpha: float) -> RatioSide:
        """A reading's side."""
        tasks = tuple(
            _Task(
                unit=task.unit,
                ratio=task.ratio,
                text=figure(task.ratio, 4),
                way=0 if task.ratio is None else _sign(task.ratio - 1),
                resolved=task.resolved,
            )
            for task in item.tasks
        )
        return cls(
            tasks=tasks,
            wins=item.wins,
            losses=item.losses,
            p=item.p_value,
            has_floor=item.sd_ln is not None,
            alpha=alpha,
            by_unit={task.unit: task for task in tasks},
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ContrastSide:
    """
    What one reading says of a contrast: what speaks for the treatment and what for the control (discordant pairs, or
    passes where there are no pairs), which way it went (None of nothing judged), and its p-value, Holm's if it has one.
    """

    counts: tuple[int, int]
    paired: bool
    direction: int | None
    p: float | None
    alpha: float

    @classmethod
    def of(cls, item: ContrastReading, alpha: float) -> ContrastSide:
        """A reading's side; arms without pairs may differ in size, and are compared by their shares."""
        p = item.p_value if item.p_holm is None else item.p_holm
        if item.groups is None:
            pairs = item.pairs
            counts, way = (pairs.treatment_only, pairs.control_only), _sign(pairs.net) if pairs.judged else None
        else:
            counts, failed = item.groups.passed, item.groups.failed
            sizes = counts[0] + failed[0], counts[1] + failed[1]
            way = _sign(counts[0] * sizes[1] - counts[1] * sizes[0]) if all(sizes) else None
        return cls(counts=counts, paired=item.groups is None, direction=way, p=p, alpha=alpha)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassSide:
    """How many cells of a reading are of each class."""

    counts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, board: Scoreboard) -> ClassSide:
        """A reading's side."""
        return cls(counts=tuple(class_counts(board).items()))


Side: TypeAlias = RatioSide | ContrastSide | ClassSide


def findings(one: Side, other: Side, magnitude: float) -> tuple[Finding, ...]:
    """Hold two sides of one comparison against each other."""
    match one, other:
        case RatioSide(), RatioSide():
            return tuple(_ratios(one, other, magnitude))
        case ContrastSide(), ContrastSide():
            return tuple(_contrasts(one, other))
        case ClassSide(), ClassSide():
            return (_classes(one, other),)
        case _:
            raise TypeError(f"{type(one).__name__} against {type(other).__name__}: expected one comparison")


def _sign(value: float) -> int:
    return 0 if value == 0 else int(copysign(1, value))


def _ratios(one: RatioSide, other: RatioSide, magnitude: float) -> Iterator[Finding]:
    units = {**one.by_unit, **other.by_unit}
    label = Labels(units).of
    both = [(label(unit), one.by_unit.get(unit), other.by_unit.get(unit)) for unit in units]
    there = [(name, a, b) for name, a, b in both if a and b]
    held = [(name, a, b) for name, a, b in there if a.ratio is not None and b.ratio is not None]
    left = _left(len(held), there=len(there), of=len(both))
    yield _sign_of(one, other, held, left)
    apart = [(_distance(a, b), _against(name, a, b)) for name, a, b in both if _apart(a, b, magnitude)]
    how = ", ".join(text for _far, text in sorted(apart, key=lambda item: -item[0])) or None
    # What differs is told task by task, an undefined one too.
    yield Finding(aspect="magnitude", how=how) if how else _held_over("magnitude", None, len(held), left)
    yield _significance(one.p, other.p, one.alpha)
    if one.has_floor and other.has_floor:
        clear = [[label(task.unit) for task in item.tasks if task.resolved] for item in (one, other)]
        differ = sorted(clear[0]) != sorted(clear[1])
        said = " against ".join(", ".join(names) or "none" for names in clear)
        known = sum(a.resolved is not None and b.resolved is not None for _name, a, b in held)
        left = _left(known, there=len(there), of=len(both))
        yield Finding(aspect="floor", how=said) if differ else _held_over("floor", None, known, left)


def _sign_of(one: RatioSide, other: RatioSide, held: Sequence[tuple[str, _Task, _Task]], left: str) -> Finding:
    """Which way each task went that has a ratio in both, and the whole."""
    turned = [_against(name, a, b) for name, a, b in held if a.way != b.way]
    if _sign(one.wins - one.losses) != _sign(other.wins - other.losses):
        turned.append(f"{one.wins} above 1 and {one.losses} below against {other.wins} and {other.losses}")
    return _held_over("sign", ", ".join(turned) or None, len(held), left)


def _held_over(aspect: Aspect, how: str | None, held: int, left: str) -> Finding:
    """A finding over so many tasks: over none it is undefined, whatever the wholes say."""
    if not held:
        return Finding(aspect=aspect, undefined=left or "there is no task")
    return Finding(aspect=aspect, how=how, over=f" ({left})" if left else "")


def _left(held: int, *, there: int, of: int) -> str:
    """How many tasks were held, and why the others could not be; empty where all were."""
    parts = {"undefined": there - held, "absent": of - there}
    said = [f"{count} {what}" for what, count in parts.items() if count]
    return f"{held} of {of} tasks, {' and '.join(said)} in one or both" if said else ""


def _ratio(task: _Task | None) -> float | None:
    return None if task is None else task.ratio


def _against(name: str, one: _Task | None, other: _Task | None) -> str:
    return f"{name} {_text(one)} against {_text(other)}"


def _text(task: _Task | None) -> str:
    return "absent" if task is None else task.text


def _apart(one: _Task | None, other: _Task | None, magnitude: float) -> bool:
    a, b = _ratio(one), _ratio(other)
    if a is None or b is None:
        return a is not b
    if not magnitude:
        return _text(one) != _text(other)
    return max(a, b) > min(a, b) * (1 + magnitude)


def _distance(one: _Task | None, other: _Task | None) -> float:
    """How far apart two ratios are, on the scale of their logarithms; one that is not there is the farthest."""
    ratios = _ratio(one), _ratio(other)
    return abs(log(ratios[0] / ratios[1])) if ratios[0] and ratios[1] else float("inf")


def _significance(one: float | None, other: float | None, alpha: float) -> Finding:
    """Whether the p-values are at the level: an undefined one is not, and agrees with none that is not either."""
    reached = [value is not None and value <= alpha for value in (one, other)]
    said = f"p {p_text(one)} against {p_text(other)}"
    if reached[0] != reached[1]:
        return Finding(aspect="significance", how=f"{said} at level {alpha:g}")
    return Finding(aspect="significance", undefined=said if one is None or other is None else None)


def _contrasts(one: ContrastSide, other: ContrastSide) -> Iterator[Finding]:
    what = "b01 and b10" if one.paired else "passes"
    said = " against ".join("undefined" if side.direction is None else _counted(side) for side in (one, other))
    nothing = said if one.direction is None or other.direction is None else None
    yield Finding(aspect="sign", how=None if nothing or one.direction == other.direction else said, undefined=nothing)
    alike = nothing or one.counts == other.counts
    none = None if nothing is None else f"{what} {said}"
    yield Finding(aspect="magnitude", how=None if alike else f"{what} {said}", undefined=none)
    yield _significance(one.p, other.p, one.alpha)


def _counted(side: ContrastSide) -> str:
    return f"{side.counts[0]} and {side.counts[1]}"


def _classes(one: ClassSide, other: ClassSide) -> Finding:
    counts = dict(one.counts), dict(other.counts)
    names = dict.fromkeys((*counts[0], *counts[1]))
    apart = [(name, counts[0].get(name, 0), counts[1].get(name, 0)) for name in names]
    said = ", ".join(f"{name} {a} against {b}" for name, a, b in apart if a != b)
    return Finding(aspect="classes", how=said or None)
