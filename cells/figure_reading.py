"""The value of a figure that was registered by structure, read from a scoreboard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from harness.errors import ExperimentError
from harness.regions import Span, exact, shown

if TYPE_CHECKING:
    from cells.conditions import Census
    from cells.contrasts import ContrastReading
    from cells.costs import Cost
    from cells.groups import Group
    from cells.guards import GuardReading
    from cells.interim import Interim
    from cells.ratios import RatioReading, TaskRatio
    from cells.readings import Scoreboard
    from cells.spent import Total
    from cells.strata import Stratum
    from harness.figure_refs import FigureRef

__all__ = ["Bound", "FigureValue", "figure_value", "read_figure"]

Bound: TypeAlias = Literal["exact", "at_least", "at_most", "unclear"]
"""How a value stands to the figure: lower bounds among the prices make it a bound, or say nothing."""

T = TypeVar("T")

Figures: TypeAlias = "Scoreboard | Interim"
"""What figures are read from: a scoreboard, or what is known of a run that is going on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FigureValue:
    """A figure of a scoreboard: its value, None where undefined or withheld, and what the value is of the figure."""

    value: float | None
    bound: Bound = "exact"

    @property
    def span(self) -> Span:
        """All that the figure can be, as far as is known."""
        if self.value is None:
            return Span(numbers=False, undefined=True)
        point = exact(self.value)
        low = point if self.bound in {"exact", "at_least"} else None
        high = point if self.bound in {"exact", "at_most"} else None
        return Span(low=low, high=high)

    def __str__(self) -> str:
        if self.value is None:
            return "undefined"
        before = {"exact": "", "at_least": "at least ", "at_most": "at most ", "unclear": "no more known than "}
        return before[self.bound] + shown(exact(self.value))


def read_figure(ref: FigureRef, board: Figures) -> float | None:
    """
    The value of a figure; None where it is undefined or withheld.

    Raises `ExperimentError` if the scoreboard has nothing, or several things, that the reference names.
    """
    return figure_value(ref, board).value


def figure_value(ref: FigureRef, board: Figures) -> FigureValue:
    """As `read_figure`, with what the value is of the figure: it may be a bound only."""
    match ref.kind:
        case "a contrast":
            return FigureValue(value=_of_pairs(ref.figure, _contrast(ref, board)))
        case "a stratum":
            strata = _contrast(ref, board).strata
            part = _one(ref, [item for item in strata if item.name == ref.stratum])
            return FigureValue(value=_of_pairs(ref.figure, part))
        case "a guard":
            return FigureValue(
                value=_of_guard(ref.figure, _one(ref, [it for it in board.guards if it.name == ref.guard]))
            )
        case "a ratio":
            return FigureValue(value=getattr(_ratio(ref, board), ref.figure))
        case "a task of a ratio":
            return _of_task(ref.figure, _one(ref, [task for task in _ratio(ref, board).tasks if _is_task(task, ref)]))
        case "an arm":
            return _of_group(ref, board.arms, board.arm_costs)
        case "a condition":
            return _of_group(ref, board.conditions, board.costs)
        case "the whole set":
            return _of_whole(ref.figure, board)


def _one(ref: FigureRef, found: Iterable[T]) -> T:
    items = list(found)
    if len(items) != 1:
        raise ExperimentError(f"{ref}: the scoreboard has {len(items)} of it: expected one")
    return items[0]


def _contrast(ref: FigureRef, board: Figures) -> ContrastReading:
    return _one(ref, [item for item in (*board.contrasts, *board.added) if item.name == ref.contrast])


def _of_guard(figure: str, guard: GuardReading) -> float | None:
    if figure == "passes":
        return None if guard.passes is None else int(guard.passes)
    return guard.value


def _of_pairs(figure: str, reading: ContrastReading | Stratum) -> float | None:
    pairs = reading.pairs
    match figure:
        case "b01":
            return pairs.treatment_only
        case "b10":
            return pairs.control_only
        case "net":
            return pairs.net
        case "declared" | "judged" | "both" | "neither" | "discordant" | "halted" | "without_verdict":
            count: int = getattr(pairs, figure)
            return count
        case "treatment_rate":
            return pairs.treatment_passed / pairs.judged if pairs.judged else None
        case "control_rate":
            return pairs.control_passed / pairs.judged if pairs.judged else None
        case "rate_difference":
            return pairs.net / pairs.judged if pairs.judged else None
        case _:
            value: float | None = getattr(reading, figure)
            return value


def _ratio(ref: FigureRef, board: Figures) -> RatioReading:
    return _one(ref, [item for item in board.ratios if item.name == ref.ratio])


def _is_task(task: TaskRatio, ref: FigureRef) -> bool:
    """Whether a unit, `benchmark|model|task`, is the one that the reference names."""
    benchmark, model, name = task.unit.split("|")
    return name == ref.task and ref.benchmark in {None, benchmark} and ref.model in {None, model}


def _of_task(figure: str, task: TaskRatio) -> FigureValue:
    if figure == "ratio":
        return FigureValue(value=task.ratio, bound=task.bound)
    median = task.treatment if figure == "treatment_median" else task.control
    return FigureValue(value=median.value, bound=median.bound)


def _is_group(group: Group, ref: FigureRef) -> bool:
    wanted = ((ref.arm, group.arm), (ref.extras, group.extras), (ref.model, group.model))
    placed = ((ref.benchmark, group.benchmark), (ref.task, group.task))
    return all(want in {None, has} for want, has in (*wanted, *placed))


def _of_group(ref: FigureRef, censuses: Iterable[Census], costs: Iterable[Cost]) -> FigureValue:
    if ref.figure.startswith("median_"):
        cost = _one(ref, [item for item in costs if _is_group(item.group, ref)])
        median = getattr(cost, ref.figure.removeprefix("median_"))
        return FigureValue(value=median.value, bound=median.bound)
    # A group that a gate refused whole is counted, and is not what a reference means that leaves its extras out.
    groups = [item for item in censuses if _is_group(item.group, ref)]
    census = _one(ref, [item for item in groups if item.buildable] or groups)
    return FigureValue(value=_of_census(ref.figure, census))


def _of_census(figure: str, census: Census) -> float | None:
    match figure:
        case "failed":
            return census.judged - census.passed
        case _:
            value: float | None = getattr(census, figure)
            return value


def _of_whole(figure: str, board: Figures) -> FigureValue:
    match figure:
        case "done":
            unfired = 0 if board.stop is None else len(board.stop.unfired)
            return FigureValue(value=board.planned - len(board.missing) - unfired)
        case "usd_total" | "tokens_total" | "calls_total" | "wall_s_total":
            total: Total = getattr(board.spent, figure.removesuffix("_total"))
            return FigureValue(value=total.value, bound=total.bound)
        case _:
            counts = [_of_census(figure, census) for census in board.arms]
            return FigureValue(value=sum(count for count in counts if count is not None))
