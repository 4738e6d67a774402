"""Files that somebody wrote: whatever is in them, a command says what is wrong, and no parser's own fault comes out."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from arms.controllers.inversion import corpus_of
from cells.declared.declaration import parse_declaration
from cells.expiry import expired_since
from harness.amendment import parse_amendment
from harness.errors import ProctorError
from harness.experiment import parse_experiment
from harness.rate_cards import read_rate_card
from harness.written import DEEPEST, json_of, toml_of

DEEP = "x = " + "[" * 5000
DOTTED = ".".join(["a"] * 3000) + " = 1"
LONG = "x = " + "9" * 5000


@pytest.mark.parametrize("text", [DEEP, DOTTED, LONG], ids=["deep", "dotted", "long"])
@pytest.mark.parametrize(
    "parse",
    [parse_experiment, parse_declaration, parse_amendment, lambda text: read_rate_card(text.encode(), "card")],
    ids=["experiment", "declaration", "amendment", "card"],
)
def test_toml_that_stops_the_parser_is_refused_in_words(parse: Callable[[str], object], text: str) -> None:
    """Deep brackets, a name of thousands of parts, a number of thousands of digits: one message, none about Python."""
    with pytest.raises(ProctorError, match=r"is not valid TOML: (it is nested too deeply|a whole number has too many)"):
        parse(text)


def test_toml_is_read_as_it_was() -> None:
    """What is well formed is what Python's parser makes of it; what is not keeps the parser's own words."""
    nested = "x = " + "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1)
    assert toml_of(nested) == tomllib.loads(nested)
    assert toml_of("a.b = 1.5", parse_float=str) == {"a": {"b": "1.5"}}
    with pytest.raises(tomllib.TOMLDecodeError, match="byte order mark: save it as UTF-8 without one"):
        toml_of("\ufeffa = 1")
    with pytest.raises(tomllib.TOMLDecodeError, match="at line 2"):
        toml_of("a = 1\nb = oops")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("[" * 200 + "]" * 200, "at most 100 tables and lists"),
        ('{"x": ' + "9" * 5000 + "}", "a whole number has too many digits"),
        ('{"x": 1, "x": 2}', "the key 'x' is there more than once"),
        ("{", "line 1 column 2"),
        (b'"\xe9"', "can't decode byte"),
    ],
)
def test_json_that_cannot_be_used_is_one_error(text: str | bytes, said: str, tmp_path: Path) -> None:
    """The value itself, a corpus of assumptions and a stored scoreboard say so in the same words."""
    with pytest.raises(ValueError, match=said):
        json_of(text)
    with pytest.raises(ProctorError, match=said):
        corpus_of(text.encode() if isinstance(text, str) else text)
    path = tmp_path / "stored.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ProctorError, match=said):
        expired_since(path, {})
    assert json_of('[{"x": 1}, {"x": 2}]') == [{"x": 1}, {"x": 2}]


def test_a_corpus_with_a_long_value_is_refused_in_a_short_message() -> None:
    """A message shows the bad value, and not all of it."""
    words = b'{"schema": "proctor-assumptions/1", "assumptions": [{"name": "sorted", "holds": "%s", "inverted": "x"}]}'
    with pytest.raises(ProctorError, match="expected one line") as caught:
        corpus_of(words % (b"a" * 10_000))
    assert len(str(caught.value)) < 300
