"""What is charged to an arm, what is sunk, and that both together are what was paid."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cells.charges import charge_of, read_charges, refuse_leaks
from cells.settled import settle
from cells.spent import spent
from harness.errors import IntegrityError
from tests.cells.scoring_cases import end_of, key, outcome

WORDS = ("PASS", "FAIL", "UNSCORABLE", "HALT(usd)", "VOID(fence)", "FAILED_BOOT", "REFUSED")


def charges(rows, arms=("A", "B")):
    """The charges of a table of tries, one row a task and one column an arm: each a list of (word, usd)."""
    declared, outcomes = [], []
    for task, row in enumerate(rows, start=1):
        for arm, tries in zip(arms, row, strict=True):
            declared.append(key(task, arm))
            outcomes += [
                outcome(declared[-1], word, attempt=attempt, usd=usd)
                for attempt, (word, usd) in enumerate(tries, start=1)
            ]
    return read_charges(settle(declared, outcomes))


@pytest.mark.parametrize(
    ("word", "charge"), list(zip(WORDS, ("ARM", "ARM", "ARM", "ARM", "SUNK", "SUNK", "SUNK"), strict=True))
)
def test_the_end_decides_who_is_charged(word, charge):
    """What the subject's own behaviour cost is the arm's, whatever a referee says; what failed around it is nobody's."""
    assert charge_of(end_of(word)) == charge


def test_a_retry_is_sunk_and_its_last_try_is_not():
    """Two VOIDs and a FAIL of one cell: the FAIL is charged, the VOIDs are kept, and the total is what was paid."""
    (arm, _other) = charges([[[("VOID(fence)", 1.0), ("VOID(fence)", 2.0), ("FAIL", 4.0)], [("PASS", 8.0)]]]).arms
    assert (arm.arm.usd.value, arm.sunk.usd.value, arm.total.usd.value) == (4.0, 3.0, 7.0)
    assert (arm.arm_classes, arm.sunk_classes, arm.tries) == ({"FAIL": 1}, {"VOID(fence)": 2}, 3)
    assert (arm.arm.calls.value, arm.sunk.calls.value, arm.total.wall_s.value) == (2, 4, 9.0)


def test_every_share_names_its_denominator():
    """Over declared ends, over declared and halted ones, and over passes: 1 + 2 + 6 dollars are 1.5, 3 and 9."""
    (arm, _other) = charges(
        [
            [[("PASS", 1.0)], [("PASS", 1.0)]],
            [[("FAIL", 2.0)], [("FAIL", 1.0)]],
            [[("HALT(usd)", 6.0)], [("VOID(fence)", 1.0)]],
        ]
    ).arms
    assert [(share["usd"].value, share["usd"].n) for share in (arm.per_declared, arm.per_attempt, arm.per_pass)] == [
        (1.5, 2),
        (3.0, 3),
        (9.0, 1),
    ]
    assert (arm.per_pass["calls"].value, arm.per_pass["wall_s"].value, arm.per_pass["tokens"].value) == (6, 9.0, 300)


def test_without_a_pass_the_cost_of_one_is_undefined():
    """And not nothing, nor infinite."""
    (arm, none) = charges([[[("FAIL", 1.0)], [("VOID(fence)", 1.0)]]]).arms
    assert (arm.per_pass["usd"].value, arm.per_pass["usd"].n) == (None, 0)
    assert [share["usd"].value for share in (none.per_declared, none.per_attempt, none.per_pass)] == [None, None, None]
    assert none.sunk.usd.value == 1.0


def test_what_is_unknown_is_told_in_sums():
    """A void among the prices leaves a lower bound; with nothing known there is no figure."""
    (arm, other) = charges([[[("PASS", 1.0)], [("PASS", None)]], [[("PASS", None)], [("PASS", None)]]]).arms
    total = arm.arm.usd
    assert (total.value, total.known, total.n, total.exact, total.lower_bounds, total.unknown) == (
        None,
        1.0,
        2,
        1,
        0,
        1,
    )
    assert (arm.per_pass["usd"].value, arm.per_pass["usd"].bound) == (0.5, "at_least")
    assert other.per_pass["usd"].value is None
    assert other.per_pass["calls"].bound == "exact"


def test_a_lower_bound_makes_the_sum_one():
    """And so its shares."""
    cell = key(1, "A")
    found = read_charges(settle([cell], [outcome(cell, "PASS", usd=2.0, lower_bound=True)]))
    (arm,) = found.arms
    assert (arm.arm.usd.value, arm.arm.usd.bound, arm.per_attempt["usd"].bound) == (2.0, "at_least", "at_least")


def test_a_try_without_a_call_has_no_price_to_miss():
    """Its seconds count all the same."""
    cell = key(1, "A")
    found = read_charges(settle([cell], [outcome(cell, "VOID(fence)", calls=0, usd=None, wall_s=7.0)]))
    assert (found.total.usd.value, found.total.usd.n, found.total.wall_s.value) == (0.0, 0, 7.0)


def test_cents_add_up():
    """Three times ten cents are thirty, as they are in no sum of floats."""
    (arm, _other) = charges([[[("PASS", 0.1)], []] for _ in range(3)]).arms
    assert arm.arm.usd.value == 0.3
    assert 0.1 + 0.1 + 0.1 != 0.3


def test_what_is_charged_twice_or_to_nobody_is_refused():
    """The invariant can say no: a try too many, one too few, and a figure that is another."""
    tries = [outcome(key(task, "A"), "PASS", usd=float(task)) for task in (1, 2)]
    whole = spent(tries)
    refuse_leaks("A", whole, (spent(tries[:1]), spent(tries[1:])))
    for parts in ((spent(tries[:1]),), (whole, spent(tries[:1])), (spent([tries[0], tries[0]]),)):
        with pytest.raises(IntegrityError, match=r"A: .* of all tries .*: expected each try charged once"):
            refuse_leaks("A", whole, parts)
    dearer = replace(whole, usd=replace(whole.usd, known=4.0))
    with pytest.raises(IntegrityError, match=r"A: usd of all tries \(known 4.0\) are not those of its charges \(3.0\)"):
        refuse_leaks("A", dearer, (whole,))


def test_a_doubled_cell_is_paid_for_all_the_same():
    """It counts as no outcome, and its money is in the sum."""
    cell = key(1, "A")
    found = read_charges(settle([cell], [outcome(cell, "PASS", usd=1.0), outcome(cell, "FAIL", attempt=2, usd=2.0)]))
    assert found.total.usd.value == found.arm.usd.value == 3.0


tries = st.lists(
    st.tuples(st.sampled_from(WORDS), st.none() | st.integers(0, 10**6).map(lambda cents: cents / 100)), max_size=3
)


@given(st.lists(st.tuples(tries, tries), max_size=4))
def test_the_parts_are_the_whole(rows):
    """Over all arms, ARM and SUNK are the meter's total, in money, seconds, calls and counts."""
    found = charges(rows)
    for name in ("tokens", "usd", "wall_s", "calls"):
        total = getattr(found.total, name)
        parts = [getattr(part, name) for arm in found.arms for part in (arm.arm, arm.sunk)]
        assert total.known == pytest.approx(sum(part.known for part in parts))
        assert total.n == sum(part.n for part in parts)
        assert total.unknown == sum(part.unknown for part in parts)
    assert sum(arm.tries for arm in found.arms) == sum(len(side) for row in rows for side in row)
