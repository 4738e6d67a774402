"""The written table of kinds and tolerances, row by row."""

from __future__ import annotations

import marshal
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from referees.evalplus_compare import Rule, accepts, rule_for
from referees.evalplus_render import FACT_CHARS, literal, observed, render
from referees.evalplus_values import parse
from tests.referees.test_evalplus_values import values

# A busy machine is no failure.
few = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def equal(expected: Any, got: Any, atol: float = 0.0) -> bool:
    """The rule `equal`."""
    return accepts("equal", "f", [], expected, got, atol=atol)


@pytest.mark.parametrize(
    ("expected", "got", "accepted"),
    [
        (True, 1, True),
        (1, True, True),
        (1, 1.0, True),
        (2.0, 2, True),
        (0.0, -0.0, True),
        ([1, 2], [1.0, 2.0], True),
        ([1], (1,), False),
        ((1,), [1], False),
        ([[1]], [(1,)], False),
        ("ab", ["a", "b"], False),
        ({1}, frozenset({1}), True),
        ({1}, [1], False),
        ({"a": 1.5}, {"a": 1.5}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1}, {"b": 1}, False),
        (None, None, True),
        (None, False, False),
        (0, None, False),
        ("1", 1, False),
        (b"x", "x", False),
        (1 + 0j, 1, True),
    ],
)
def test_kinds(expected: Any, got: Any, accepted: bool) -> None:
    """Kinds that Python's == takes for each other are accepted, no others."""
    assert accepted is equal(expected, got)


@pytest.mark.parametrize(
    ("expected", "got", "atol", "accepted"),
    [
        (1.0, 1.0 + 5e-7, 0.0, True),
        (1.0, 1.0 + 5e-6, 0.0, False),
        (1e9, 1e9 + 50.0, 0.0, True),
        (1e9, 1e9 + 200.0, 0.0, False),
        (1.0, 1.005, 0.01, True),
        (1.0, 1.05, 0.01, False),
        (100, 101, 0.0, False),
        (10**9, 10**9 + 1, 0.0, False),
        (10**9, 10**9 + 1, 1e-4, True),
        (1.5, 2, 0.0, False),
        (1234567891.4, 1234567891, 0.0, False),
        ([1, 0.5], [1, 0.5 + 5e-7], 0.0, True),
        ([10**9, 0.5], [10**9 + 1, 0.5], 0.0, False),
        ({"a": (0.5, "x")}, {"a": (0.5 + 5e-7, "x")}, 0.0, True),
        (0.5, math.nan, 0.0, False),
        (0.5, math.nan, 0.5, False),
        ([0.5], [math.nan], 0.5, False),
        (math.nan, math.nan, 0.0, True),
        (math.nan, 0.5, 0.5, False),
        (math.inf, math.inf, 0.0, True),
        (math.inf, -math.inf, 1.0, False),
        (math.inf, 1e308, 1.0, False),
        (1e308, math.inf, 1.0, False),
        (1, True, 1.0, True),
        (2, True, 5.0, False),
    ],
)
def test_tolerance(expected: Any, got: Any, atol: float, accepted: bool) -> None:
    """A float of the reference's may differ a little, wherever it stands; a whole number only by a declared tolerance."""
    assert accepted is equal(expected, got, atol)


@pytest.mark.parametrize(
    ("rule", "entry", "args", "expected", "got", "accepted"),
    [
        ("set", "Diff", [], [1, 2], [2, 1, 1], True),
        ("set", "Diff", [], (1, 2), {1, 2}, True),
        ("set", "Diff", [], [1, 2], [1], False),
        ("set", "Diff", [], [1], 1, False),
        ("set", "Diff", [], [1], [[1]], False),
        ("set", "Diff", [], [], None, False),
        ("not_none", "check_str", [], True, "anything", True),
        ("not_none", "check_str", [], True, None, False),
        ("not_none", "check_str", [], False, None, True),
        ("not_none", "check_str", [], False, False, True),
        ("not_none", "check_str", [], True, False, False),
        ("alternative", "sum_div", [7], 1, 0, True),
        ("alternative", "sum_div", [7], 1, 1, True),
        ("alternative", "sum_div", [7], 1, 2, False),
        ("alternative", "digit_distance_nums", [1, 23], 5, 4, True),
        ("alternative", "digit_distance_nums", [1, 23], 5, 6, False),
        ("alternative", "surface_Area", [3, 4], 33, 35, True),
        ("alternative", "surface_Area", [3, 4], 33, 34, False),
        ("root", "find_zero", [[1, 2]], -0.5, -0.5, True),
        ("root", "find_zero", [[-4, 0, 1]], 2.0, -2, True),
        ("root", "find_zero", [[1, 2]], -0.5, 0.5, False),
        ("root", "find_zero", [[1, 2]], -0.5, math.nan, False),
        ("root", "find_zero", [[1, 2]], -0.5, "x", False),
        ("root", "find_zero", [[1, 2]], -0.5, True, False),
        ("root", "find_zero", [[1, 2, 3]], -0.5, 1e300, False),
    ],
)
def test_special_rules(rule: Rule, entry: str, args: list[Any], expected: Any, got: Any, accepted: bool) -> None:  # noqa: PLR0917 - a table
    """Each special rule says yes and no."""
    assert accepted is accepts(rule, entry, args, expected, got, atol=1e-4)


def test_names_have_a_meaning_in_their_data_set_only() -> None:
    """A task of one's own is compared by equality, whatever its function is called."""
    assert rule_for("Mbpp/769", "Diff") == "set"
    assert rule_for("Mine/1", "Diff") == "equal"
    assert rule_for("HumanEval/32", "find_zero") == "root"
    assert rule_for("Mine/2", "find_zero") == "equal"
    assert rule_for("Mbpp/164", "are_equivalent") == "equal"


@few
@given(values, values, st.sampled_from(["equal", "set", "not_none", "root"]), st.sampled_from([0.0, 1e-6, 0.5]))
def test_no_value_makes_it_raise(expected: Any, got: Any, rule: Rule, atol: float) -> None:
    """Whatever was returned, the answer is a bool."""
    assert accepts(rule, "f", [[1, 2]], expected, got, atol=atol) in (True, False)


@few
@given(values)
def test_a_value_is_equal_to_itself(value: Any) -> None:
    """The reference's own value is accepted."""
    assert equal(value, parse(marshal.dumps(value, 2), max_nodes=10_000))


@few
@given(values)
def test_a_literal_says_the_value(value: Any) -> None:
    """What a fact shows, read by Python, is the value again."""
    names = {"inf": math.inf, "infj": 1j * math.inf}
    again = eval(literal(value), names)  # noqa: S307 - our own text
    assert equal(value, again) or "inf" in literal(value)


def test_facts_are_literal() -> None:
    """Call and value are written out, the rule's freedom is said, and what is too long is dropped whole."""
    fact = render("equal", "f", [[1, (2,)], "x"], {"b", "a"}, atol=0.0)
    assert fact is not None
    assert (fact.call, fact.expected) == ("f([1, (2,)], 'x')", "{'a', 'b'}")
    fact = render("set", "Diff", [[1]], [2, 1], atol=0.0)
    assert fact is not None
    assert (fact.call, fact.expected) == ("set(Diff([1]))", "{1, 2}")
    fact = render("not_none", "check_str", ["a"], False, atol=0.0)
    assert fact is not None
    assert (fact.call, fact.expected) == ("(check_str('a') is not None)", "False")
    fact = render("equal", "area", [2], 1.5, atol=0.01)
    assert fact is not None
    assert (fact.call, fact.expected) == ("(abs(area(2) - 1.5) <= 0.01)", "True")
    assert render("equal", "f", ["x" * FACT_CHARS], 1, atol=0.0) is None
    assert render("equal", "f", [1], 10**5000, atol=0.0) is None


@pytest.mark.parametrize(
    ("rule", "value", "expected", "atol", "told"),
    [
        ("equal", [1, "\u202e`\n"], [1], 0.0, "[1, '\\u202e`\\n']"),
        ("alternative", 3, 4, 0.0, "3"),
        ("set", [2, 1, 2], [1], 0.0, "{1, 2}"),
        ("set", [[1]], [1], 0.0, None),
        ("set", 7, [1], 0.0, None),
        ("root", 5.0, 1.0, 1e-4, "False"),
        ("equal", 1.7, 1.5, 0.01, "False"),
        ("not_none", False, "x", 0.0, None),
        ("equal", "x" * FACT_CHARS, "y", 0.0, None),
    ],
)
def test_what_came_instead_is_literal(rule: Rule, value: Any, expected: Any, atol: float, told: str | None) -> None:
    """The value of the call as the fact writes it, on one line; what is too long or can't be written is not told."""
    assert observed(rule, value, expected, atol=atol) == told
    assert observed("equal", 10**5000, 1, atol=0.0) is None


def test_a_root_fact_can_be_run() -> None:
    """The fact of `HumanEval/32` is an expression that holds for a right answer and not for a wrong one."""
    fact = render("root", "find_zero", [[1, 2]], -0.5, atol=1e-4)
    assert fact is not None
    assert fact.expected == "True"
    assert eval(fact.call, {"find_zero": lambda _: -0.5}) is True  # noqa: S307 - our own text
    assert eval(fact.call, {"find_zero": lambda _: 0.5}) is False  # noqa: S307 - our own text
