"""
The declared cells by condition and by arm: grouped once, and counted, priced and compared from there.

A group has no cell in it any more, but what its cells say: how they ended, counted alike, and a column a quantity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from harness.values import Declared, ExactPrice, Halt, LowerBoundPrice, Refused, Void

if TYPE_CHECKING:
    from cells.readable import Cell, Outcome
    from cells.settled import Settled
    from harness.analysis import Quantity

__all__ = ["Figures", "Group", "Members", "Seen", "by_arm", "by_condition"]


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


Priced: TypeAlias = Literal["exact", "lower_bound", "void"]


class Seen(NamedTuple):
    """
    What a census sees of an outcome: `kind` is of its end and `what` the limit, cause or gate; `would_be` is the
    reading of a halted cell's exhibit. Outcomes are many and few kinds of them: those that look alike are one entry.
    """

    outcome_class: str
    kind: str
    what: str | None
    passed: bool | None
    undecided: bool
    would_be: str | None
    priced: Priced

    @property
    def costed(self) -> bool:
        """Whether the subject did something, so that a cost can be told of it."""
        return self.kind in _COSTED


_COSTED = {"DECLARED", "HALT"}


def _seen(outcome: Outcome) -> Seen:
    end, would_be, price = outcome.end, outcome.would_be, outcome.spend.price
    match end:
        case Declared():
            what = None
        case Halt(limit=what) | Void(cause=what) | Refused(gate=what):
            pass
        case _:
            what = None
    return Seen(
        outcome.outcome_class,
        end.kind,
        what,
        outcome.passed,
        outcome.undecided,
        None if would_be is None else would_be.reading,
        price.kind,
    )


@dataclass(kw_only=True, slots=True)
class Figures:
    """What cells cost, in columns of one order; None is unknown. A price may be `at_least` so much only."""

    tokens: list[int | None] = field(default_factory=list)
    calls: list[int | None] = field(default_factory=list)
    wall_s: list[float | None] = field(default_factory=list)
    usd: list[float | None] = field(default_factory=list)
    at_least: list[bool] = field(default_factory=list)

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Figures:
        """The figures of each of them."""
        spends = [outcome.spend for outcome in outcomes]
        prices = [spend.price for spend in spends]
        return cls(
            tokens=[spend.tokens for spend in spends],
            calls=[spend.calls for spend in spends],
            wall_s=[spend.wall_s for spend in spends],
            usd=[price.usd if isinstance(price, ExactPrice | LowerBoundPrice) else None for price in prices],
            at_least=[isinstance(price, LowerBoundPrice) for price in prices],
        )

    @classmethod
    def together(cls, parts: Sequence[Figures]) -> Figures:
        """Those of several groups."""
        return cls(
            tokens=list(chain.from_iterable(part.tokens for part in parts)),
            calls=list(chain.from_iterable(part.calls for part in parts)),
            wall_s=list(chain.from_iterable(part.wall_s for part in parts)),
            usd=list(chain.from_iterable(part.usd for part in parts)),
            at_least=list(chain.from_iterable(part.at_least for part in parts)),
        )

    def column(self, quantity: Quantity) -> Sequence[float | None]:
        """The figures of one quantity."""
        column: Sequence[float | None] = getattr(self, quantity)
        return column

    def bounds(self, quantity: Quantity) -> Sequence[bool]:
        """Whether each figure of a quantity is a lower bound only, which a price alone may be."""
        return self.at_least if quantity == "usd" else [False] * len(self.at_least)


@dataclass(kw_only=True, slots=True)
class Members:
    """
    What the declared cells of a group say: `seen` counts the outcomes that count, `without` the other cells by their
    class; `figures` are of the outcomes in which the subject did something. `first` is the group's first cell.
    """

    group: Group
    first: Cell
    seen: Counter[Seen]
    without: Counter[str]
    figures: Figures

    @property
    def halted(self) -> int:
        """How many a limit stopped."""
        return sum(times for seen, times in self.seen.items() if seen.kind == "HALT")


def by_condition(settled: Settled) -> tuple[Members, ...]:
    """The cells of each condition, in the order in which their first cells are declared. Linear in the cells."""
    found: dict[tuple[str, ...], list[Cell]] = {}
    for key, cell in zip(map(_condition, settled.declared), settled.declared, strict=True):
        found.setdefault(key, []).append(cell)
    return tuple(_members(cells, settled) for cells in found.values())


_condition = attrgetter("benchmark", "task", "arm", "extras", "model")


def _members(cells: Sequence[Cell], settled: Settled) -> Members:
    first = cells[0]
    there = [settled.outcomes.get(cell) for cell in cells]
    found = [outcome for outcome in there if outcome is not None]
    return Members(
        group=Group(benchmark=first.benchmark, task=first.task, arm=first.arm, extras=first.extras, model=first.model),
        first=first,
        seen=Counter(map(_seen, found)),
        without=Counter(settled.label(cell) for cell, outcome in zip(cells, there, strict=True) if outcome is None),
        figures=Figures.of([outcome for outcome in found if isinstance(outcome.end, Declared | Halt)]),
    )


def by_arm(conditions: Iterable[Members]) -> tuple[Members, ...]:
    """The cells of each arm with its extras and model, in the order of their first conditions."""
    found: dict[Group, list[Members]] = {}
    for each in conditions:
        at = each.group
        arm = Group(benchmark=None, task=None, arm=at.arm, extras=at.extras, model=at.model)
        found.setdefault(arm, []).append(each)
    return tuple(_together(arm, parts) for arm, parts in found.items())


def _together(arm: Group, parts: Sequence[Members]) -> Members:
    seen, without = Counter[Seen](), Counter[str]()
    for part in parts:
        seen.update(part.seen)
        without.update(part.without)
    return Members(
        group=arm,
        first=parts[0].first,
        seen=seen,
        without=without,
        figures=Figures.together([part.figures for part in parts]),
    )
