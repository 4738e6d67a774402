"""
From a plot to lines, boxes, circles and words at places: pure geometry, the same for the same plot on every machine.

Places are in the units of the drawing, which is `WIDTH` wide. Colours are classes of the page's style sheet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from cells.html.scales import Scale, scale_of, tick_text
from cells.plots import Band, Bar, Dot, Plot, Row, Shape, Swatch

__all__ = ["Drawing", "Element", "draw", "swatch"]

WIDTH = 760
LETTER = 6.4
"""A letter's width, for the room that words need."""
LONGEST = 44
"""A longer name is cut in the drawing; the table beside it has it whole."""
PITCH = 24
DENSE = 90
"""With more rows than this, rows are thin and have no names."""
THIN = 6
STACK = (0, -5, 5, -10, 10)
"""Where marks of one place are put, from the row's middle; more than these are not drawn."""
PLACE = 5
"""Marks less than this apart lie in one place."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Element:
    """One thing drawn: an SVG element with its attributes, its class, and the words in it."""

    tag: Literal["line", "rect", "circle", "path", "text"]
    look: str
    attributes: tuple[tuple[str, str], ...]
    text: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """A figure as it is drawn."""

    width: int
    height: int
    elements: tuple[Element, ...]


def _at(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _line(look: str, x1: float, y1: float, x2: float, y2: float) -> Element:
    places = (("x1", _at(x1)), ("y1", _at(y1)), ("x2", _at(x2)), ("y2", _at(y2)))
    return Element(tag="line", look=look, attributes=places)


def _box(look: str, x1: float, x2: float, y: float, height: float) -> Element:
    low, high = min(x1, x2), max(x1, x2)
    places = (("x", _at(low)), ("y", _at(y)), ("width", _at(high - low)), ("height", _at(height)))
    return Element(tag="rect", look=look, attributes=places)


def _words(look: str, x: float, y: float, text: str) -> Element:
    return Element(tag="text", look=look, attributes=(("x", _at(x)), ("y", _at(y))), text=text)


def _mark(shape: Shape, tone: str, x: float, y: float) -> Element:
    """A mark around its place, told apart by its shape as well as by its tone."""
    match shape:
        case "dot":
            return Element(tag="circle", look=f"mark {tone}", attributes=(("cx", _at(x)), ("cy", _at(y)), ("r", "4")))
        case "halt":
            return _path(f"mark hollow {tone}", [(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y)], closed=True)
        case "at_least":
            return _path(f"mark {tone}", [(x - 3, y - 5), (x + 5, y), (x - 3, y + 5)], closed=True)
        case "at_most":
            return _path(f"mark {tone}", [(x + 3, y - 5), (x - 5, y), (x + 3, y + 5)], closed=True)


def _path(look: str, points: Sequence[tuple[float, float]], *, closed: bool = False) -> Element:
    way = " ".join(f"{'L' if at else 'M'}{_at(x)} {_at(y)}" for at, (x, y) in enumerate(points))
    return Element(tag="path", look=look, attributes=(("d", way + ("Z" if closed else "")),))


def swatch(entry: Swatch) -> Element:
    """What stands before an entry of a key, in a box of 14 by 14."""
    match entry.shape:
        case "band":
            return _box("band", 0, 14, 2, 10)
        case "bar":
            return _box(f"bar {entry.tone}", 0, 14, 2, 10)
        case shape:
            return _mark(shape, entry.tone, 7, 7)


def draw(plot: Plot) -> Drawing:
    """Draw a plot of rows or of steps."""
    return _rows(plot) if plot.rows else _steps(plot)


def _room(texts: Iterable[str]) -> float:
    return LETTER * min(LONGEST, max(map(len, texts), default=0)) + 12


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _values(plot: Plot) -> Iterator[float]:
    if plot.reference is not None:
        yield plot.reference
    for row in plot.rows:
        for mark in row.marks:
            match mark:
                case Band(low=low, high=high):
                    yield from (low, high)
                case Bar(end=end):
                    yield end
                case Dot(at=at):
                    yield at


def _rows(plot: Plot) -> Drawing:
    dense = len(plot.rows) > DENSE
    crowded = any(sum(isinstance(mark, Dot) for mark in row.marks) > 1 for row in plot.rows)
    pitch = THIN if dense else PITCH + 12 * crowded
    left = 12.0 if dense else _room(row.label for row in plot.rows)
    right = WIDTH - (12.0 if dense else _room(row.text for row in plot.rows))
    edge = 18 if any(isinstance(mark, Bar) for row in plot.rows for mark in row.marks) else 0
    scale = scale_of(plot.x, _values(plot), start=left + edge, end=right - edge)
    bottom = 6.0 + pitch * len(plot.rows)
    elements = list(_bottom_axis(plot, scale, (left + right) / 2, bottom))
    for at, row in enumerate(plot.rows):
        middle = 6.0 + pitch * (at + 0.5)
        elements += _marks(row, scale, middle, pitch)
        if not dense:
            elements.append(_words("name", left - 8, middle + 4, _short(row.label)))
            elements.append(_words("said", right + 8, middle + 4, row.text))
    if plot.reference is not None:
        elements.append(_line("reference", scale(plot.reference), 4, scale(plot.reference), bottom))
    return Drawing(width=WIDTH, height=round(bottom + 42), elements=tuple(elements))


def _bottom_axis(plot: Plot, scale: Scale, middle: float, bottom: float) -> Iterator[Element]:
    for tick in scale.ticks:
        yield _line("grid", scale(tick), 4, scale(tick), bottom)
        yield _words("tick", scale(tick), bottom + 15, tick_text(tick, plot.x))
    yield _line("axis", scale.start, bottom, scale.end, bottom)
    yield _words("label", middle, bottom + 34, plot.x.label)


def _marks(row: Row, scale: Scale, middle: float, pitch: float) -> Iterator[Element]:
    thick = max(2.0, min(14.0, pitch - 8))
    taken: dict[int, int] = {}
    for mark in row.marks:
        match mark:
            case Band(low=low, high=high):
                yield _box("band", scale(low), scale(high), middle - thick / 2 - 1, thick + 2)
            case Bar(end=end, text=text, tone=tone):
                yield _box(f"bar {tone}", scale(0.0), scale(end), middle - thick / 2, thick)
                if pitch > THIN:
                    yield _words(
                        "before" if end <= 0 and tone == "control" else "after", *_beside(mark, scale, middle), text
                    )
            case Dot(at=at, tone=tone, shape=shape):
                place = round(scale(at) / PLACE)
                nth = taken.get(place, 0)
                taken[place] = nth + 1
                if nth < len(STACK):
                    yield _mark(shape, tone, scale(at), middle + (STACK[nth] if pitch > THIN else 0))


def _beside(bar: Bar, scale: Scale, middle: float) -> tuple[float, float]:
    return scale(bar.end) + (-5 if bar.tone == "control" else 5), middle + 4


def _steps(plot: Plot) -> Drawing:
    assert plot.y is not None  # a plot of steps has two axes
    height, top, bottom = 300, 10.0, 258.0
    right = WIDTH - _room(item.label for item in plot.steps) - 8
    across = scale_of(plot.x, (x for item in plot.steps for x, _ in item.points), start=64, end=right)
    up = scale_of(plot.y, (y for item in plot.steps for _, y in item.points), start=bottom, end=top)
    elements = list(_bottom_axis(plot, across, (64 + right) / 2, bottom))
    for tick in up.ticks:
        elements.append(_line("grid", 64, up(tick), right, up(tick)))
        elements.append(_words("tick side", 56, up(tick) + 4, tick_text(tick, plot.y)))
    elements.append(
        Element(
            tag="text", look="label", attributes=(("transform", "translate(16 134) rotate(-90)"),), text=plot.y.label
        )
    )
    ends = _apart([up(item.points[-1][1]) for item in plot.steps])
    for at, item in enumerate(plot.steps):
        points = [*((across(x), up(y)) for x, y in item.points), (right, up(item.points[-1][1]))]
        elements.append(_path(f"step {item.tone} dash-{at % 6 + 1}", list(_corners(points))))
        elements.append(_words(f"after {item.tone}", right + 8, ends[at] + 4, _short(item.label)))
    return Drawing(width=WIDTH, height=height, elements=tuple(elements))


def _corners(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    yield points[0]
    for (_, before), (x, y) in pairwise(points):
        yield x, before
        yield x, y


def _apart(places: Sequence[float], least: float = 15.0) -> list[float]:
    """Places of labels in their order from above, moved down where they would cover each other."""
    moved = list(places)
    last = float("-inf")
    for at in sorted(range(len(places)), key=lambda at: (places[at], at)):
        last = moved[at] = max(places[at], last + least)
    return moved
