"""Every sentence of the instruction."""

import pytest
from solution import merge


def test_nothing():
    assert merge([]) == []


def test_apart():
    assert merge([(1, 2), (5, 6)]) == [(1, 2), (5, 6)]


def test_any_order():
    assert merge([(5, 6), (1, 2)]) == [(1, 2), (5, 6)]


def test_overlap():
    assert merge([(1, 4), (3, 8)]) == [(1, 8)]


def test_one_inside_another():
    assert merge([(1, 9), (2, 3)]) == [(1, 9)]


def test_touching():
    assert merge([(1, 2), (3, 5)]) == [(1, 5)]


def test_a_gap_of_one_number():
    assert merge([(1, 2), (4, 5)]) == [(1, 2), (4, 5)]


def test_single_numbers():
    assert merge([(3, 3), (2, 2), (1, 1)]) == [(1, 3)]


def test_many_in_one():
    assert merge([(1, 10), (2, 3), (4, 5), (9, 12)]) == [(1, 12)]


def test_backwards():
    with pytest.raises(ValueError):
        merge([(2, 1)])
