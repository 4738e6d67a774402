"""Every sentence of the instruction."""

import pytest
from solution import slug


def test_letters_become_small():
    assert slug("Hello") == "hello"


def test_digits_stay():
    assert slug("Route66") == "route66"


def test_other_characters_become_one_dash():
    assert slug("a, b -- c_d") == "a-b-c-d"


def test_no_dash_at_the_ends():
    assert slug("  (what?) ") == "what"


def test_letters_of_other_alphabets_go():
    assert slug("na\u00efve caf\u00e9") == "na-ve-caf"


def test_cut_at_forty():
    assert slug("x" * 50) == "x" * 40


def test_cut_at_the_limit():
    assert slug("abcdef", 3) == "abc"


def test_no_dash_after_the_cut():
    assert slug("abc def", 4) == "abc"


def test_nothing_is_untitled():
    assert slug("?!") == "untitled"
    assert slug("", 3) == "untitled"


def test_limit_below_one():
    with pytest.raises(ValueError):
        slug("a", 0)
