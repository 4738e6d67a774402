"""The wanted members of a JSON text are read of whatever length and cut, and what is no JSON is refused by its place."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cells.imports import skim as skimming
from cells.imports.skim import EACH, skim, skim_elements

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def cut(data, size):
    """The bytes in pieces of so many."""
    return (data[start : start + size] for start in range(0, len(data), size))


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.text(max_size=3).filter(lambda name: name != EACH), JSON, max_size=5),
    st.integers(1, 30),
    st.booleans(),
    st.booleans(),
)
def test_what_is_wanted_is_read_and_the_rest_is_stepped_over(value, size, indent, ascii_only):
    """However the text is cut into pieces, indented and escaped."""
    data = json.dumps(value, indent=2 if indent else None, ensure_ascii=ascii_only).encode()
    wanted = dict.fromkeys(list(value)[::2])
    assert {key: value[key] for key in wanted} == skim(cut(data, size), wanted)


@settings(max_examples=60, deadline=None)
@given(st.lists(JSON, max_size=6), st.integers(1, 20))
def test_elements_come_one_by_one(values, size):
    """Of the list that is named, whatever stands before and after it."""
    data = json.dumps({"before": values, "these": [{"x": value, "y": 1} for value in values], "after": [[]]}).encode()
    assert [{"x": value} for value in values] == list(skim_elements(cut(data, size), "these", {"x": None}))


def test_wanted_goes_into_objects_and_lists():
    """A `Wanted` within one names members below; `*` stands for every name."""
    data = b'{"a": {"k1": {"v": 1, "w": 2}, "k2": {"v": 3}}, "b": [{"c": 1, "d": 2}, null, 5], "e": 1}'
    wanted = {"a": {EACH: {"v": None}}, "b": {"c": None}}
    assert skim([data], wanted) == {"a": {"k1": {"v": 1}, "k2": {"v": 3}}, "b": [{"c": 1}, None, 5]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1', "ends too early"),
        ('{"skipped": [1, {"b": "x', "ends too early, within a text"),
        ('{"skipped": [1, {"b": 2}', "ends too early, within brackets"),
        ("", "ends too early"),
        ('{"a": 1} {}', "something follows"),
        ('{"a": 1, "a": 2}', "'a' is there twice"),
        ('{"a": {"b": 1, "b": 2}}', "'b' is there twice"),
        ('{"skipped": [}]}', "closes another bracket"),
        ("{a: 1}", "key in quotation marks"),
        ('{"a" 1}', "not ':'"),
        ('{"a": 1 "b": 2}', "not ','"),
        ('{"a": tru}', "Expecting value"),
        ("[1, 2", "ends too early"),
        ('{"a": "\xff"}', "utf-8"),
        ('{"skipped": ' + "[" * 2000, "nested deeper than 1000"),
        ('{"a": ' + "[" * 2000 + "]" * 2000 + "}", "nested deeper than 1000"),
        ("[" * 2000, "nested deeper than 100, where something is looked for"),
        ('{"a": ' + "9" * 5000 + "}", "Exceeds the limit"),
    ],
)
def test_what_is_no_json_is_refused_by_its_place(text, said):
    """With the byte where it stops being JSON."""
    with pytest.raises(ValueError, match=r"is not JSON at byte \d+") as caught:
        skim([text.encode("latin-1")], {"a": None})
    assert said in str(caught.value)


def test_what_is_kept_has_a_limit_and_what_is_skipped_has_none(monkeypatch):
    """A value of a gigabyte in the place of a name is refused; in a place that nobody asks for it is no matter."""
    monkeypatch.setattr(skimming, "MOST_KEPT", 1000)
    long = (b'"' + b"x" * 500 for _ in range(1))
    assert skim([b'{"skipped": "', b"x" * 5000, b'", "a": 1}'], {"a": None}) == {"a": 1}
    with pytest.raises(ValueError, match="where only short values are expected"):
        skim([b'{"a": ', *long, b"y" * 600, b'"}'], {"a": None})
    with pytest.raises(ValueError, match="where only short values are expected"):
        skim([json.dumps({"a": [{"x": "y" * 100}] * 20}).encode()], {"a": {"x": None}})


def test_nan_is_read_since_inspect_writes_it():
    """It is what Inspect marks an undecided score with."""
    assert str(skim([b'{"a": NaN}'], {"a": None})["a"]) == "nan"


TRICKY = st.recursive(
    st.text(alphabet='"\\[]{}aé', max_size=12) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(alphabet='"\\]}b', max_size=4), inner, max_size=5)
    ),
    max_leaves=40,
)


@settings(max_examples=150, deadline=None)
@given(TRICKY, st.integers(1, 40), st.integers(1, 40))
def test_stretches_are_stepped_over_like_brackets_one_by_one(value, size, stretch):
    """Whatever quotation marks, backslashes and brackets are in the strings, and wherever a stretch or a piece ends."""
    data = json.dumps({"skipped": [value], "a": 1}, ensure_ascii=False).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(skimming, "_FIRST_STRETCH", stretch)
        patch.setattr(skimming, "_LAST_STRETCH", stretch)
        assert skim(cut(data, size), {"a": None}) == {"a": 1}


@pytest.mark.parametrize("stretch", [1, 3, 40, 4096])
@pytest.mark.parametrize("inner", ['{"\\"\\]"\\"": 1}, "\\\\]]": "["', "\\", '[\\"]", 1]', '"a" \\\\'])
def test_a_backslash_outside_a_string_is_refused_however_the_stretches_fall(inner, stretch):
    """No JSON has one, whatever brackets there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(skimming, "_FIRST_STRETCH", stretch)
        patch.setattr(skimming, "_LAST_STRETCH", stretch)
        with pytest.raises(ValueError, match="is not JSON"):
            skim([b'{"skipped": [' + inner.encode() + b'], "a": 1}'], {"a": None})


@settings(max_examples=150, deadline=None)
@given(TRICKY, st.integers(0, 200), st.sampled_from("]}[{"), st.integers(1, 40))
def test_a_bracket_too_many_is_found_in_what_is_stepped_over(value, at, mark, stretch):
    """In a string it is no matter; outside one it is refused, however the stretches fall."""
    inner = json.dumps(value)
    at %= len(inner) + 1
    data = f'{{"skipped": [{inner[:at]}{mark}{inner[at:]}], "a": 1}}'
    stack, inside, ok, skip = [], False, True, False
    for ch in data:
        if skip:
            skip = False
        elif inside:
            skip, inside = ch == "\\", ch != '"'
        elif ch == '"':
            inside = True
        elif ch == "\\":
            ok = False  # the mark took a backslash's place in a string
        elif ch in "[{":
            stack.append({"[": "]", "{": "}"}[ch])
        elif ch in "]}":
            ok = ok and bool(stack) and stack.pop() == ch
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(skimming, "_FIRST_STRETCH", stretch)
        patch.setattr(skimming, "_LAST_STRETCH", stretch)
        if ok and not stack:
            assert skim([data.encode()], {"a": None}) == {"a": 1}
        else:
            with pytest.raises(ValueError, match="is not JSON"):
                skim([data.encode()], {"a": None})
