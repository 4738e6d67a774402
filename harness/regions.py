"""
Regions of the number line: the parts that a registered figure may fall into.

A figure is a number or undefined; a region says of both whether they are in it. Numbers are compared as the decimals
that they are written as, so that 0.3 - 0.1 and 0.2 are the same bound. Used wherever something is registered of a
figure: predictions, outcome tables, adverse outcomes, stop rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, model_validator

__all__ = ["ANY", "Domain", "Point", "Region", "Span", "exact", "shown"]

Point: TypeAlias = Fraction | None
"""A value of a figure; None is undefined."""


def exact(number: float | Fraction) -> Fraction:
    """The number as the shortest decimal that it is written as. Raises `ValueError` for NaN and infinities."""
    if isinstance(number, Fraction):
        return number
    if not math.isfinite(number):
        raise ValueError(f"{number!r} is no finite number")
    return Fraction(repr(number))


def shown(point: Point) -> str:
    """A point as a person reads it."""
    return "undefined" if point is None else f"{float(point):.12g}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """An interval, open or closed at each end and unbounded at an end that is None, with or without `undefined`."""

    low: Fraction | None = None
    high: Fraction | None = None
    low_closed: bool = True
    high_closed: bool = True
    numbers: bool = True
    undefined: bool = False

    def __contains__(self, point: Point) -> bool:
        if point is None:
            return self.undefined
        above = self.low is None or point > self.low or (self.low_closed and point == self.low)
        below = self.high is None or point < self.high or (self.high_closed and point == self.high)
        return self.numbers and above and below

    def covers(self, other: Span) -> bool:
        """Whether everything in the other span is in this one too."""
        return all(point in self for point in _everything([self, other]) if point in other)

    def meets(self, other: Span) -> bool:
        """Whether something is in both."""
        return any(point in self and point in other for point in _everything([self, other]))

    @property
    def ends(self) -> frozenset[Fraction]:
        """The end points that there are."""
        return frozenset(end for end in (self.low, self.high) if end is not None) if self.numbers else frozenset()

    def __str__(self) -> str:
        ends = []
        if self.numbers and self.low is not None and self.low == self.high:
            ends = [f"exactly {shown(self.low)}"]
        elif self.numbers:
            if self.low is not None:
                ends.append(f"{'at least' if self.low_closed else 'above'} {shown(self.low)}")
            if self.high is not None:
                ends.append(f"{'at most' if self.high_closed else 'below'} {shown(self.high)}")
            ends = ends or ["any number"]
        return " or ".join([" and ".join(ends), *(["undefined"] if self.undefined else [])] if ends else ["undefined"])


ANY = Span(undefined=True)
"""Everything, undefined too: what a row says of a figure that it does not name."""


class Region(BaseModel):
    """A part of what a figure can be: numbers between two bounds (`above` or `at_least`, `below` or `at_most`)."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, strict=True
    )

    above: float | None = None
    """Numbers greater than this one."""
    at_least: float | None = None
    """Numbers greater than or equal to this one."""
    below: float | None = None
    """Numbers less than this one."""
    at_most: float | None = None
    """Numbers less than or equal to this one."""
    undefined: bool = False
    """Also a figure that is undefined; with no bound beside it, only that."""

    @model_validator(mode="after")
    def _something(self) -> Region:
        for one, other in (("above", "at_least"), ("below", "at_most")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise ValueError(f"`{one}` and `{other}` together: expected one bound on a side")
        if not self._bounded and not self.undefined:
            raise ValueError("a region without a bound: expected above, at_least, below, at_most or undefined = true")
        span = self.span
        if span.numbers and span.low is not None and span.high is not None:
            closed = span.low_closed and span.high_closed
            if span.low > span.high or (span.low == span.high and not closed):
                raise ValueError(f"no number is {span}: expected a low bound below the high one")
        return self

    @property
    def _bounded(self) -> bool:
        return any(bound is not None for bound in (self.above, self.at_least, self.below, self.at_most))

    @property
    def span(self) -> Span:
        """The region as an interval of exact numbers."""
        low = self.above if self.above is not None else self.at_least
        high = self.below if self.below is not None else self.at_most
        return Span(
            low=None if low is None else exact(low),
            high=None if high is None else exact(high),
            low_closed=self.above is None,
            high_closed=self.below is None,
            numbers=self._bounded,
            undefined=self.undefined,
        )

    def contains(self, value: float | None) -> bool:
        """Whether the value of a figure is in the region; None is undefined."""
        return (None if value is None else exact(value)) in self.span

    def overlaps(self, other: Region, domain: Domain | None = None) -> bool:
        """Whether some value that the figure can have is in both."""
        pair = (self.span, other.span)
        return any(all(point in span for span in pair) for point in (domain or Domain(undefined=True)).points(pair))


@dataclass(frozen=True, kw_only=True, slots=True)
class Domain:
    """
    What a figure can be: numbers from `low` to `high` (None is unbounded), `whole` ones only, and undefined or not.
    """

    low: int | None = None
    high: int | None = None
    whole: bool = False
    undefined: bool = False

    def __contains__(self, point: Point) -> bool:
        if point is None:
            return self.undefined
        inside = (self.low is None or point >= self.low) and (self.high is None or point <= self.high)
        return inside and (not self.whole or point.denominator == 1)

    def points(self, spans: Iterable[Span]) -> list[Point]:
        """
        One point of each piece that the ends of the spans cut the domain into: each end itself, one number between each
        two neighbours and beyond the outermost, and undefined. No span tells two points of one piece apart.
        """
        ends = {end for span in spans for end in span.ends}
        ends |= {Fraction(bound) for bound in (self.low, self.high) if bound is not None}
        order = sorted(ends)
        found = [Fraction(0)]
        if order:
            between = [self._between(*pair) for pair in pairwise(order)]
            inner = [point for point in between if point is not None]
            found = [Fraction(math.ceil(order[0]) - 1), *sorted([*order, *inner]), Fraction(math.floor(order[-1]) + 1)]
        numbers = [point for point in found if point in self]
        return [*numbers, None] if self.undefined else [*numbers]

    def _between(self, low: Fraction, high: Fraction) -> Fraction | None:
        """A number of the domain's kind strictly between two, or None where there is none."""
        if not self.whole:
            return (low + high) / 2
        after = Fraction(math.floor(low) + 1)
        return after if after < high else None


def _everything(spans: Iterable[Span]) -> list[Point]:
    """One point of each piece that the spans cut all that there is into."""
    return Domain(undefined=True).points(spans)
