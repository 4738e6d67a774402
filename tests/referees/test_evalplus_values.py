"""The bounded reader of a candidate's bytes."""

from __future__ import annotations

import marshal
import math
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from referees.evalplus_values import MAX_DEPTH, nodes_in, parse

# A busy machine is no failure.
few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**200), max_value=2**200)
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text(st.characters(codec="utf-8"))
    | st.binary()
)
hashables = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=8)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(hashables, inner, max_size=4)
        | st.sets(hashables, max_size=4)
        | st.frozensets(hashables, max_size=4)
    ),
    max_leaves=25,
)


def kinds(value: Any) -> Any:
    """The value with the type of every part, so that 1, True and 1.0 are told apart."""
    if isinstance(value, dict):
        return dict, {repr(kinds(key)): kinds(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value), [kinds(item) for item in value]
    if isinstance(value, set | frozenset):
        return type(value), sorted(repr(kinds(item)) for item in value)
    return type(value), repr(value)


@few
@given(values)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    """Whatever plain value marshal writes, the reader gives the same value of the same kinds."""
    assert kinds(value) == kinds(parse(marshal.dumps(value, 2), max_nodes=10_000))


@few
@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_value_error(data: bytes) -> None:
    """Hostile bytes can do no more than be refused."""
    try:
        parse(data, max_nodes=1000)
    except ValueError:
        return
    assert data


@few
@given(values, st.data())
def test_damaged_bytes_give_a_value_or_a_value_error(value: Any, data: st.DataObject) -> None:
    """A flipped byte or a cut tail of honest bytes can do no more than be refused."""
    whole = bytearray(marshal.dumps(value, 2))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    for damaged in (bytes(whole), bytes(whole[:at])):
        try:
            parse(damaged, max_nodes=1000)
        except ValueError:
            continue


def test_nan_and_infinities_are_values() -> None:
    """Floats that JSON lacks are read as they are."""
    read = parse(marshal.dumps([math.nan, math.inf, -math.inf], 2), max_nodes=10)
    assert math.isnan(read[0])
    assert [math.inf, -math.inf] == read[1:]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "bytes announced"),
        (b"[" + struct.pack("<i", 2**31 - 1), "values announced"),
        (b"[" + struct.pack("<i", -1), "values announced"),
        (b"u" + struct.pack("<i", 2**31 - 1) + b"x", "bytes announced"),
        (b"u" + struct.pack("<i", 1) + b"\xff", "decode"),
        (b"l" + struct.pack("<ihh", 2, 1, 0), "digits"),
        (b"l" + struct.pack("<iH", 1, 0x8000), "digits"),
        (b"{[" + struct.pack("<i", 0) + b"N0", "unhashable"),
        (b"<" + struct.pack("<i", 1) + b"[" + struct.pack("<i", 0), "unhashable"),
        (b"0", "no plain value"),
        (b"[" + struct.pack("<i", 1) + b"0", "no plain value"),
        (b"NN", "after the value"),
        (b"{N", "bytes announced"),
        (marshal.dumps(compile("1", "x", "eval"), 2), "no plain value"),
        (marshal.dumps(StopIteration, 2), "no plain value"),
        (marshal.dumps(..., 2), "no plain value"),
    ],
)
def test_what_is_refused(data: bytes, words: str) -> None:
    """Lies about lengths, types that no answer has, unhashable keys and trailing bytes are refused."""
    with pytest.raises(ValueError, match=words):
        parse(data, max_nodes=100)


def test_depth_and_number_are_bounded() -> None:
    """Nesting and the number of values have limits, on either side of which the answer differs."""
    one = b"[" + struct.pack("<i", 1)
    assert parse(one * MAX_DEPTH + b"N", max_nodes=1000) is not None
    with pytest.raises(ValueError, match="deep"):
        parse(one * (MAX_DEPTH + 1) + b"N", max_nodes=1000)
    with pytest.raises(ValueError, match="deep"):
        parse(one * 1_000_000, max_nodes=10**9)
    ten = marshal.dumps(list(range(10)), 2)
    assert list(range(10)) == parse(ten, max_nodes=11)
    with pytest.raises(ValueError, match="allowed"):
        parse(ten, max_nodes=10)


@few
@given(values)
def test_nodes_are_what_the_reader_counts(value: Any) -> None:
    """A value can be read with as many nodes as are counted in it (and one for a dict's end)."""
    dicts = marshal.dumps(value, 2).count(b"{")
    assert kinds(value) == kinds(parse(marshal.dumps(value, 2), max_nodes=nodes_in(value) + dicts))
