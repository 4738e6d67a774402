"""The scoreboard on a terminal, as tables; and as plain, unwrapped text wherever it is piped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cells.comparison_tables import contrast_sheets, ratio_sheets
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

__all__ = ["plain_scoreboard", "render_scoreboard", "sheets_of"]

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
        rate_sheet(board),
        *ratio_sheets(board),
        *contrast_sheets(board),
    ]


def render_scoreboard(board: Scoreboard, console: Console) -> None:
    """Print the scoreboard: tables if `console` is a terminal, plain text if it isn't."""
    if not console.is_terminal:
        console.file.write(plain_scoreboard(board))
        return
    from rich.text import Text

    for line in standing(board):
        console.print(Text(printable(line)))
    for sheet in sheets_of(board):
        console.print()
        if sheet.long and len(sheet.rows) > SCREENFUL:
            told = f"{printable(sheet.title)}: {len(sheet.rows)} rows, in the report, the JSON, and through a pipe"
            console.print(Text(told, style="dim"))
            continue
        console.print(_rich_table(sheet))
        for note in sheet.notes:
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
    parts = ["\n".join(map(printable, standing(board)))]
    parts += [_plain_sheet(sheet) for sheet in sheets_of(board)]
    return "\n\n".join(parts) + "\n"


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
