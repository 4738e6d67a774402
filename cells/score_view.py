"""The scoreboard on a terminal, as tables; and as plain, unwrapped text wherever it is piped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from cells.comparison_tables import contrast_sheets, ratio_sheets
from cells.cost_tables import cost_sheets
from cells.figures import printable
from cells.score_tables import (
    Sheet,
    arm_cost_sheet,
    class_sheets,
    condition_cost_sheet,
    condition_sheet,
    rate_sheet,
    standing,
    tries_sheet,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from cells.readings import Scoreboard

__all__ = ["Part", "plain", "plain_scoreboard", "render", "render_scoreboard", "sheets_of"]

Part: TypeAlias = "Sheet | Sequence[str]"
"""What a scoreboard is printed from: a table, or lines."""

SCREENFUL = 40
"""A terminal is shown tables of so many conditions or tasks; longer ones are left to pipes, reports and the JSON."""


def sheets_of(board: Scoreboard) -> list[Sheet]:
    """The tables of a scoreboard; what was registered to be tested comes last, where a terminal shows it."""
    tries = tries_sheet(board)
    return [
        condition_sheet(board),
        condition_cost_sheet(board),
        *([tries] if tries else []),
        *class_sheets(board),
        arm_cost_sheet(board),
        *cost_sheets(board),
        rate_sheet(board),
        *ratio_sheets(board),
        *contrast_sheets(board),
    ]


def render_scoreboard(board: Scoreboard, console: Console) -> None:
    """Print the scoreboard: tables if `console` is a terminal, plain text if it isn't."""
    render([standing(board), *sheets_of(board)], console)


def render(parts: Iterable[Part], console: Console) -> None:
    """Print lines and tables, one part after another; as plain text if `console` is no terminal."""
    if not console.is_terminal:
        console.file.write(plain(parts))
        return
    for number, part in enumerate(parts):
        if number:
            console.print()
        _print(part, console)


def _print(part: Part, console: Console) -> None:
    from rich.text import Text

    if not isinstance(part, Sheet):
        for line in part:
            console.print(Text(printable(line)))
        return
    if part.long and len(part.rows) > SCREENFUL:
        told = f"{printable(part.title)}: {len(part.rows)} rows, in the report, the JSON, and through a pipe"
        console.print(Text(told, style="dim"))
        return
    console.print(_rich_table(part))
    for note in part.notes:
        console.print(Text(printable(note), style="dim"))


def _rich_table(sheet: Sheet) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    # Every string goes in as Text: names of tasks and arms are never read as markup.
    table = Table(
        title=Text(printable(sheet.title), style="bold"),
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for at, head in enumerate(sheet.header):
        table.add_column(
            Text(printable(head)), justify="left" if at < sheet.left else "right", overflow="fold", min_width=2
        )
    for row in sheet.rows:
        table.add_row(*(Text(printable(text)) for text in row))
    return table


def plain_scoreboard(board: Scoreboard) -> str:
    """The scoreboard as text: aligned columns, one row a line, never wrapped and never cut."""
    return plain([standing(board), *sheets_of(board)])


def plain(parts: Iterable[Part]) -> str:
    """Lines and tables as text, with an empty line between two parts."""
    texts = (_plain_sheet(part) if isinstance(part, Sheet) else "\n".join(map(printable, part)) for part in parts)
    return "\n\n".join(texts) + "\n"


def _plain_sheet(sheet: Sheet) -> str:
    grid = [[printable(text) for text in row] for row in (sheet.header, *sheet.rows)]
    widths = [max(len(row[at]) for row in grid) for at in range(len(sheet.header))]
    lines = [
        "  ".join(
            text.ljust(width) if at < sheet.left else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in grid
    ]
    return "\n".join([printable(sheet.title), *lines, *map(printable, sheet.notes)])
