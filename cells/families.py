"""The registered contrasts by family: Holm's adjustment, and whether verdicts hold however unjudged cells are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cells.bounds import DeclaredSet
from cells.contrasts import ContrastReading, Status, read_contrast
from cells.settled import Settled
from cells.stats import holm
from harness.analysis import DESCRIPTIVE, Analysis, Contrast

__all__ = ["adjust", "read_added", "read_families"]


def read_families(
    settled: Settled, status: Status, analysis: Analysis, taken_over: DeclaredSet
) -> tuple[ContrastReading, ...]:
    """Read the registered contrasts, and adjust them within their families; bounds name the set `taken_over`."""
    readings = [read_contrast(item, settled, status, analysis, taken_over=taken_over) for item in analysis.contrasts]
    return tuple(map(_in_words, adjust(readings, analysis.alpha)))


def read_added(
    added: Sequence[Contrast], settled: Settled, status: Status, analysis: Analysis, taken_over: DeclaredSet
) -> tuple[ContrastReading, ...]:
    """Read the contrasts that came after the data: apart, and adjusted with no family."""
    return tuple(
        _in_words(read_contrast(item, settled, status, analysis, taken_over=taken_over, registered=False))
        for item in added
    )


def _in_words(reading: ContrastReading) -> ContrastReading:
    """The reading without a figure that took a VOID for a pass or a failure: what is left of those is yes or no."""
    told = tuple(bound.in_words() if bound.over == "unjudged" else bound for bound in reading.bounds)
    return replace(reading, bounds=told)


def adjust(readings: Sequence[ContrastReading], alpha: float) -> tuple[ContrastReading, ...]:
    """
    Adjust the contrasts of each family together, in the order given.

    One without a discordant pair stays in its family with p = 1. A family with a withheld p-value is left as it is; a
    count rule has no p-value and is in no adjustment. Raises `ValueError` for a p-value that is none, naming its
    contrast.
    """
    adjusted: dict[str, ContrastReading] = {}
    for family in dict.fromkeys(reading.family for reading in readings):
        members = [reading for reading in readings if reading.family == family and reading.test != "count-rule"]
        if family != DESCRIPTIVE and members:
            adjusted |= {reading.name: reading for reading in _family(members, alpha)}
    return tuple(adjusted.get(reading.name, reading) for reading in readings)


def _family(members: Sequence[ContrastReading], alpha: float) -> Sequence[ContrastReading]:
    names = [reading.name for reading in members]
    raw = [reading.p_value for reading in members if reading.p_value is not None]
    if len(raw) < len(members):
        return members
    return [
        replace(
            reading,
            p_holm=p_holm,
            supported=p_holm <= alpha,
            bounds=tuple(
                replace(bound, verdict_holds=_holds(members, at, alpha, bound.over)) for bound in reading.bounds
            ),
        )
        for at, (reading, p_holm) in enumerate(zip(members, holm(raw, names=names), strict=True))
    ]


def _holds(members: Sequence[ContrastReading], at: int, alpha: float, over: str) -> bool | None:
    """
    Whether one member's verdict is the same with every p-value of the family at its least and at its greatest.

    An adjusted p-value falls with no p-value of its family, so these are its extremes. Contrasts that share cells may
    not reach theirs together: then the verdict may hold where this says it depends, and never the other way round.
    """
    bounds = [bound for reading in members for bound in reading.bounds if bound.over == over]
    lows = [bound.p_low for bound in bounds if bound.p_low is not None]
    highs = [bound.p_high for bound in bounds if bound.p_high is not None]
    if len(lows) < len(members) or len(highs) < len(members):
        return None
    return (holm(lows)[at] <= alpha) == (holm(highs)[at] <= alpha)
