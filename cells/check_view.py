"""How the characterisation of suites is shown: a table, and below it whatever is not as it must be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from cells.checking import Checked
from harness.tasks.characterise import Characterised, least_margin

__all__ = ["counted", "lines", "print_checked"]

_SHORT = 120
"""Characters of what the referee says of a candidate that is as it must be."""
_TOKEN = re.compile(r"\b[0-9a-f]{16,}\b")
"""Tokens of one judgement, which make no other reason of the same one."""
_COLUMNS = (
    "task",
    "tests",
    "reference",
    "battery",
    "mutants killed",
    "least margin",
    "generated killed",
    "dead tests",
    "dead assertions",
    "flaky",
    "seconds",
    "holds",
)


def print_checked(found: Sequence[Checked], *, every: bool) -> None:
    """The table, with sums where there is more than one task, and the lines below it."""
    table = Table(title="what the suites can tell apart", title_justify="left")
    for column in _COLUMNS:
        left = column in {"task", "holds"}
        table.add_column(column, justify="left" if left else "right", overflow="fold", no_wrap=column == "task")
    for one in found:
        table.add_row(*_cells(one))
    if len(found) > 1:
        table.add_section()
        table.add_row(*_sums(found))
    console = Console(width=None if Console().is_terminal else 150, markup=False, highlight=False)
    console.print(table)
    for one in found:
        for line in lines(one, every=every):
            console.print(line, soft_wrap=True)


def _cells(one: Checked) -> list[str]:
    total = next((row.total for row in one.of("reference")), None)
    return [
        one.task,
        _or_dash(total),
        counted(one, "reference"),
        counted(one, "battery"),
        counted(one, "mutant"),
        _or_dash(least_margin(one.rows)),
        counted(one, "generated") if one.of("generated") else "-",
        _count(one.dead.tests),
        _count(one.dead.assertions),
        str(len(one.flaky)) if one.rounds > 1 else "-",
        f"{one.seconds:.1f}",
        "yes" if one.holds else "NO",
    ]


def _sums(found: Sequence[Checked]) -> list[str]:
    kinds = ("reference", "battery", "mutant", "generated")
    rows = {kind: [row for one in found for row in one.of(kind)] for kind in kinds}
    sums = {kind: f"{sum(row.holds for row in of)} of {len(of)}" if of else "-" for kind, of in rows.items()}
    margins = [margin for one in found if (margin := least_margin(one.rows)) is not None]
    seconds = f"{sum(one.seconds for one in found):.1f}"
    good = sum(one.holds for one in found)
    return [
        "all", "", sums["reference"], sums["battery"], sums["mutant"], _or_dash(min(margins, default=None)),
        sums["generated"], "", "", "", seconds, f"{good} of {len(found)}",
    ]  # fmt: skip


def counted(one: Checked, kind: str) -> str:
    """How many of a kind are as they must be, of all."""
    rows = one.of(kind)
    return f"{sum(row.holds for row in rows)} of {len(rows)}"


def _count(found: Sequence[str] | None) -> str:
    return "-" if found is None else str(len(found))


def _or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)


def lines(one: Checked, *, every: bool) -> Iterator[str]:
    """What is not as it must be, then what is only to be known; with `every` each candidate."""
    told: dict[str, str] = {}
    for row in one.rows:
        if every or not row.holds:
            yield from _row(one.task, row, told)
    for item in one.flaky:
        what = f"test {item.test}" if item.test else "the whole"
        yield f"{one.task}: flaky: {item.candidate}: {what}: {', '.join(item.readings)}"
    for test in one.dead.tests or ():
        yield f"{one.task}: dead test: {test}: no mutant and no degenerate candidate fails it"
    for test in one.dead.by_no_mutant or ():
        yield f"{one.task}: no mutant fails {test}, only degenerate candidates do"
    for assertion in one.dead.assertions or ():
        yield f"{one.task}: dead assertion: {assertion}"


def _row(task: str, row: Characterised, told: dict[str, str]) -> Iterator[str]:
    """
    A candidate's line. What is not as it must be has its reason whole, once: `told` has who was first to be `not
    measured` for each reason. A suite that does not run is why nothing could be measured of anybody.
    """
    margin = "" if row.failed is None else f", {row.failed} of {row.total} tests fail"
    lines = [row.detail[:_SHORT]] if row.holds else row.detail.splitlines() or [""]
    reason, *more = [repr(line) for line in lines]
    if row.word == "not measured" and row.reading is None:
        first = told.setdefault(_TOKEN.sub("", row.detail), row.called)
        reason, more = (reason, more) if first == row.called else (f"as {first}", [])
    yield f"{task}: {row.called}: {row.word} ({row.reading or 'no reading'}{margin}) {reason}"
    yield from (f"    {line[1:-1]}" for line in more)
    if row.diff and not row.holds:
        yield from (f"    {line}" for line in row.diff.splitlines())
