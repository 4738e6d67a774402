"""
Whether the rows of a table claim every point once: no gap, no overlap.

A row is a box: a span for some of the axes, everything for the others. Each axis is cut at all end points into single
points, open intervals and `undefined`; inside such a cell of the grid no row says two things. Two rows overlap if they
share a piece on every axis. Rows that don't overlap leave a gap if the numbers of their cells add up to fewer than the
grid has, so nothing is enumerated: O(rows^2 x axes) on bit sets of pieces, in exact numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Generic, TypeVar

from harness.errors import ExperimentError
from harness.regions import ANY, Domain, Point, Span

__all__ = ["MOST_ROWS", "Fault", "fault_of_table"]

Axis = TypeVar("Axis", bound=Hashable)

MOST_ROWS = 200
"""More rows than a person can read are refused: a table is registered to be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault(Generic[Axis]):
    """A point that no row claims (`rows` is empty), or that two rows do (their numbers from 0)."""

    point: Mapping[Axis, Point]
    rows: tuple[int, ...] = ()


def fault_of_table(rows: Sequence[Mapping[Axis, Span]], domains: Mapping[Axis, Domain]) -> Fault[Axis] | None:
    """
    The first overlap of the table, else its first gap, each with a point that shows it; None for a partition.

    Every axis that a row names must have a domain. Raises `ExperimentError` if there are too many rows.
    """
    if len(rows) > MOST_ROWS:
        raise ExperimentError(f"a table of {len(rows)} rows: expected {MOST_ROWS} at most")
    grid = {axis: domain.points([row[axis] for row in rows if axis in row]) for axis, domain in domains.items()}
    boxes = [[_mask(row.get(axis, ANY), points) for axis, points in grid.items()] for row in rows]
    for (number, box), (other_number, other) in combinations(enumerate(boxes), 2):
        both = [one & two for one, two in zip(box, other, strict=True)]
        if all(both):
            point = {axis: points[_first(mask)] for (axis, points), mask in zip(grid.items(), both, strict=True)}
            return Fault(point=point, rows=(number, other_number))
    sizes = [len(points) for points in grid.values()]
    if _covered(boxes) == math.prod(sizes):
        return None
    return Fault(point={axis: points[at] for (axis, points), at in zip(grid.items(), _gap(boxes, sizes), strict=True)})


def _mask(span: Span, points: Sequence[Point]) -> int:
    """The pieces of an axis that a span claims, a bit each: numbers in their order, then undefined."""
    numbers = [point for point in points if point is not None]
    start, end = 0, len(numbers) if span.numbers else 0
    if span.low is not None:
        start = bisect_left(numbers, span.low) if span.low_closed else bisect_right(numbers, span.low)
    if span.high is not None:
        end = bisect_right(numbers, span.high) if span.high_closed else bisect_left(numbers, span.high)
    mask = (1 << max(start, end)) - (1 << start)
    return mask | (1 << len(numbers) if span.undefined and len(points) > len(numbers) else 0)


def _first(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _covered(boxes: Sequence[Sequence[int]]) -> int:
    """How many cells of the grid the boxes cover, if no two share one."""
    return sum(math.prod(mask.bit_count() for mask in box) for box in boxes)


def _gap(boxes: Sequence[Sequence[int]], sizes: Sequence[int]) -> Iterator[int]:
    """A cell that no box claims, axis by axis: go where what is left of the boxes covers less than there is."""
    left = boxes
    for axis, size in enumerate(sizes):
        whole = math.prod(sizes[axis + 1 :])
        for piece in range(size):
            inside = [box for box in left if box[axis] >> piece & 1]
            if _covered([box[axis + 1 :] for box in inside]) < whole:
                yield piece
                left = inside
                break
