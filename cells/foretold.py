"""All that a run's registration and its amendments said of the result beforehand, held against what came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cells.figures import printable
from cells.predictions import PredictionReading, read_predictions
from cells.readings import Scoreboard, scoreboard_to_json
from cells.registered import registered_lines

if TYPE_CHECKING:
    from cells.boards import Boards
    from harness.predictions import Prediction

__all__ = ["Foretold", "Later", "foretold", "foretold_lines", "foretold_to_json"]

WORD = 11
"""The width of a fate, for what is said beside it to stand in one column."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Later:
    """An amendment's own predictions; they came after the registration, and are never counted among its."""

    label: str
    predictions: tuple[PredictionReading, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Foretold:
    """
    The registered predictions over the frozen reading, and each amendment's over the amended one. `board` is the frozen
    scoreboard, with the row of the table of outcomes and the adverse outcomes; `amended` the amended, if there is one.
    """

    predictions: tuple[PredictionReading, ...]
    board: Scoreboard
    later: tuple[Later, ...]
    amended: Scoreboard | None


def foretold(predictions: Sequence[Prediction], boards: Boards) -> Foretold:
    """Hold what was registered, and what amendments added, against the scoreboards of the run."""
    return Foretold(
        predictions=read_predictions(predictions, boards.frozen),
        board=boards.frozen,
        later=tuple(
            Later(label=item.label, predictions=read_predictions(item.content.predictions, boards.in_force))
            for item in boards.amendments
            if item.content.predictions
        ),
        amended=boards.amended,
    )


def foretold_to_json(found: Foretold) -> dict[str, Any]:
    """All of it as JSON data; `amended` is null while there is no amendment."""
    return {
        "registration_id": found.board.registration_id,
        "head": found.board.head,
        "predictions": [asdict(reading) for reading in found.predictions],
        "later": [asdict(item) for item in found.later],
        "frozen": _of_board(found.board),
        "amended": None if found.amended is None else _of_board(found.amended),
    }


def _of_board(board: Scoreboard) -> dict[str, Any]:
    data = scoreboard_to_json(board)
    return {name: data[name] for name in ("status", "stop", "outcome", "adverse")}


def foretold_lines(found: Foretold) -> Iterator[str]:
    """All of it for a person: fates first in each line, the frozen reading before the amended."""
    yield f"registration {found.board.registration_id}: {found.board.status}"
    if not found.predictions:
        yield "no prediction was registered"
    yield from _prediction_lines(found.predictions)
    yield from map(printable, registered_lines(found.board.outcome, found.board.adverse))
    for item in found.later:
        yield ""
        yield f"later, by {item.label}:"
        yield from _prediction_lines(item.predictions)
    if found.amended is not None and (found.amended.outcome is not None or found.amended.adverse):
        yield ""
        yield "as amended:"
        yield from map(printable, registered_lines(found.amended.outcome, found.amended.adverse))


def _prediction_lines(predictions: Sequence[PredictionReading]) -> Iterator[str]:
    for reading in predictions:
        yield f"{reading.fate:<{WORD}}" + printable(f"{reading.name}: {reading.claim}")
        yield " " * WORD + printable(reading.why)
        if reading.fate != "HOLDS":
            yield " " * WORD + printable(f"holds if {reading.holds_if}; refuted if {reading.refuted_if}")
