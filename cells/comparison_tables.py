"""The registered tests as tables of text: each p-value with its qualifiers, and beside it what it leaves out."""

from __future__ import annotations

from collections.abc import Iterable

from cells.contrasts import ContrastReading
from cells.figures import UNDEFINED, WITHHELD, figure, p_text, rate_text
from cells.ratios import RatioReading, TaskRatio
from cells.readings import Scoreboard
from cells.score_tables import Sheet

__all__ = ["contrast_sheets", "ratio_sheets"]

BOUNDS = {"exact": "", "at_least": "at least ", "at_most": "at most ", "unclear": "unclear, about "}
"""How a ratio is worded when lower bounds are among its prices."""


def _claim(item: ContrastReading) -> str:
    words = {
        "greater": f"{item.treatment} passes more than {item.control}",
        "less": f"{item.treatment} passes less than {item.control}",
        "two-sided": f"{item.treatment} and {item.control} differ",
    }
    return words[item.alternative] + _scope(item)


def _scope(item: ContrastReading | RatioReading) -> str:
    extras = f", extras {item.extras}" if item.extras != "none" else ""
    return extras + (f", model {item.model}" if item.model is not None else "")


def _verdict(item: ContrastReading) -> str:
    if item.status != "final":
        return WITHHELD
    if item.supported is None:
        return "outside the family"
    return "supported" if item.supported else "not supported"


def _qualified(qualifiers: Iterable[str]) -> str:
    return "; ".join(qualifiers) or "none"


def _family(title: str, items: Iterable[ContrastReading], notes: tuple[str, ...]) -> Sheet:
    return Sheet(
        title=title,
        header=("contrast", "claim", "qualifiers", "verdict", "b01", "b10", "exact p", "Holm p"),
        rows=tuple(
            (
                item.name,
                _claim(item),
                _qualified(item.qualifiers),
                _verdict(item),
                figure(item.pairs.treatment_only),
                figure(item.pairs.control_only),
                p_text(item.p_value, withheld=item.status != "final"),
                p_text(item.p_holm, withheld=item.status != "final"),
            )
            for item in items
        ),
        left=4,
        notes=notes,
    )


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
            *(note for item in items for note in _remarks(item)),
        ),
    )


def _remarks(item: ContrastReading) -> Iterable[str]:
    pairs = item.pairs
    if item.status == "final":
        interval = (
            ""
            if item.share is None
            else f", exact 95 % interval {rate_text(item.share_low)} to {rate_text(item.share_high)}"
        )
        yield (
            f"{item.name}: on {pairs.judged} common pairs {item.treatment} passes {pairs.treatment_passed}, "
            f"{item.control} {pairs.control_passed}; smoothed odds ratio {figure(item.odds_ratio, 2)}; share of the "
            f"discordant pairs {rate_text(item.share)}{interval}."
        )
    if pairs.without_verdict:
        yield f"{item.name}: {pairs.without_verdict} of {pairs.declared} pairs without a verdict."
    if pairs.halted:
        low, high = (p_text(value, withheld=item.status != "final") for value in (item.p_low, item.p_high))
        yield (
            f"{item.name}: {pairs.halted} of {pairs.declared} pairs halted; with each halt read as a pass or as a "
            f"failure, p is {low} at least and {high} at most, qualifiers {_qualified(item.qualifiers)}."
        )
    for label, (treatment, control) in item.unjudged.items():
        yield f"{item.name}: {label}: {item.treatment} {treatment}, {item.control} {control}."
    if item.replicated:
        yield f"{item.name}: units have more than one pair; the test takes pairs for independent."


def contrast_sheets(board: Scoreboard) -> list[Sheet]:
    """The family, what was added after the data, and what stands beside them."""
    sheets = []
    if board.contrasts:
        level = f"Holm over {len(board.contrasts)}, level {board.alpha:g}."
        sheets.append(_family(f"Contrasts, family {board.family}: exact McNemar", board.contrasts, (level,)))
    if board.added:
        note = "These were added after the registration and are adjusted with no family."
        sheets.append(_family("Contrasts added after the registration", board.added, (note,)))
    if sheets:
        sheets.append(_beside((*board.contrasts, *board.added)))
    return sheets


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
        f"{_qualified(item.qualifiers)}; {item.wins} above 1, {item.losses} below, {item.ties} ties, {item.undefined} "
        f"undefined; best attainable p {p_text(item.best_attainable_p)}."
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


def ratio_sheets(board: Scoreboard) -> list[Sheet]:
    """The ratios of medians by task, each with its sign test; what can be resolved if a spread was registered."""
    return [_ratio_sheet(item) for item in board.ratios]


def _ratio_sheet(item: RatioReading) -> Sheet:
    floor = item.sd_ln is not None
    header = ("benchmark|model|task", item.treatment, item.control, "ratio")
    digits = 4 if item.quantity == "usd" else 1
    return Sheet(
        title=f"{item.name}: median {item.quantity} of {item.treatment} over {item.control}{_scope(item)}",
        header=(*header, "resolvable", "resolved") if floor else header,
        rows=tuple(_ratio_row(task, digits, floor=floor) for task in item.tasks),
        notes=tuple(_sign_test(item)),
        long=True,
    )
