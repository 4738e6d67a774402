"""The cells whose reading is of an earlier candidate than the one that ships."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cells.settled import Settled
from harness.candidates import deciding
from harness.outcome import CellOutcome

__all__ = ["Earlier", "earlier", "earlier_lines"]

NAMED = 10
"""How many of the cells are named to a person; the JSON names them all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Earlier:
    """A cell that reads `reading` by the candidate of `round`, while that of `ships` ships, and reads `shipped`."""

    cell: str
    round: int
    reading: str
    ships: int
    shipped: str


def earlier(settled: Settled) -> Iterator[Earlier]:
    """Of the outcomes that count, those that rest on an earlier candidate; none where only what ships is judged."""
    for cell, outcome in settled.outcomes.items():
        if not isinstance(outcome, CellOutcome) or outcome.verdict is None or not outcome.candidates:
            continue
        one, last = deciding(outcome.candidates), outcome.candidates[-1]
        if one.exhibit != last.exhibit:
            yield Earlier(
                cell=str(cell),
                round=one.round,
                reading=one.verdict.reading,
                ships=last.round,
                shipped=last.verdict.reading,
            )


def earlier_lines(found: tuple[Earlier, ...]) -> Iterator[str]:
    """What a person is told of them; nothing where there is none."""
    if not found:
        return
    yield f"cells that read by an earlier candidate than the one that ships: {len(found)}"
    for one in found[:NAMED]:
        yield f"- {one.cell}: {one.reading} in round {one.round}; what ships is of round {one.ships}, {one.shipped}"
    if len(found) > NAMED:
        yield f"- and {len(found) - NAMED} more, all named in the JSON"
