"""Canonical bytes are those of RFC 8785, whoever writes them: digests that are on disk depend on every one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.canonical import canonical_bytes, canonical_object, digest_json, digest_names

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"\U0001f600": 1, "\ufb33": 2, "a": 3, "": 4}, '{"":4,"a":3,"\U0001f600":1,"\ufb33":2}'),
        ('\x00\x08\t\n\x0b\x0c\r\x1f"\\/\x7f\u2028é', '"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\"\\\\/\x7f\u2028é"'),
        ([{}, [], (), True, None, {"a": {"b": [0]}}], '[{},[],[],true,null,{"a":{"b":[0]}}]'),
        ([-0.0, 1.0, 0.1, 1e21, 1e-7, 5e-324, 333333333.33333329], "[0,1,0.1,1e+21,1e-7,5e-324,333333333.3333333]"),
        ([2**53 - 1, -(2**53) + 1], "[9007199254740991,-9007199254740991]"),
    ],
)
def test_the_bytes_are_those_of_rfc_8785(value, text):
    """Keys by UTF-16 code units, the escapes and figures of its sections 3.2.2 and 3.2.3: digests rest on every byte."""
    assert canonical_bytes(value) == text.encode()


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
@given(members=st.dictionaries(TEXTS, st.integers(0, 9) | st.lists(TEXTS)))
def test_an_object_of_written_members_has_the_bytes_of_the_whole(members):
    """Whatever its names are, and however they came."""
    written = {name: canonical_bytes(value) for name, value in members.items()}
    assert canonical_object(written) == canonical_bytes(members)


def test_an_object_with_a_name_that_has_no_bytes_is_refused():
    """As where the whole is written at once."""
    with pytest.raises(ValueError, match="not representable as canonical JSON"):
        canonical_object({"\ud800": b"1"})


@settings(max_examples=60, deadline=None)
@given(names=st.lists(TEXTS))
def test_a_set_of_names_has_the_digest_of_its_sorted_list(names):
    """In whatever order they come."""
    assert digest_names(reversed(names)) == digest_json(sorted(names))


def test_a_set_of_names_with_a_lone_surrogate_is_refused():
    """It has no bytes."""
    with pytest.raises(ValueError, match="surrogates"):
        digest_names(["\ud800"])
