"""The declared cells by condition and by arm: grouped once, and everything of a group adds up."""

from cells.conditions import censuses
from cells.costs import cost
from cells.groups import Group, by_arm, by_condition
from cells.settled import settle
from tests.cells.scoring_cases import key, outcome


def found():
    """Two tasks under two arms; one cell has no outcome, one was halted, one has no price."""
    cells = [key(task, arm, replicate=replicate) for task in (1, 2) for arm in "AB" for replicate in (1, 2)]
    ends = ["PASS", "FAIL", "HALT(usd)", "PASS", "VOID(fence)", "PASS", None, "PASS"]
    prices = [1.0, 2.0, 3.0, None, 1.0, 5.0, None, 7.0]
    played = zip(cells, ends, prices, strict=True)
    outcomes = [outcome(cell, end, usd=usd) for cell, end, usd in played if end is not None]
    return settle(cells, outcomes)


def test_conditions_and_arms_come_in_the_order_of_their_first_cells():
    """As declared."""
    conditions = by_condition(found())
    assert [each.first for each in conditions] == [key(task, arm) for task in (1, 2) for arm in "AB"]
    assert [each.group.label for each in by_arm(conditions)] == ["A|none|m", "B|none|m"]


def test_an_arm_is_the_sum_of_its_conditions():
    """Every cell once: seen, or without an outcome; every figure once, and only of those that cost something."""
    conditions = by_condition(found())
    arms = by_arm(conditions)
    for arm in arms:
        parts = [each for each in conditions if each.group.arm == arm.group.arm]
        assert sum(part.seen.total() for part in parts) == arm.seen.total()
        assert [usd for part in parts for usd in part.figures.usd] == arm.figures.usd
    assert [arm.seen.total() for arm in arms] == [4, 3]
    assert [dict(arm.without) for arm in arms] == [{}, {"MISSING": 1}]
    assert [arm.figures.usd for arm in arms] == [[1.0, 2.0, 5.0], [3.0, None, 7.0]]
    assert [arm.halted for arm in arms] == [0, 1]


def test_a_group_of_cells_that_a_gate_refused_has_a_census_too():
    """After those with a declared cell; it has no other cell."""
    rows = [{"cell": "b|t1|C|none|m|1", "gate": "leak"}]
    *_others, refused = censuses(by_arm(by_condition(found())), rows, tasks=False)
    assert refused.group == Group(benchmark=None, task=None, arm="C", extras="none", model="m")
    assert (refused.planned, refused.buildable, refused.refused, refused.refusals) == (1, 0, 1, {"leak": 1})


def test_one_unknown_figure_makes_a_median_unknown():
    """Of the arm with the unknown price alone."""
    one, other = map(cost, by_arm(by_condition(found())))
    assert (one.usd.value, one.usd.n) == (2.0, 3)
    assert (other.usd.value, other.usd.n, other.usd.unknown) == (None, 3, 1)
    assert (other.usd_exact.value, other.usd_exact.n) == (5.0, 2)
