"""
Whether two readings say the same, in sentences that the tool makes, so that nobody chooses what to tell of it.

Four things are held against each other, for each comparison that both readings compute. **Sign**: which way the whole
went, and each task or count. **Magnitude**: the ratios themselves, as printed or within the declared share; the
discordant counts. **Significance**: whether the p-value is at the level. **Floor**: which tasks' ratios the registered
spread can tell from 1. The counts of the classes are held against each other too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import copysign, log
from typing import Literal, TypeAlias

from cells.contrasts import ContrastReading
from cells.declared.class_counts import class_counts
from cells.declared.labels import Labels
from cells.figures import figure, p_text
from cells.ratios import RatioReading, TaskRatio
from cells.readings import Scoreboard

__all__ = ["Accord", "accords"]

Aspect: TypeAlias = Literal["sign", "magnitude", "significance", "floor", "classes"]

SAID: dict[Aspect, str] = {
    "sign": "sign",
    "magnitude": "magnitude",
    "significance": "significance",
    "floor": "which tasks clear the floor",
    "classes": "the counts of classes",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Accord:
    """
    Two readings on one `comparison`, or on the counts of classes (None). `agree` and `differ` are what was held against
    each other; nothing was where a reading has no verdict to give. `sentence` says all of it.
    """

    first: str
    second: str
    comparison: str | None
    agree: tuple[Aspect, ...]
    differ: tuple[Aspect, ...]
    sentence: str

    @property
    def whole(self) -> bool:
        """Whether both say the same in all that was held against each other, and something was."""
        return bool(self.agree) and not self.differ


Finding: TypeAlias = tuple[Aspect, str | None]
"""What was held against each other, and how it differs; None where it agrees."""


def accords(boards: Sequence[tuple[str, Scoreboard]], *, magnitude: float) -> list[Accord]:
    """Every two readings on what both compute, disagreements first; two that ask different things are not held."""
    found = [
        accord
        for (first, one), (second, other) in combinations(boards, 2)
        for accord in _pair(first, one, second, other, magnitude)
    ]
    return sorted(found, key=lambda item: item.whole)


def _pair(first: str, one: Scoreboard, second: str, other: Scoreboard, magnitude: float) -> Iterator[Accord]:
    refused = [
        f"{name} is {board.status}" for name, board in ((first, one), (second, other)) if board.status != "final"
    ]
    shared = 0
    for name, findings in chain(_shared_ratios(one, other, magnitude), _shared_contrasts(one, other)):
        shared += 1
        yield _unheld(first, second, name, refused) if refused else _accord(first, second, name, list(findings))
    if not refused and (shared or not (one.ratios or one.contrasts or other.ratios or other.contrasts)):
        yield _accord(first, second, None, [_classes(one, other)])


def _shared_ratios(one: Scoreboard, other: Scoreboard, magnitude: float) -> Iterator[tuple[str, Iterator[Finding]]]:
    twins = {item.name: item for item in other.ratios}
    for item in one.ratios:
        if item.name in twins:
            yield item.name, _ratios(item, twins[item.name], one.alpha, magnitude)


def _shared_contrasts(one: Scoreboard, other: Scoreboard) -> Iterator[tuple[str, Iterator[Finding]]]:
    twins = {item.name: item for item in other.contrasts}
    for item in one.contrasts:
        if item.name in twins:
            yield item.name, _contrasts(item, twins[item.name], one.alpha)


def _unheld(first: str, second: str, comparison: str, refused: Iterable[str]) -> Accord:
    sentence = f"{first} and {second} are not held against each other on {comparison}: {', '.join(refused)}."
    return Accord(first=first, second=second, comparison=comparison, agree=(), differ=(), sentence=sentence)


def _accord(first: str, second: str, comparison: str | None, findings: Sequence[Finding]) -> Accord:
    agree = tuple(aspect for aspect, how in findings if how is None)
    differ = tuple(aspect for aspect, how in findings if how is not None)
    return Accord(
        first=first,
        second=second,
        comparison=comparison,
        agree=agree,
        differ=differ,
        sentence=f"{first} and {second} {_said(findings, comparison)}.",
    )


def _said(findings: Sequence[Finding], comparison: str | None) -> str:
    """The first two findings, which people ask for first, in one clause with what differs; the others after it."""
    on = "" if comparison is None else f" on {comparison}"
    lead, rest = findings[:2], findings[2:]
    clauses = [_clause(lead) + on + _how(lead)]
    clauses += [f"they {_clause([finding])}{_how([finding])}" for finding in rest]
    return "; ".join(clauses)


def _clause(findings: Sequence[Finding]) -> str:
    agree = [SAID[aspect] for aspect, how in findings if how is None]
    differ = [SAID[aspect] for aspect, how in findings if how is not None]
    if not differ:
        return f"agree in {' and in '.join(agree)}"
    if not agree:
        return f"differ in {' and in '.join(differ)}"
    return f"agree in {' and in '.join(agree)} and not in {' and in '.join(differ)}"


def _how(findings: Iterable[Finding]) -> str:
    parts = [how for _aspect, how in findings if how]
    return f": {'; '.join(parts)}" if parts else ""


def _side(value: float) -> int:
    return 0 if value == 0 else int(copysign(1, value))


def _ratios(one: RatioReading, other: RatioReading, alpha: float, magnitude: float) -> Iterator[Finding]:
    label = _labels(one, other).of
    firsts, seconds = ({task.unit: task for task in item.tasks} for item in (one, other))
    units = dict.fromkeys((*firsts, *seconds))
    both = [(label(unit), firsts.get(unit), seconds.get(unit)) for unit in units]
    turned = [_against(name, a, b) for name, a, b in both if _ratio(a) and _ratio(b) and _way(a) != _way(b)]
    if _side(one.wins - one.losses) != _side(other.wins - other.losses):
        turned.append(f"{one.wins} above 1 and {one.losses} below against {other.wins} and {other.losses}")
    yield "sign", ", ".join(turned) or None
    apart = [(_distance(a, b), _against(name, a, b)) for name, a, b in both if _apart(_ratio(a), _ratio(b), magnitude)]
    yield "magnitude", ", ".join(text for _far, text in sorted(apart, key=lambda item: -item[0])) or None
    yield "significance", _significance(one.p_value, other.p_value, alpha)
    if one.sd_ln is not None and other.sd_ln is not None:
        clear = [[label(task.unit) for task in item.tasks if task.resolved] for item in (one, other)]
        said = (", ".join(names) or "none" for names in clear)
        yield "floor", None if sorted(clear[0]) == sorted(clear[1]) else " against ".join(said)


def _ratio(task: TaskRatio | None) -> float | None:
    return None if task is None else task.ratio


def _way(task: TaskRatio | None) -> int:
    ratio = _ratio(task)
    return 0 if ratio is None else _side(ratio - 1)


def _against(name: str, one: TaskRatio | None, other: TaskRatio | None) -> str:
    return f"{name} {_figure(one)} against {_figure(other)}"


def _figure(task: TaskRatio | None) -> str:
    return "absent" if task is None else figure(task.ratio, 4)


def _apart(one: float | None, other: float | None, magnitude: float) -> bool:
    if one is None or other is None:
        return one is not other
    if not magnitude:
        return figure(one, 4) != figure(other, 4)
    return max(one, other) > min(one, other) * (1 + magnitude)


def _distance(one: TaskRatio | None, other: TaskRatio | None) -> float:
    """How far apart two ratios are, on the scale of their logarithms; one that is not there is the farthest."""
    ratios = _ratio(one), _ratio(other)
    return abs(log(ratios[0] / ratios[1])) if ratios[0] and ratios[1] else float("inf")


def _significance(one: float | None, other: float | None, alpha: float) -> str | None:
    reached = [value is not None and value <= alpha for value in (one, other)]
    if reached[0] == reached[1]:
        return None
    return f"p {p_text(one)} against {p_text(other)} at level {alpha:g}"


def _labels(one: RatioReading, other: RatioReading) -> Labels:
    return Labels(task.unit for item in (one, other) for task in item.tasks)


def _contrasts(one: ContrastReading, other: ContrastReading, alpha: float) -> Iterator[Finding]:
    counts = [_counts(item) for item in (one, other)]
    said = " against ".join(f"{treatment} and {control}" for treatment, control in counts)
    yield "sign", None if _direction(one) == _direction(other) else said
    what = "passes" if one.groups is not None else "b01 and b10"
    yield "magnitude", None if counts[0] == counts[1] else f"{what} {said}"
    ps = [item.p_value if item.p_holm is None else item.p_holm for item in (one, other)]
    yield "significance", _significance(ps[0], ps[1], alpha)


def _counts(item: ContrastReading) -> tuple[int, int]:
    """What speaks for the treatment and what for the control: discordant pairs, or passes where there are no pairs."""
    if item.groups is not None:
        return item.groups.passed
    return item.pairs.treatment_only, item.pairs.control_only


def _direction(item: ContrastReading) -> int:
    """Which way a contrast went; arms without pairs may differ in size, and are compared by their shares."""
    if item.groups is None:
        return _side(item.pairs.net)
    passed, failed = item.groups.passed, item.groups.failed
    return _side(passed[0] * (passed[1] + failed[1]) - passed[1] * (passed[0] + failed[0]))


def _classes(one: Scoreboard, other: Scoreboard) -> Finding:
    counts = [class_counts(board) for board in (one, other)]
    names = dict.fromkeys((*counts[0], *counts[1]))
    apart = [(name, counts[0].get(name, 0), counts[1].get(name, 0)) for name in names]
    return "classes", ", ".join(f"{name} {a} against {b}" for name, a, b in apart if a != b) or None
