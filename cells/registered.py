"""What became of the results that were registered before the run: the row of the table of outcomes, adverse ones."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AdverseReading", "OutcomeReading"]


@dataclass(frozen=True, kw_only=True, slots=True)
class OutcomeReading:
    """
    The registered row that holds: its number from 1, its `verdict`, and the figures that it was chosen by. All three
    are empty while none is known to hold, and `why` says why: cells are missing, or a figure is a bound only.
    """

    row: int | None
    verdict: str | None
    figures: tuple[str, ...]
    why: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class AdverseReading:
    """Whether a registered adverse outcome happened, None while it is not known, and the figures that say so."""

    name: str
    happened: bool | None
    figures: tuple[str, ...]
    why: str | None
