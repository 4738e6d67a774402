"""Regions and tables of them: what is refused, what is in, and whether a table claims every point once."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.errors import ExperimentError
from harness.partition import MOST_ROWS, fault_of_table
from harness.regions import ANY, Domain, Region, Span, exact

P = Domain(low=0, high=1)
COUNT = Domain(low=0, whole=True)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({}, "without a bound"),
        ({"above": 1.0, "at_least": 2.0}, "`above` and `at_least` together"),
        ({"below": 1.0, "at_most": 2.0}, "`below` and `at_most` together"),
        ({"above": 2.0, "below": 1.0}, "no number is above 2 and below 1"),
        ({"above": 1.0, "at_most": 1.0}, "no number is exactly 1"),
        ({"above": float("nan")}, "finite"),
        ({"at_most": float("inf")}, "finite"),
        ({"above": "0"}, "valid number"),
        ({"above": True}, "valid number"),
        ({"abov": 1.0}, "Extra inputs"),
    ],
)
def test_a_region_that_says_nothing_or_too_much_is_refused(bounds: dict[str, Any], message: str) -> None:
    """No bound, two bounds on a side, an empty interval, NaN, a text, an unknown key: each is refused."""
    with pytest.raises(ValidationError, match=message):
        Region.model_validate(bounds)


@pytest.mark.parametrize(
    ("bounds", "inside", "outside"),
    [
        ({"above": 1}, [1.5, 1e300], [1.0, -3.0, None]),
        ({"at_least": 1}, [1.0, 2.0], [0.999, None]),
        ({"below": 1.0}, [0.999], [1.0, None]),
        ({"at_most": 1.0}, [1.0, -1e300], [1.001, None]),
        ({"at_least": 2.0, "at_most": 2.0}, [2.0], [1.999, 2.001, None]),
        ({"above": 0.0, "below": 1.0, "undefined": True}, [0.5, None], [0.0, 1.0]),
        ({"undefined": True}, [None], [0.0]),
    ],
)
def test_what_a_region_contains(
    bounds: dict[str, Any], inside: list[float | None], outside: list[float | None]
) -> None:
    """Closed bounds hold their end, open ones don't, and undefined is in only where it is named."""
    region = Region.model_validate(bounds)
    assert [region.contains(value) for value in inside] == [True] * len(inside)
    assert [region.contains(value) for value in outside] == [False] * len(outside)


def test_numbers_are_compared_as_they_are_written() -> None:
    """0.3 - 0.1 is the bound 0.2 here, as it isn't in binary; NaN is no number at all."""
    assert exact(0.3) - exact(0.1) == exact(0.2) == Fraction(1, 5)
    with pytest.raises(ValueError, match="finite"):
        exact(float("nan"))


def test_overlaps_are_seen_where_the_figure_can_be() -> None:
    """Above 3 and below 4 meet for a real number and not for a count; two that touch at a closed end do."""
    above, below = Region(above=3), Region(below=4)
    assert above.overlaps(below)
    assert not above.overlaps(below, COUNT)
    assert Region(at_most=3).overlaps(Region(at_least=3), COUNT)
    assert not Region(below=3).overlaps(Region(at_least=3))
    assert Region(below=0, undefined=True).overlaps(Region(above=0, undefined=True))
    assert not Region(below=0, undefined=True).overlaps(Region(above=0, undefined=True), P)


def spans(*rows: dict[str, dict[str, Any]]) -> list[dict[str, Span]]:
    """A table of rows from the bounds of each axis."""
    return [{axis: Region.model_validate(bounds).span for axis, bounds in row.items()} for row in rows]


def test_a_partition_has_no_fault() -> None:
    """Two axes, three rows that claim each point once; a row that does not name an axis claims all of it."""
    table = spans(
        {"p": {"at_most": 0.05}, "net": {"above": 0}},
        {"p": {"at_most": 0.05}, "net": {"at_most": 0}},
        {"p": {"above": 0.05}},
    )
    assert fault_of_table(table, {"p": P, "net": Domain(whole=True)}) is None


@pytest.mark.parametrize(
    ("rows", "domain", "point"),
    [
        ([{"x": {"below": 0.05}}, {"x": {"above": 0.05}}], P, exact(0.05)),
        ([{"x": {"below": 1}}], Domain(), 1),
        ([{"x": {"at_least": 1}}], COUNT, 0),
        ([{"x": {"at_most": 3}}, {"x": {"at_least": 5}}], COUNT, 4),
        ([{"x": {"at_most": 1}}], Domain(low=0, high=1, undefined=True), None),
        ([{"x": {"at_most": 3}}, {"x": {"at_least": 4}}], Domain(), Fraction(7, 2)),
        ([], P, 0),
    ],
)
def test_a_gap_is_shown_by_a_point(rows: list[dict[str, Any]], domain: Domain, point: Any) -> None:
    """The end point between two open rows, the last piece, a whole number, undefined."""
    fault = fault_of_table(spans(*rows), {"x": domain})
    assert fault is not None
    assert (fault.rows, fault.point) == ((), {"x": point})


def test_where_a_figure_can_not_be_there_is_no_gap() -> None:
    """A count has nothing between 3 and 4, a p-value nothing above 1, a defined figure no undefined."""
    assert fault_of_table(spans({"x": {"at_most": 3}}, {"x": {"at_least": 4}}), {"x": COUNT}) is None
    assert fault_of_table(spans({"x": {"at_most": 1}}), {"x": P}) is None


def test_an_overlap_names_both_rows_and_a_point() -> None:
    """The third row meets the first at p = 0.05 alone."""
    table = spans({"p": {"at_most": 0.05}}, {"p": {"above": 0.1}}, {"p": {"at_least": 0.05, "at_most": 0.1}})
    fault = fault_of_table(table, {"p": P})
    assert fault is not None
    assert (fault.rows, fault.point) == ((0, 2), {"p": exact(0.05)})


def test_a_gap_of_two_axes_is_found() -> None:
    """Only one corner is open: p above 0.05 with a net of 0 or less."""
    table = spans({"p": {"at_most": 0.05}}, {"p": {"above": 0.05}, "net": {"above": 0}})
    fault = fault_of_table(table, {"p": P, "net": Domain(whole=True)})
    assert fault is not None
    p, net = fault.point["p"], fault.point["net"]
    assert p is not None
    assert net is not None
    assert p > exact(0.05)
    assert net <= 0


def test_a_table_beyond_reading_is_refused() -> None:
    """The bound is on the rows; twenty axes with a thousand pieces each are no trouble."""
    row = spans({"x": {"at_most": 1}})
    with pytest.raises(ExperimentError, match=rf"a table of {MOST_ROWS + 1} rows: expected {MOST_ROWS} at most"):
        fault_of_table(row * (MOST_ROWS + 1), {"x": P})
    steps = spans(
        *({f"a{axis}": {"at_least": at, "below": at + 1} for axis in range(20)} for at in range(MOST_ROWS - 1))
    )
    fault = fault_of_table(steps, {f"a{axis}": Domain() for axis in range(20)})
    assert fault is not None
    assert not fault.rows


ENDS = [-1.0, 0.0, 0.05, 1.0, 2.0]
SAMPLES: list[Any] = [-2, -1, Fraction(-1, 2), 0, exact(0.01), exact(0.05), exact(0.5), 1, Fraction(3, 2), 2, 3, None]
"""Every end and something of every piece between: what brute force tries."""
DOMAINS = [Domain(), P, COUNT, Domain(low=-1, high=2, whole=True, undefined=True), Domain(undefined=True)]


@st.composite
def regions(draw: st.DrawFn) -> Span:
    """A span as a region gives it, or everything."""
    if draw(st.booleans()) and draw(st.booleans()):
        return ANY
    low, high = draw(st.sampled_from([None, *ENDS])), draw(st.sampled_from([None, *ENDS]))
    bounds: dict[str, Any] = {"undefined": draw(st.booleans())}
    if low is not None:
        bounds[draw(st.sampled_from(["above", "at_least"]))] = low
    if high is not None:
        bounds[draw(st.sampled_from(["below", "at_most"]))] = high
    try:
        return Region.model_validate(bounds).span
    except ValidationError:
        return Span(undefined=True)


def halves(end: float, *, closed: bool) -> tuple[Span, Span]:
    """The two sides of a cut, the first with the end in it if `closed`; undefined goes with the second."""
    low = Region.model_validate({"at_most" if closed else "below": end})
    high = Region.model_validate({"above" if closed else "at_least": end, "undefined": True})
    return low.span, high.span


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Span]]:
    """A partition by repeated cuts, of which a row may then be dropped, doubled or replaced; or just any rows."""
    rows: list[dict[str, Span]] = [{}]
    for axis in draw(st.permutations(["x", "y"])):
        at = draw(st.integers(0, len(rows) - 1))
        first, second = halves(draw(st.sampled_from(ENDS)), closed=draw(st.booleans()))
        rows[at : at + 1] = [{**rows[at], axis: first}, {**rows[at], axis: second}]
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(rows) - 1)) if rows else 0
        match draw(st.sampled_from(["drop", "double", "replace"])):
            case "drop":
                del rows[at : at + 1]
            case "double":
                rows.extend(rows[at : at + 1])
            case _:
                rows[at : at + 1] = [{"x": draw(regions()), "y": draw(regions())}]
    return rows


@given(table=tables(), x=st.sampled_from(DOMAINS), y=st.sampled_from(DOMAINS))
def test_the_check_agrees_with_trying_every_point(table: list[dict[str, Span]], x: Domain, y: Domain) -> None:
    """A fault is found exactly if some tried point is claimed by no row or by two, and the point that it shows is one."""

    def claims(point: tuple[Any, Any]) -> list[int]:
        pair = dict(zip("xy", point, strict=True))
        return [at for at, row in enumerate(table) if all(pair[axis] in row.get(axis, ANY) for axis in pair)]

    tried = [(one, two) for one in SAMPLES if one in x for two in SAMPLES if two in y]
    fault = fault_of_table(table, {"x": x, "y": y})
    assert (fault is not None) == any(len(claims(point)) != 1 for point in tried)
    if fault is not None:
        shown = (fault.point["x"], fault.point["y"])
        assert shown[0] in x
        assert shown[1] in y
        assert claims(shown) == [] if not fault.rows else set(fault.rows) <= set(claims(shown))
