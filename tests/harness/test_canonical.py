"""Canonical bytes are those of RFC 8785, whoever writes them: digests that are on disk depend on every one."""

import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.canonical import canonical_bytes, digest_json, digest_names

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(TEXTS, inner),
)


@settings(max_examples=60, deadline=None)
@given(value=VALUES)
@example(value={"\U0001f600": 1, "\ufb33": 2, "a": 3, "": 4})
@example(value="".join(map(chr, range(0x100))) + "\u2028\u2029\ufeff")
@example(value=[{}, [], (), -0.0, 1e21, 1e-7, 5e-324, True, {"a": {"b": [None]}}])
def test_the_bytes_are_those_of_the_reference_library(value):
    """Key order by UTF-16, escapes and figures are the library's, to the byte."""
    assert canonical_bytes(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("-inf"), 2**53, -(2**53), "\ud800", {"\ud800": 1}, {"é\ud800": 1}, {1: 2}, {"a": {1}}, b"x"],
)
def test_what_json_does_not_say_is_refused_wherever_it_stands(value):
    """Alone, in a list and in an object."""
    for place in (value, [1, value], {"a": value}):
        with pytest.raises(ValueError, match="not representable as canonical JSON"):
            canonical_bytes(place)


@settings(max_examples=60, deadline=None)
@given(names=st.lists(TEXTS))
def test_a_set_of_names_has_the_digest_of_its_sorted_list(names):
    """In whatever order they come."""
    assert digest_names(reversed(names)) == digest_json(sorted(names))


def test_a_set_of_names_with_a_lone_surrogate_is_refused():
    """It has no bytes."""
    with pytest.raises(ValueError, match="surrogates"):
        digest_names(["\ud800"])
