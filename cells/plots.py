"""
The figures of a report as values: what is drawn where, in the units of the data, before anybody has drawn it.

A plot has rows (one a problem, a contrast, a class) on one axis of figures, or steps (one line an arm) on two. Every
figure in it is a figure of the scoreboard or of a cell; only the ticks of an axis are round numbers of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Axis", "Band", "Bar", "Dot", "Mark", "Plot", "Row", "Shape", "Steps", "Swatch", "Tone"]

Shape: TypeAlias = Literal["dot", "halt", "at_least", "at_most"]
"""A `halt` is hollow; a figure that is `at_least` or `at_most` points to where the true one lies."""

Tone: TypeAlias = Literal["treatment", "control", "neutral", "arm-1", "arm-2", "arm-3", "arm-4", "arm-5", "arm-6"]
"""The colour of a mark, by what it stands for; never the only thing that tells it apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """
    An axis of figures: its label, and whether it is logarithmic. A `whole` one counts, and has no tick between two
    whole numbers; a `mirrored` one has counts to both sides of 0.
    """

    label: str
    scale: Literal["linear", "log"] = "linear"
    whole: bool = False
    mirrored: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Band:
    """From `low` to `high`: what can't be told from no difference."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """From 0 to `end`, with its count beside it."""

    end: float
    text: str
    tone: Tone


@dataclass(frozen=True, kw_only=True, slots=True)
class Dot:
    """One figure."""

    at: float
    tone: Tone = "neutral"
    shape: Shape = "dot"


Mark: TypeAlias = Band | Bar | Dot


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One row: its name, what is drawn in it, and what is said at its end."""

    label: str
    marks: tuple[Mark, ...]
    text: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Steps:
    """One line that rises by steps: (where, how high) in order."""

    label: str
    points: tuple[tuple[float, float], ...]
    tone: Tone


@dataclass(frozen=True, kw_only=True, slots=True)
class Swatch:
    """An entry of a figure's key: what a tone or a shape stands for."""

    label: str
    tone: Tone = "neutral"
    shape: Literal["dot", "halt", "at_least", "at_most", "band", "bar"] = "dot"


@dataclass(frozen=True, kw_only=True, slots=True)
class Plot:
    """
    One figure: either `rows` on the axis `x`, or `steps` on `x` and `y`.

    `caption` says what is to be seen and what is not in it; `alt` has the marks in words, for whoever can't see them;
    `key` names the tones and shapes that need it; `reference` is where no difference lies.
    """

    title: str
    caption: str
    alt: tuple[str, ...]
    x: Axis
    rows: tuple[Row, ...] = ()
    steps: tuple[Steps, ...] = ()
    y: Axis | None = None
    reference: float | None = None
    key: tuple[Swatch, ...] = ()
