"""What a report draws, from the scoreboard, the cells and the unlocks: four figures, each only if it has data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import get_args

from cells.cell_lines import CellLine
from cells.comparison_tables import BOUNDS
from cells.contrasts import ContrastReading
from cells.cost_marks import CostMarks, arm_label, cost_marks
from cells.figures import UNDEFINED, figure
from cells.pair_counts import PairCounts
from cells.plots import Axis, Band, Bar, Dot, Mark, Plot, Row, Shape, Steps, Swatch, Tone
from cells.ratios import RatioReading, TaskRatio
from cells.readings import Scoreboard
from cells.unlocks import Unlocks

__all__ = ["cost_plot", "discordant_plot", "premium_plots", "unlock_plot"]

ARMS: tuple[Tone, ...] = tuple(tone for tone in get_args(Tone) if tone.startswith("arm-"))
"""The tones of arms, taken in turn."""


POINTING: Mapping[str, Shape] = {"exact": "dot", "unclear": "dot", "at_least": "at_least", "at_most": "at_most"}
"""The shape of a ratio's mark, by its bound."""


def premium_plots(board: Scoreboard) -> list[Plot]:
    """For each registered ratio of cost with a defined one: a point a task, and what can't be resolved."""
    return [_premium(item) for item in board.ratios if any(task.ratio for task in item.tasks)]


def _premium(item: RatioReading) -> Plot:
    banded = any(task.resolvable for task in item.tasks)
    caption = f"Median {item.quantity} of {item.treatment} over {item.control}, a task a row, on a logarithmic axis."
    if banded:
        caption += (
            " The band is what the registered spread can't tell from no difference at the smaller n of the two sides,"
            " two-sided: only a point outside of its own band is resolved."
        )
    else:
        caption += " No spread was registered, so no row says what could be resolved."
    if any(task.bound != "exact" for task in item.tasks):
        caption += " A triangle points to where the ratio lies if a lower bound is among its prices."
    return Plot(
        title=f"{item.name}: premium per problem",
        caption=caption,
        alt=tuple(_premium_words(task) for task in item.tasks),
        x=Axis(label=f"{item.treatment} over {item.control}", scale="log"),
        rows=tuple(_premium_row(task) for task in item.tasks),
        reference=1.0,
        key=(
            Swatch(label="ratio", tone="treatment"),
            *([Swatch(label="not resolvable", shape="band")] if banded else []),
        ),
    )


def _premium_row(task: TaskRatio) -> Row:
    marks: list[Mark] = []
    if task.resolvable is not None:
        marks.append(Band(low=1 / task.resolvable, high=task.resolvable))
    if task.ratio:
        marks.append(Dot(at=task.ratio, tone="treatment", shape=POINTING[task.bound]))
    text = UNDEFINED if task.ratio is None else BOUNDS[task.bound] + figure(task.ratio, 4)
    return Row(label=task.unit, marks=tuple(marks), text=text)


def _premium_words(task: TaskRatio) -> str:
    told = {True: "resolved", False: "not resolved", None: "no band"}[task.resolved]
    return f"{task.unit} {figure(task.ratio, 4)}, {told}"


def discordant_plot(board: Scoreboard) -> Plot | None:
    """The discordant pairs of each contrast and of each of its strata: b10 to the left of 0, b01 to the right."""
    items = [row for item in (*board.contrasts, *board.added) for row in _pools(item)]
    if not any(pairs.treatment_only or pairs.control_only for _name, pairs in items):
        return None
    return Plot(
        title="Discordant pairs",
        caption=(
            "To the right b01, pairs in which the treatment alone passes; to the left b10, those in which the control"
            " alone does. Halted pairs and pairs without a verdict are in neither."
        ),
        alt=tuple(f"{name}: b01 {pairs.treatment_only}, b10 {pairs.control_only}" for name, pairs in items),
        x=Axis(label="pairs: control alone to the left, treatment alone to the right", whole=True, mirrored=True),
        rows=tuple(
            Row(label=name, marks=_diverging(pairs.treatment_only, pairs.control_only)) for name, pairs in items
        ),
        reference=0.0,
        key=(
            Swatch(label="b10: the control alone passes", tone="control", shape="bar"),
            Swatch(label="b01: the treatment alone passes", tone="treatment", shape="bar"),
        ),
    )


def _pools(item: ContrastReading) -> Iterator[tuple[str, PairCounts]]:
    """A contrast's pairs, all together and then stratum by stratum."""
    yield item.name, item.pairs
    for stratum in item.strata:
        yield f"{item.name}, {stratum.name}", stratum.pairs


def _diverging(treatment_only: int, control_only: int) -> tuple[Mark, ...]:
    left = Bar(end=-float(control_only), text=figure(control_only), tone="control")
    return left, Bar(end=float(treatment_only), text=figure(treatment_only), tone="treatment")


def cost_plot(cells: Sequence[CellLine]) -> Plot | None:
    """What each cell cost against how it ended: a mark a cell, a row a class and arm, halts apart by their shape."""
    marks = cost_marks(cells)
    if not marks.rows:
        return None
    arms = list(dict.fromkeys(map(arm_label, cells)))
    tones = {arm: ARMS[at % len(ARMS)] for at, arm in enumerate(arms)}
    rows = tuple(
        Row(
            label=f"{name}, {arm}",
            marks=tuple(_cost_dot(cell, marks, tones[arm]) for cell in group),
            text=figure(len(group)),
        )
        for (name, arm), group in marks.rows.items()
    )
    drawn = [cell for group in marks.rows.values() for cell in group]
    costs = [marks.figure(cell) for cell in drawn]
    wide = min(costs) > 0 and max(costs) > 20 * min(costs)
    return Plot(
        title="Cost against class",
        caption=(
            f"One mark a cell, its {marks.quantity} on the axis; the figure at the end of a row counts its cells. A"
            " hollow diamond is a HALT, at what it had cost when it was stopped; a triangle is a price that is a lower"
            " bound. Where many marks fall on one place, a few of them are drawn."
            f" Cells without a figure: {marks.unknown}, of {len(cells)}."
        ),
        alt=tuple(f"{row.label}: {row.text} cells" for row in rows),
        x=Axis(label="US dollars" if marks.quantity == "usd" else "tokens", scale="log" if wide else "linear"),
        rows=rows,
        key=(*(Swatch(label=arm, tone=tone) for arm, tone in tones.items()), *_shapes(rows)),
    )


def _shapes(rows: Iterable[Row]) -> Iterator[Swatch]:
    """What the shapes that are drawn stand for."""
    drawn = {mark.shape for row in rows for mark in row.marks if isinstance(mark, Dot)}
    if "halt" in drawn:
        yield Swatch(label="HALT", shape="halt")
    if "at_least" in drawn:
        yield Swatch(label="at least", shape="at_least")


def _cost_dot(cell: CellLine, marks: CostMarks, tone: Tone) -> Dot:
    shape: Shape = "dot"
    if cell.outcome_class == "HALT":
        shape = "halt"
    elif marks.quantity == "usd" and cell.price == "lower_bound":
        shape = "at_least"
    return Dot(at=marks.figure(cell), tone=tone, shape=shape)


def unlock_plot(unlocks: Sequence[Unlocks]) -> Plot | None:
    """The cumulative unlocks of each arm, round by round; None where no seat worked in rounds."""
    if not unlocks:
        return None
    return Plot(
        title="Cumulative unlocks per round",
        caption=(
            "Judged cells whose accepted candidate was there by the end of a round. " + "; ".join(_unseen(unlocks))
        ).strip(),
        alt=tuple(f"{_names(item)}: " + ", ".join(map(figure, item.by_round)) for item in unlocks),
        x=Axis(label="round", whole=True),
        y=Axis(label="cells unlocked", whole=True),
        steps=tuple(
            Steps(
                label=f"{_names(item)} {figure(item.by_round[-1])} of {figure(item.judged)}",
                points=tuple((float(number), float(total)) for number, total in enumerate((0, *item.by_round))),
                tone=ARMS[at % len(ARMS)],
            )
            for at, item in enumerate(unlocks)
        ),
    )


def _unseen(unlocks: Iterable[Unlocks]) -> Iterator[str]:
    for item in unlocks:
        if item.unseen:
            yield f"{_names(item)}: {figure(item.unseen)} passed in a round that no transcript tells"


def _names(item: Unlocks) -> str:
    extras = "" if item.extras == "none" else f", {item.extras}"
    return f"{item.arm}{extras}, {item.model}"
