"""Medians of cost, ratios of medians, and the sign test over tasks."""

import pytest

from cells.readings import score
from harness.analysis import Analysis
from tests.cells.scoring_cases import key, outcome

RATIO = {"name": "premium", "quantity": "usd", "treatment": "salt-diet", "control": "plain", "alternative": "greater"}

# Prices in US dollars of the cells of a published campaign (SaltBench v3, arXiv:2609.11076, data CC BY 4.0):
# "cap" marks a cost-capped cell, "<" a lower bound, "A" a borrowed cell that reading B leaves out, "F" a failure, None a
# failed boot.
PRICES = {
    ("Crc32", "plain", "none"): "5.36 6.21< 7.64",
    ("Crc32", "salt-diet", "none"): "6.19< 7.21< 7.63",
    ("FreeList", "plain", "none"): "13.02< 23.38 13.01< 13.77A",
    ("FreeList", "salt-diet", "none"): "37.95cap None 37.6cap 35.41F",
    ("LRU", "plain", "none"): "7.75< None 9.73< 9.87 6.68A",
    ("LRU", "salt-diet", "none"): "11.19 None 11.21 14.63",
    ("LZW", "plain", "none"): "8.15 20.95< 13.95",
    ("LZW", "salt-diet", "none"): "31.7 19.18 18.16",
    ("LZW", "plain", "statement"): "10.24 11.39 9.82<",
    ("LZW", "salt-diet", "statement"): "22.53 15.34< 18.54",
    ("Paxos", "plain", "none"): "9.49< 16.78< 20.16 14.2A",
    ("Paxos", "salt-diet", "none"): "37.93cap< None 37.65 23.52",
}


def campaign(*, borrowed):
    """The published cells, with or without the borrowed ones."""
    declared, outcomes = [], []
    for (task, arm, extras), prices in PRICES.items():
        for replicate, text in enumerate(prices.split(), start=1):
            if text.endswith("A") and not borrowed:
                continue
            cell = key(task, arm, replicate, extras=extras)
            declared.append(cell)
            if text == "None":
                outcomes.append(outcome(cell, "FAILED_BOOT", usd=None))
                continue
            usd = float(text.rstrip("<AFcap"))
            word = "HALT(usd)" if "cap" in text else "FAIL" if "F" in text else "PASS"
            outcomes.append(outcome(cell, word, usd=usd, lower_bound="<" in text))
    return declared, outcomes


def read(declared, outcomes, **more):
    """The one ratio of a scoreboard."""
    analysis = Analysis(ratios=[RATIO | more])
    board = score(declared, outcomes, analysis, head="h" * 64, registration_id="r1")
    (reading,) = board.ratios
    return board, reading


@pytest.mark.parametrize(
    ("borrowed", "premiums"),
    [(True, [1.1610, 2.8070, 1.2826, 1.3749, 2.4306]), (False, [1.1610, 2.8879, 1.1521, 1.3749, 2.2437])],
)
def test_the_published_premiums(borrowed, premiums):
    """Both published readings: the premiums, 5 of 5, p 0.03125, and which premiums clear the registered floor."""
    board, reading = read(*campaign(borrowed=borrowed), sd_ln=0.30458)
    assert board.status == "final"
    assert [task.ratio for task in reading.tasks] == pytest.approx(premiums, abs=5e-5)
    assert (reading.wins, reading.losses, reading.ties, reading.undefined) == (5, 0, 0, 0)
    assert reading.p_value == 0.03125
    assert reading.best_attainable_p == 0.03125
    assert [task.resolved for task in reading.tasks] == [False, True, False, False, True]
    assert reading.tasks[0].resolvable == pytest.approx(2.0072, abs=5e-5)
    assert reading.tasks[1].halted_cells == (2, 0)


def test_the_published_census():
    """43 declared, 39 priced; every cost-capped cell is a treatment cell, and a sentence says so."""
    board, _ = read(*campaign(borrowed=True))
    assert board.planned == 43
    assert sum(cost.n for cost in board.arm_costs) == 39
    counts = {name: sum(arm.classes[name] for arm in board.arms) for name in board.arms[0].classes}
    assert {name: count for name, count in counts.items() if count} == {
        "PASS": 35,
        "FAIL": 1,
        "HALT": 3,
        "FAILED_BOOT": 4,
    }
    assert board.sentences == (
        "Every halted cell is a treatment cell: 3 of 3 are salt-diet.",
        "Failed boots are unequal between the arms (extras none, model m): plain 1 of 19, salt-diet 3 of 18.",
        (
            "Prices that are lower bounds are unequal between the arms (extras none, model m): plain 8 of 18, "
            "salt-diet 3 of 15."
        ),
    )


def test_the_published_statement_pair():
    """Under the statement, the one task of this part of the campaign has the published premium."""
    _, reading = read(*campaign(borrowed=True), extras="statement")
    assert [(task.unit, round(task.ratio, 4)) for task in reading.tasks] == [("made|m|LZW", 1.8105)]


def test_lower_bounds_mark_the_median_and_the_ratio():
    """A lower bound on top makes the ratio one, below it makes it an upper bound, on both sides it says nothing."""
    _, reading = read(*campaign(borrowed=True))
    assert [task.bound for task in reading.tasks] == ["unclear", "at_most", "at_most", "at_most", "unclear"]
    declared, outcomes = campaign(borrowed=True)
    _, turned = read(declared, outcomes, treatment="plain", control="salt-diet")
    assert [task.bound for task in turned.tasks] == ["unclear", "at_least", "at_least", "at_least", "unclear"]
    assert reading.tasks[2].treatment.bound == "exact"
    assert reading.tasks[2].control.bound == "at_least"


def test_too_few_cells_give_no_median():
    """Where a side has fewer cells than registered no median is taken, and the task is in no test."""
    declared, outcomes = campaign(borrowed=False)
    thin = {key("LRU", "plain", 1), key("FreeList", "plain", 1), key("Paxos", "plain", 1)}
    declared = [cell for cell in declared if cell not in thin]
    outcomes = [item for item in outcomes if item.cell not in thin]
    _, reading = read(declared, outcomes, min_n=3)
    assert [task.ratio is None for task in reading.tasks] == [False, True, True, False, True]
    assert (reading.wins, reading.undefined, reading.p_value) == (2, 3, 0.25)


def test_an_unknown_price_makes_the_median_unknown():
    """One cell without a price makes the condition's median and the task's ratio undefined, never smaller."""
    declared, outcomes = campaign(borrowed=True)
    outcomes[0] = outcome(declared[0], "PASS", usd=None)
    board, reading = read(declared, outcomes)
    assert board.costs[0].usd.value is None
    assert (board.costs[0].usd.n, board.costs[0].usd.unknown) == (3, 1)
    assert board.costs[0].calls.value == 2
    assert reading.tasks[0].ratio is None
    assert (reading.wins, reading.undefined, reading.p_value) == (4, 1, 0.0625)


def test_unknown_tokens_and_zero_medians():
    """Tokens unknown in one direction are unknown in sum, and a control median of 0 has no ratio."""
    declared = [key(task, arm) for task in (1, 2, 3) for arm in ("salt-diet", "plain")]
    tokens = [None, 100, 100, 0, 50, 100]
    outcomes = [outcome(cell, "PASS", tokens=number) for cell, number in zip(declared, tokens, strict=True)]
    board, reading = read(declared, outcomes, quantity="tokens", alternative="less")
    assert [cost.tokens.value for cost in board.costs] == [None, 100, 100, 0, 50, 100]
    assert [task.ratio for task in reading.tasks] == [None, None, 0.5]
    assert (reading.losses, reading.undefined, reading.p_value) == (1, 2, 0.5)


def test_ties_are_counted_and_in_no_test():
    """Equal medians are ties; with nothing else there is no p-value."""
    declared = [key(task, arm) for task in (1, 2) for arm in ("salt-diet", "plain")]
    outcomes = [outcome(cell, "PASS") for cell in declared]
    for quantity in ("tokens", "usd", "wall_s", "calls"):
        _, reading = read(declared, outcomes, quantity=quantity)
        assert (reading.wins, reading.losses, reading.ties, reading.p_value) == (0, 0, 2, None)


def test_no_verdict_on_cost_while_cells_are_missing():
    """Medians are shown and the sign test is withheld."""
    declared, outcomes = campaign(borrowed=True)
    board, reading = read(declared, outcomes[:-1])
    assert board.status == reading.status == "incomplete"
    assert reading.wins == 5
    assert reading.p_value is None


def test_the_floor_has_a_low_side():
    """A treatment at a quarter of the cost clears the floor as one at four times it does; one in between does not."""
    declared = [key(task, arm) for task in (1, 2, 3) for arm in ("salt-diet", "plain")]
    prices = [1.0, 4.0, 4.0, 1.0, 1.5, 1.0]
    outcomes = [outcome(cell, "PASS", usd=usd) for cell, usd in zip(declared, prices, strict=True)]
    _, reading = read(declared, outcomes, sd_ln=0.30458)
    assert [task.resolvable for task in reading.tasks] == pytest.approx([3.3426] * 3, abs=5e-5)
    assert [task.resolved for task in reading.tasks] == [True, True, False]
