"""What a report says of what was said beforehand: predictions, the registered outcome, adverse outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cells.registered import registered_lines
from cells.report_document import Facts, Part, Prose
from cells.score_tables import Sheet

if TYPE_CHECKING:
    from cells.foretold import Foretold
    from cells.predictions import PredictionReading
    from cells.readings import Scoreboard

__all__ = ["prediction_parts"]


def prediction_parts(found: Foretold | None) -> list[Part]:
    """The registered predictions and outcomes over the frozen reading; each amendment's apart, and later."""
    if found is None:
        return [Prose(text="Nothing was said of the result beforehand.")]
    parts = [*_table("Registered predictions", found.predictions), *_outcomes(found.board)]
    for item in found.later:
        parts += _table(f"Predictions of {item.label}, made when something was known", item.predictions)
    if found.amended is not None and (amended := _outcomes(found.amended)):
        parts += [Prose(text="The same outcomes, of the reading as it was amended:"), *amended]
    return parts


def _table(title: str, predictions: Sequence[PredictionReading]) -> list[Part]:
    if not predictions:
        return []
    rows = [
        (item.name, item.claim, item.fate, item.why, f"holds if {item.holds_if}; refuted if {item.refuted_if}")
        for item in predictions
    ]
    header = ("prediction", "claim", "came to", "why", "as it was registered")
    return [Sheet(title=title, header=header, rows=tuple(rows), left=len(header))]


def _outcomes(board: Scoreboard) -> Iterable[Part]:
    lines = tuple(registered_lines(board.outcome, board.adverse))
    return [Facts(lines=lines)] if lines else []
