"""Scales of a drawing: from a figure to a place, and the round figures that stand at an axis."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from cells.plots import Axis

__all__ = ["Scale", "scale_of", "tick_text"]

MOST_TICKS = 8
"""So many labels stand side by side without touching."""

MARGIN = 0.04
"""The part of an axis that is left free beyond its outermost figures."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """From figures between `low` and `high` to places between `start` and `end`; `log` takes the logarithm first."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[float, ...]

    def __call__(self, value: float) -> float:
        """Where `value` lies; it must be above 0 on a logarithmic scale."""
        low, high, at = (math.log(part) if self.log else part for part in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)


def scale_of(axis: Axis, values: Iterable[float], *, start: float, end: float) -> Scale:
    """A scale that has all `values` on it, of which there is at least one; a linear one begins or ends at 0."""
    known = list(values)
    if axis.scale == "log":
        low, high = _apart(math.log(min(known)), math.log(max(known)), least=math.log(1.1))
        low, high = math.exp(low), math.exp(high)
        ticks = _log_ticks(low, high)
    else:
        low, high = _apart(min(0.0, *known), max(0.0, *known), least=1.0 if axis.whole else 0.0)
        ticks = _linear_ticks(low, high, whole=axis.whole)
    return Scale(low=low, high=high, start=start, end=end, log=axis.scale == "log", ticks=ticks)


def _apart(low: float, high: float, *, least: float) -> tuple[float, float]:
    """The outermost figures with a margin; a side that is 0 has none, and two that are one are drawn apart."""
    gap = max(high - low, least) or 1.0
    if high - low < gap:
        high = low + gap if low >= 0 else high
        low = high - gap
    return low - MARGIN * gap * (low != 0), high + MARGIN * gap * (high != 0)


def _linear_ticks(low: float, high: float, *, whole: bool) -> tuple[float, ...]:
    rough = (high - low) / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(part * power for part in (1, 2, 5, 10, 20) if part * power >= rough)
    step = max(step, 1.0) if whole else step
    return tuple(round(at * step, 12) for at in range(math.ceil(low / step), math.floor(high / step) + 1))


def _log_ticks(low: float, high: float) -> tuple[float, ...]:
    """1, 2 and 5 of each power of ten, the powers alone where that is too much, plain steps where it is too little."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = tuple(value for power in powers for part in (1, 2, 5) if low <= (value := part * 10.0**power) <= high)
    if len(fine) < 3:
        return tuple(tick for tick in _linear_ticks(low, high, whole=False) if low <= tick <= high)
    if len(fine) <= MOST_TICKS:
        return fine
    coarse = [10.0**power for power in powers if low <= 10.0**power <= high]
    return tuple(coarse[:: math.ceil(len(coarse) / MOST_TICKS)])


def tick_text(value: float, axis: Axis) -> str:
    """A tick's label; counts to the left of 0 are counts too."""
    return f"{abs(value) if axis.mirrored else value:,.10g}"
