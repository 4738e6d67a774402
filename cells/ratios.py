"""The registered comparisons of cost: a ratio of medians a task, and a sign test over tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from cells.contrasts import Status
from cells.costs import Cost, Median
from cells.groups import Members
from cells.pairing import units
from cells.spread_reading import OwnSpread, Wide, figures_by_condition, own_spread, read_wide
from cells.stats import best_attainable_p, resolvable_ratio, sign_test

if TYPE_CHECKING:
    from harness.analysis import Alternative, Quantity, Ratio

__all__ = ["RatioReading", "TaskRatio", "read_ratio"]

Bound: TypeAlias = Literal["exact", "at_least", "at_most", "unclear"]
"""What lower bounds among the prices make of a ratio: one on top makes it `at_least`, one below `at_most`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskRatio:
    """
    One unit's ratio of the treatment's median over the control's, or None where a median is undefined or 0.

    `halted_cells` counts the halted ones among the figures, as (treatment, control): a halted cell cost what it cost
    when it was stopped. `resolvable` is the ratio the registered spread can tell from 1 at the smaller n; `resolved`
    says whether this one is above it or below its reciprocal.
    """

    unit: str
    treatment: Median
    control: Median
    halted_cells: tuple[int, int]
    ratio: float | None
    bound: Bound
    resolvable: float | None
    resolved: bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RatioReading:
    """
    One comparison of cost. `wins` are tasks with a ratio above 1, `losses` below; `ties` are in no test, nor are the
    `undefined`. `p_value` is None where there is no win and no loss, and where `status` withholds it. `below_floor`
    names the tasks whose ratio the registered spread can't tell from 1. `wide` is the spread clause, `own_spread` what
    the run's own figures spread by: reported, and in no test.
    """

    name: str
    quantity: Quantity
    treatment: str
    control: str
    extras: str
    model: str | None
    alternative: Alternative
    qualifiers: tuple[str, ...]
    status: Status
    sd_ln: float | None
    min_n: int
    tasks: tuple[TaskRatio, ...]
    wins: int
    losses: int
    ties: int
    undefined: int
    best_attainable_p: float
    p_value: float | None
    below_floor: tuple[str, ...]
    wide: Wide | None
    own_spread: OwnSpread | None


def _bound(treatment: Median, control: Median) -> Bound:
    match bool(treatment.lower_bounds), bool(control.lower_bounds):
        case False, False:
            return "exact"
        case True, False:
            return "at_least"
        case False, True:
            return "at_most"
        case _:
            return "unclear"


def _task(item: Ratio, unit: str, one: tuple[Members, Median], other: tuple[Members, Median]) -> TaskRatio:
    (_, treatment), (_, control) = one, other
    smaller = min(treatment.n, control.n)
    ratio = None
    if smaller >= item.min_n and treatment.value is not None and control.value:
        ratio = treatment.value / control.value
    resolvable = resolvable_ratio(item.sd_ln, smaller) if item.sd_ln is not None and smaller else None
    return TaskRatio(
        unit=unit,
        treatment=treatment,
        control=control,
        halted_cells=(one[0].halted, other[0].halted),
        ratio=ratio,
        bound=_bound(treatment, control),
        resolvable=resolvable,
        resolved=None if ratio is None or resolvable is None else not 1 / resolvable <= ratio <= resolvable,
    )


def _units(
    item: Ratio, conditions: Sequence[Members], costs: Sequence[Cost]
) -> dict[str, tuple[tuple[Members, Median], tuple[Members, Median]]]:
    """Both conditions of each unit, each with its median; for a condition stands its first cell."""
    of_cell = {each.first: (each, cost.of(item.quantity)) for each, cost in zip(conditions, costs, strict=True)}
    pairs = units(item, list(of_cell))[0]
    return {str(unit): (of_cell[one], of_cell[other]) for unit, ((one,), (other,)) in pairs.items()}


def read_ratio(item: Ratio, conditions: Sequence[Members], costs: Sequence[Cost], status: Status) -> RatioReading:
    """
    Read one comparison of cost over the `conditions` that cells are declared of, with the `costs` of each; unless
    `status` is final there are medians and no p-value.
    """
    by_unit = _units(item, conditions, costs)
    tasks = tuple(_task(item, unit, *sides) for unit, sides in by_unit.items())
    ratios = [task.ratio for task in tasks if task.ratio is not None]
    wins, losses = sum(ratio > 1 for ratio in ratios), sum(ratio < 1 for ratio in ratios)
    tested = status == "final" and wins + losses > 0
    spread = figures_by_condition((members for sides in by_unit.values() for members, _ in sides), item.quantity)
    return RatioReading(
        name=item.name,
        quantity=item.quantity,
        treatment=item.treatment,
        control=item.control,
        extras=item.extras,
        model=item.model,
        alternative=item.alternative,
        qualifiers=item.qualifiers,
        status=status,
        sd_ln=item.sd_ln,
        min_n=item.min_n,
        tasks=tasks,
        wins=wins,
        losses=losses,
        ties=len(ratios) - wins - losses,
        undefined=len(tasks) - len(ratios),
        best_attainable_p=best_attainable_p(len(tasks), alternative=item.alternative),
        p_value=sign_test(wins, losses, alternative=item.alternative).p_value if tested else None,
        below_floor=tuple(task.unit for task in tasks if task.resolved is False),
        wide=read_wide(item, spread),
        own_spread=own_spread(spread),
    )
