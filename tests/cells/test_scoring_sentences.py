"""Small records that broke other harnesses: what `score()` says of them and prints, and what it never says."""

import json
import math
import re
from dataclasses import replace

import pytest

from cells.families import adjust
from cells.plan import Progress, remaining
from cells.readings import score, scoreboard_to_json
from cells.score_view import plain_scoreboard
from cells.stats import holm, mcnemar_exact
from harness.analysis import Analysis
from harness.outcome import outcome_to_json
from harness.registration import Registration
from tests.cells.scoring_cases import key, outcome, table
from tests.cells.test_readings import CASE_1, analysis_of, board_of, contrast_of


def pairs_of(both=0, b01=0, b10=0, neither=0):
    """Declared cells and outcomes of so many pairs of each kind."""
    words = {("PASS", "PASS"): both, ("PASS", "FAIL"): b01, ("FAIL", "PASS"): b10, ("FAIL", "FAIL"): neither}
    return table([pair for pair, times in words.items() for _ in range(times)])


def registration_of(declared):
    """A registration of these cells, as far as a plan needs one."""
    experiment = {"replicates": 1, "retries": {"void": 1}}
    return Registration(
        name="made",
        question="?",
        experiment=experiment,
        pins={},
        cells=tuple(declared),
        refused=(),
        outlook={},
        frozen_at="2026-12-01T00:00:00Z",
        source=None,
    )


def test_case_1_in_print():
    """Both rates are over the 16 common pairs, the others are counted in words, and the wrong p-value is nowhere."""
    text = plain_scoreboard(board_of(*table(CASE_1)))
    assert "C1: on 16 common pairs A passes 13, B 6;" in text
    assert "C1: 4 of 20 pairs without a verdict." in text
    assert re.search(r"^C1 .* 9 +2 +0\.06543 +0\.06543$", text, re.MULTILINE)
    assert mcnemar_exact(13, 2, alternative="two-sided").p_value == pytest.approx(0.007385, abs=5e-7)
    assert "0.007385" not in text
    assert "0.007385" not in json.dumps(scoreboard_to_json(board_of(*table(CASE_1))))


def test_case_1_a_resume_plays_exactly_the_voids_again():
    """What remains of the plan are the four VOID cells, in its order; after a verdict each, nothing does."""
    declared, outcomes = table(CASE_1)
    progress = Progress()
    for item in outcomes:
        progress.add("cell.ended", outcome_to_json(item))
    left = remaining(registration_of(declared), progress)
    assert list(left) == [key(task, "B") for task in (17, 18, 19, 20)]
    for cell in left:
        progress.add("cell.ended", outcome_to_json(outcome(cell, "FAIL", attempt=progress.next_attempt(cell))))
    assert list(remaining(registration_of(declared), progress)) == []


def test_case_1_no_void_has_a_number():
    """In the JSON the condition of a VOID has null for each rate and each median, though the try was charged."""
    data = scoreboard_to_json(board_of(*table(CASE_1)))
    void = [row for row in data["conditions"] if row["void"]]
    assert [row["group"]["task"] for row in void] == ["17", "18", "19", "20"]
    assert {row[name] for row in void for name in ("pass_rate", "rate_low", "rate_high")} == {None}
    costs = [row for row in data["costs"] if row["group"] in [item["group"] for item in void]]
    assert {row[name]["value"] for row in costs for name in ("tokens", "calls", "wall_s", "usd")} == {None}


def test_case_2_a_mean_is_never_printed_alone():
    """Wherever the rate of one pass and two halts is printed, its counts are in the same line."""
    declared = [key(1, "A", replicate) for replicate in (1, 2, 3)]
    words = ("PASS", "HALT(tokens)", "HALT(wall)")
    outcomes = [outcome(cell, word) for cell, word in zip(declared, words, strict=True)]
    text = plain_scoreboard(board_of(declared, outcomes, Analysis()))
    rates = [line for line in text.splitlines() if "1.000" in line]
    assert rates
    assert all("1 of 3 judged, 2 halted" in line for line in rates)
    assert "0.333" in text


def test_case_2_halts_in_print():
    """Six passes against six halts: p 1, six halted pairs, bounds of 0.03125 and 1, and the halts are all one arm's."""
    board = board_of(*table([("PASS", "HALT(tokens)")] * 6))
    (reading,) = board.contrasts
    assert (reading.pairs.treatment_only, reading.pairs.control_only, reading.p_value) == (0, 0, 1)
    text = plain_scoreboard(board)
    assert "C1: 6 of 6 pairs halted; with each halt read as a pass or as a failure, p is 0.03125 at least" in text
    assert "and 1 at most" in text
    assert "C1: HALT(tokens): A 0, B 6." in text
    assert len(board.sentences) == 1
    assert board.sentences[0] in text
    halted = reading.bounds[0]
    assert (halted.over, halted.open, halted.effect_low, halted.effect_high) == ("halted", 6, 0, 1)
    assert (halted.sign_holds, halted.verdict_holds) == (False, False)
    assert "C1: the sign depends on halted cells (6): difference 0.000 to 1.000; the verdict depends on them." in text


def test_case_3_the_three_tries_in_print():
    """VOID, VOID, FAIL is one FAIL, and the tries stand in a line."""
    declared, outcomes = table([("PASS", "FAIL")] * 5)
    tries = [outcome(declared[-1], word, attempt=at) for at, word in enumerate(("VOID(fence)", "VOID", "FAIL"), 1)]
    text = plain_scoreboard(board_of(declared, [*outcomes[:-1], *tries]))
    assert "made|5|B|none|m|1  VOID(fence), VOID(workspace), FAIL" in text
    assert re.search(r"^C1 .* 5 +0 +0\.0625 +0\.0625$", text, re.MULTILINE)


@pytest.mark.parametrize("word", ["missing", "doubled", "undeclared"])
def test_case_3_what_is_refused_is_named_in_print_and_has_no_p(word):
    """A missing, a doubled and an undeclared cell are named; the verdict and both p-values are withheld."""
    declared, outcomes = table([("PASS", "FAIL")] * 5)
    outcomes = {
        "missing": outcomes[:-1],
        "doubled": [*outcomes, outcome(declared[-1], "PASS")],
        "undeclared": [*outcomes, outcome(key(6, "A"), "PASS")],
    }[word]
    text = plain_scoreboard(board_of(declared, outcomes))
    named = "made|6|A|none|m|1" if word == "undeclared" else "made|5|B|none|m|1"
    assert f"- {word} cell {named}" in text
    assert "0.0625" not in "".join(line for line in text.splitlines() if line.startswith("C1  A"))
    assert re.search(r"^C1 .* withheld +\d +\d +withheld +withheld$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("b01", "b10", "p"),
    [(0, 0, 1), (3, 3, 1), (4, 3, 1), (5, 0, 0.0625), (9, 2, 0.065430), (10, 2, 0.038574)],
)
def test_case_4_two_sided(b01, b10, p):
    """Exact McNemar through the scoreboard, beside pairs that agree."""
    reading = contrast_of(*pairs_of(both=2, b01=b01, b10=b10, neither=1))
    assert reading.p_value == pytest.approx(p, abs=5e-7)
    assert reading.pairs.judged == b01 + b10 + 3


@pytest.mark.parametrize(("alternative", "p"), [("greater", 0.032715), ("less", 0.994141)])
def test_case_4_one_sided(alternative, p):
    """(9, 2) in the claimed direction and the other way."""
    assert contrast_of(*pairs_of(b01=9, b10=2), analysis_of(alternative)).p_value == pytest.approx(p, abs=5e-7)


def test_case_4_the_sign_test_counts_its_ties():
    """7 wins, 1 loss, 12 ties: 0.070313 two-sided, n = 8, and the ties stand beside it."""
    prices = [(2.0, 1.0)] * 7 + [(1.0, 2.0)] + [(1.0, 1.0)] * 12
    declared = [key(task, arm) for task in range(1, 21) for arm in "AB"]
    outcomes = [outcome(cell, "PASS", usd=prices[int(cell.task) - 1]["AB".index(cell.arm)]) for cell in declared]
    ratio = {"name": "R", "quantity": "usd", "treatment": "A", "control": "B", "alternative": "two-sided"}
    board = board_of(declared, outcomes, Analysis(ratios=[ratio]))
    (reading,) = board.ratios
    assert (reading.wins, reading.losses, reading.ties) == (7, 1, 12)
    assert reading.p_value == pytest.approx(0.070313, abs=1e-6)
    assert "7 above 1, 1 below, 12 ties" in plain_scoreboard(board)


@pytest.mark.parametrize("count", [2.5, -1, math.nan, [[1, 2, 3]] * 3])
def test_case_4_what_is_no_count_is_refused(count):
    """By its name and value."""
    with pytest.raises(ValueError, match="b01 is"):
        mcnemar_exact(count, 1, alternative="two-sided")


def test_case_4_unlike_task_sets_are_refused_with_the_cause():
    """The odd cell is named in print, and no p-value is there."""
    declared, outcomes = pairs_of(b01=5)
    text = plain_scoreboard(board_of(declared[:-1], outcomes[:-1]))
    assert "unlike task sets: 1 declared on one side only, the first is made|m|5|1 of arm 'A'" in text


def family_of(*p_values):
    """Final readings with these raw p-values, in this order."""
    declared, outcomes = pairs_of(b01=5)
    names = [f"C{at}" for at in range(1, len(p_values) + 1)]
    analysis = Analysis(contrasts=[{"name": name, "treatment": "A", "control": "B"} for name in names])
    board = score(declared, outcomes, analysis, head="h", registration_id="r")
    return [replace(item, p_value=p) for item, p in zip(board.contrasts, p_values, strict=True)]


@pytest.mark.parametrize(("raw", "adjusted"), [((0.01, 0.011), (0.02, 0.02)), ((0.04, 0.01, 0.03), (0.06, 0.03, 0.06))])
def test_case_5_holm_keeps_the_order_of_the_family(raw, adjusted):
    """Adjusted p-values come in the order of the registration, and the verdicts go with them."""
    found = adjust(family_of(*raw), 0.05)
    assert [item.name for item in found] == [f"C{at}" for at in range(1, len(raw) + 1)]
    assert [item.p_holm for item in found] == pytest.approx(adjusted)
    assert [item.supported for item in found] == [p <= 0.05 for p in adjusted]


def test_case_5_a_nan_names_its_contrast_and_an_empty_family_is_refused():
    """Neither is passed over."""
    with pytest.raises(ValueError, match=r"\(C2\) is nan"):
        adjust(family_of(0.01, math.nan), 0.05)
    with pytest.raises(ValueError, match="the family is empty"):
        holm([])


def test_case_5_in_print():
    """A contrast without a discordant pair stays in the family of two with p = 1; a late one is in a table of its own."""
    rows = [("PASS", "FAIL", "PASS")] * 6
    names = {"C1": ("A", "B"), "C2": ("A", "C")}
    analysis = Analysis(contrasts=[{"name": name, "treatment": t, "control": c} for name, (t, c) in names.items()])
    late = Analysis(contrasts=[{"name": "late", "treatment": "C", "control": "B"}]).contrasts
    text = plain_scoreboard(board_of(*table(rows, arms=("A", "B", "C")), analysis, added=late))
    family, _, apart = text.partition("Contrasts added after the registration")
    assert re.search(r"^C1 .* 6 +0 +0\.01562 +0\.03125$", family, re.MULTILINE)
    assert re.search(r"^C2 .* not supported +0 +0 +1 +1$", family, re.MULTILINE)
    assert "Holm over 2" in family
    assert "late" not in family.partition("Contrasts, family")[2]
    assert re.search(r"^late .* outside the family +6 +0 +0\.01562 +undefined$", apart, re.MULTILINE)
