"""The registered tests as tables of text: each p-value with its qualifiers, and beside it what it leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from cells.contrast_notes import qualified, remarks
from cells.contrasts import ContrastReading
from cells.figures import UNDEFINED, WITHHELD, figure, p_text, rate_text
from cells.planned import TESTS
from cells.ratios import RatioReading, TaskRatio
from cells.readings import Scoreboard
from cells.score_tables import Sheet
from cells.strata_tables import guard_sheets, strata_sheets
from harness.analysis import DESCRIPTIVE

if TYPE_CHECKING:
    from harness.analysis import Alternative

__all__ = ["Claimed", "claim_text", "contrast_sheets", "ratio_sheets", "verdict_text"]

BOUNDS = {"exact": "", "at_least": "at least ", "at_most": "at most ", "unclear": "unclear, about "}
"""How a ratio is worded when lower bounds are among its prices."""


class Claimed(Protocol):
    """What a contrast claims and what became of it: a reading, or what was kept of one."""

    @property
    def treatment(self) -> str: ...  # noqa: D102 - as of a reading, and so are all below
    @property
    def control(self) -> str: ...  # noqa: D102
    @property
    def extras(self) -> str: ...  # noqa: D102
    @property
    def model(self) -> str | None: ...  # noqa: D102
    @property
    def alternative(self) -> Alternative: ...  # noqa: D102
    @property
    def family(self) -> str: ...  # noqa: D102
    @property
    def registered(self) -> bool: ...  # noqa: D102
    @property
    def status(self) -> str: ...  # noqa: D102
    @property
    def supported(self) -> bool | None: ...  # noqa: D102


def claim_text(item: Claimed) -> str:
    """What a contrast claims."""
    words = {
        "greater": f"{item.treatment} passes more than {item.control}",
        "less": f"{item.treatment} passes less than {item.control}",
        "two-sided": f"{item.treatment} and {item.control} differ",
    }
    return words[item.alternative] + _scope(item)


def _scope(item: Claimed | RatioReading) -> str:
    extras = f", extras {item.extras}" if item.extras != "none" else ""
    return extras + (f", model {item.model}" if item.model is not None else "")


def verdict_text(item: Claimed) -> str:
    """What became of a contrast's claim, in the words that a report uses."""
    if item.status != "final":
        return WITHHELD
    if not item.registered:
        return "outside the family"
    if item.family == DESCRIPTIVE:
        return DESCRIPTIVE
    return "supported" if item.supported else "not supported"


def _family(title: str, items: Sequence[ContrastReading], notes: tuple[str, ...]) -> Sheet:
    exact = all(item.test == "mcnemar" for item in items)
    words = () if exact else tuple(f"{item.name}: {TESTS[item.test]}." for item in items)
    return Sheet(
        title=f"{title}: {TESTS['mcnemar']}" if exact else title,
        header=("contrast", "claim", "qualifiers", "verdict", "b01", "b10", "exact p" if exact else "p", "Holm p"),
        rows=tuple(
            (
                item.name,
                claim_text(item),
                qualified(item.qualifiers),
                verdict_text(item),
                figure(None if item.groups is not None else item.pairs.treatment_only),
                figure(None if item.groups is not None else item.pairs.control_only),
                p_text(item.p_value, withheld=item.status != "final" and item.test != "count-rule"),
                p_text(item.p_holm, withheld=_holm_withheld(item)),
            )
            for item in items
        ),
        left=4,
        notes=(*notes, *words),
    )


def _holm_withheld(item: ContrastReading) -> bool:
    """Whether an adjusted p-value will be there once verdicts are; a contrast outside any family never has one."""
    in_family = item.registered and item.family != DESCRIPTIVE and item.test != "count-rule"
    return item.status != "final" and in_family


def _beside(items: Iterable[ContrastReading]) -> Sheet:
    return Sheet(
        title="Beside the contrasts: pairs of cells",
        header=("contrast", "pairs", "both pass", "b01", "b10", "neither", "halted", "no verdict", "best p"),
        rows=tuple(
            (
                item.name,
                figure(item.pairs.declared),
                figure(item.pairs.both),
                figure(item.pairs.treatment_only),
                figure(item.pairs.control_only),
                figure(item.pairs.neither),
                figure(item.pairs.halted),
                figure(item.pairs.without_verdict),
                p_text(item.best_attainable_p),
            )
            for item in items
        ),
        notes=(
            "b01: the treatment alone passes; b10: the control alone; best p: the smallest so many pairs can give.",
            *(note for item in items for note in remarks(item)),
        ),
    )


def contrast_sheets(board: Scoreboard) -> list[Sheet]:
    """The families, what is descriptive, what was added after the data, what stands beside them, and the guards."""
    sheets = []
    for name in dict.fromkeys(item.family for item in board.contrasts):
        members = [item for item in board.contrasts if item.family == name]
        if name == DESCRIPTIVE:
            note = "These are in no family: their p-values are raw, and no verdict rests on them."
            sheets.append(_family("Descriptive contrasts", members, (note,)))
        else:
            tested = sum(item.test != "count-rule" for item in members)
            sheets.append(
                _family(f"Contrasts, family {name}", members, (f"Holm over {tested}, level {board.alpha:g}.",))
            )
    if board.added:
        note = "These were added after the registration and are adjusted with no family."
        sheets.append(_family("Contrasts added after the registration", board.added, (note,)))
    if sheets:
        sheets.append(_beside((*board.contrasts, *board.added)))
    return [*sheets, *strata_sheets(board), *guard_sheets(board)]


def _side(item: TaskRatio, side: str, digits: int) -> str:
    median = item.treatment if side == "treatment" else item.control
    return f"{figure(median.value, digits)} (n {median.n})"


def _ratio_row(item: TaskRatio, digits: int, *, floor: bool) -> tuple[str, ...]:
    ratio = UNDEFINED if item.ratio is None else BOUNDS[item.bound] + figure(item.ratio, 4)
    row = (item.unit, _side(item, "treatment", digits), _side(item, "control", digits), ratio)
    resolved = UNDEFINED if item.resolved is None else "yes" if item.resolved else "no"
    return (*row, figure(item.resolvable, 4), resolved) if floor else row


def _sign_test(item: RatioReading) -> Iterable[str]:
    sided = "two-sided" if item.alternative == "two-sided" else f"one-sided ({item.alternative})"
    yield (
        f"Sign test over tasks, {sided}: p {p_text(item.p_value, withheld=item.status != 'final')}, qualifiers "
        f"{qualified(item.qualifiers)}; {item.wins} above 1, {item.losses} below, {item.ties} ties, {item.undefined} "
        f"undefined; best attainable p over all {len(item.tasks)} tasks {p_text(item.best_attainable_p)}."
    )
    halted = [sum(task.halted_cells[at] for task in item.tasks) for at in (0, 1)]
    if any(halted):
        yield (
            f"Halted cells among the figures, at what they cost when stopped: {item.treatment} {halted[0]}, "
            f"{item.control} {halted[1]}."
        )
    lower = [
        sum(task.treatment.lower_bounds for task in item.tasks),
        sum(task.control.lower_bounds for task in item.tasks),
    ]
    if any(lower):
        yield f"Lower bounds among the figures: {item.treatment} {lower[0]}, {item.control} {lower[1]}."
    yield from _spread(item)


def _spread(item: RatioReading) -> Iterable[str]:
    """What the registered spread says of these tasks, and beside it the run's own."""
    if item.sd_ln is None:
        return
    if item.below_floor:
        yield f"Below the floor of the registered spread, either way round: {', '.join(item.below_floor)}."
    wide, own = item.wide, item.own_spread
    if wide is not None:
        chances = ", ".join(f"{rate_text(chance)} at {n} cells" for n, chance in wide.probability)
        yield (
            f"Spread clause: largest over {wide.ratio:g} times the smallest has probability {chances or UNDEFINED}; of "
            f"{wide.conditions} conditions {figure(wide.expected, 1)} are expected to look so by sampling alone, "
            f"{wide.seen} do."
        )
    if own is not None:
        yield (
            f"The run's own sd of ln {item.quantity} is {figure(own.sd_ln, 5)}, pooled within {own.conditions} "
            f"conditions of {own.cells} cells, {own.lower_bounds} of them lower bounds; registered "
            f"{item.sd_ln:g}. It is told and gates nothing."
        )


def ratio_sheets(board: Scoreboard) -> list[Sheet]:
    """The ratios of medians by task, each with its sign test; what can be resolved if a spread was registered."""
    return [_ratio_sheet(item, board.confounds) for item in board.ratios]


def _ratio_sheet(item: RatioReading, confounds: Iterable[str]) -> Sheet:
    floor = item.sd_ln is not None
    header = ("benchmark|model|task", item.treatment, item.control, "ratio")
    digits = 4 if item.quantity == "usd" else 1
    return Sheet(
        title=f"{item.name}: median {item.quantity} of {item.treatment} over {item.control}{_scope(item)}",
        header=(*header, "resolvable", "resolved") if floor else header,
        rows=tuple(_ratio_row(task, digits, floor=floor) for task in item.tasks),
        notes=(*_sign_test(item), *confounds),
        long=True,
    )
