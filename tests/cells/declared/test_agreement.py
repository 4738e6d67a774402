"""Whether readings agree: what is undefined is counted as undefined, and equal readings are compared once."""

from __future__ import annotations

from itertools import combinations

import pytest

from cells.declared import agreement
from cells.declared.agreement import accords
from cells.declared.holding import findings
from cells.readings import score
from harness.analysis import Analysis
from tests.cells.scoring_cases import key, outcome

RATIO = {"name": "premium", "quantity": "usd", "treatment": "A", "control": "B", "alternative": "greater"}
CONTRAST = {"name": "C1", "treatment": "A", "control": "B"}


def costs(*ratios, sd=None):
    """A reading of so many tasks, whose ratios these are; None where the control has no price."""
    declared, outcomes = [], []
    for task, ratio in enumerate(ratios, start=1):
        for arm, usd in (("A", ratio or 1.0), ("B", 1.0)):
            declared.append(key(task, arm))
            word = "VOID(fence)" if ratio is None and arm == "B" else "PASS"
            outcomes.append(outcome(declared[-1], word, usd=usd))
    analysis = Analysis(ratios=[RATIO | ({} if sd is None else {"sd_ln": sd})])
    return score(declared, outcomes, analysis, head="h", registration_id="r")


def pairs(*words):
    """A reading of so many pairs."""
    cells = [(key(task, arm), word) for task, both in enumerate(words, 1) for arm, word in zip("AB", both, strict=True)]
    analysis = Analysis(contrasts=[CONTRAST])
    outcomes = [outcome(cell, word) for cell, word in cells]
    return score([cell for cell, _word in cells], outcomes, analysis, head="h", registration_id="r")


def accord(one, other, comparison):
    """What the two say of each other on a comparison."""
    (found,) = [
        item for item in accords([("A", one), ("neither", other)], magnitude=0) if item.comparison == comparison
    ]
    return found


def test_tasks_that_are_undefined_are_counted():
    """Two of five tasks have a ratio in both: the sign is agreed on over those, and the sentence says so."""
    found = accord(costs(2, 2, 2, 2, 2, sd=0.1), costs(2, 2, None, None, None, sd=0.1), "premium")
    assert found.sentence.startswith(
        "A and neither agree in sign (2 of 5 tasks, 3 undefined in one or both) and not in magnitude on premium: "
        "3 2.0000 against undefined,"
    )
    assert (found.agree, found.undefined) == (("sign",), ())


def test_undefined_in_both_is_said_and_is_no_difference():
    """The three are no disagreement, and no agreement either."""
    found = accord(costs(2, 2, None, None, None), costs(2, 2, None, None, None), "premium")
    assert found.sentence == (
        "A and neither agree in sign (2 of 5 tasks, 3 undefined in one or both) and in magnitude (2 of 5 tasks, 3 "
        "undefined in one or both) on premium; they agree in significance."
    )
    assert found.whole


def test_a_task_that_is_absent_is_no_undefined_one():
    """A reading of fewer tasks."""
    found = accord(costs(2, 2, None), costs(2, 2), "premium")
    assert "agree in sign (2 of 3 tasks, 1 absent in one or both)" in found.sentence


@pytest.mark.parametrize("other", [(None, None), (2, 2)])
def test_where_nothing_is_defined_nothing_is_agreed_on(other):
    """Neither in sign, nor in significance, nor in which tasks clear the floor; and it is told among what differs."""
    found = accord(costs(None, None, sd=0.1), costs(*other, sd=0.1), "premium")
    assert "sign" in found.undefined
    assert "significance" in found.undefined
    assert found.agree == ()
    assert not found.whole
    assert "sign is undefined: 0 of 2 tasks, 2 undefined in one or both" in found.sentence


def test_a_contrast_without_a_judged_pair_went_no_way():
    """Counts of 0 that nobody counted are not those of pairs that were judged alike."""
    nothing, alike = pairs(("VOID(fence)", "PASS")), pairs(("PASS", "PASS"))
    found = accord(nothing, alike, "C1")
    assert found.undefined[:2] == ("sign", "magnitude")
    assert "sign is undefined: undefined against 0 and 0" in found.sentence
    assert accord(alike, alike, "C1").undefined == ()
    turned = accord(pairs(("PASS", "FAIL")), pairs(("FAIL", "PASS")), "C1")
    assert turned.differ[:2] == ("sign", "magnitude")


def test_readings_that_say_the_same_are_compared_once(monkeypatch):
    """Of eighty readings of two kinds: three comparisons of each kind of side, and every pair its own sentence."""
    asked = []

    def counted(one, other, magnitude):
        asked.append(one)
        return findings(one, other, magnitude)

    monkeypatch.setattr(agreement, "findings", counted)
    boards = [(f"r{number}", costs(2, 3) if number % 2 else costs(3, 2)) for number in range(80)]
    found = accords(boards, magnitude=0)
    assert len(found) == 2 * len(list(combinations(boards, 2)))
    assert len(asked) == 4 + 1  # (a, a), (a, b), (b, b), (b, a) of the ratio; the classes are alike in all
    assert len({accord.sentence for accord in found}) == len(found)
