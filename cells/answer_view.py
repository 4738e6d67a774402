"""The answer to a query as a table of text, as CSV and as JSON; in none of them is there a figure that is no number."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from cells.csv_tables import csv_text
from cells.figures import printable
from cells.query import Answer

__all__ = ["answer_csv", "answer_json", "answer_text"]


def answer_text(answer: Answer) -> str:
    """Aligned columns, one row a line, figures to the right; what is not there is a dash."""
    grid = [[printable(name) for name in answer.columns], *([_shown(value) for value in row] for row in answer.rows)]
    widths = [max(len(row[at]) for row in grid) for at in range(len(answer.columns))]
    right = [_figures(answer, at) for at in range(len(answer.columns))]
    lines = [
        "  ".join(
            text.rjust(width) if is_figure else text.ljust(width)
            for text, width, is_figure in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in grid
    ]
    count = len(answer.rows)
    return "\n".join([*lines, f"({count} {'row' if count == 1 else 'rows'})"])


def _figures(answer: Answer, at: int) -> bool:
    return all(isinstance(row[at], int | float | None) and not isinstance(row[at], bool) for row in answer.rows)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def answer_csv(answer: Answer) -> str:
    """CSV with a header, as the exported tables are written: no text in it is a formula, what is not there is empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(csv_text, answer.columns))
    for row in answer.rows:
        writer.writerow(_cell(value) for value in row)
    return file.getvalue()


def _cell(value: Any) -> str:
    plain = value is None or isinstance(value, str | int | float)
    return csv_text(value if plain else json.dumps(value, ensure_ascii=False))


def answer_json(answer: Answer) -> dict[str, Any]:
    """The columns, the rows as lists in their order, and how many figures were no numbers."""
    return {"columns": answer.columns, "rows": answer.rows, "not_finite": answer.not_finite}
