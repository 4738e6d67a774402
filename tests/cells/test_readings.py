"""The scoreboard of small records whose right answer is known."""

import json
from dataclasses import replace

import pytest

from cells.readings import score, scoreboard_to_json
from harness.analysis import Analysis
from harness.errors import IntegrityError
from tests.cells.scoring_cases import key, outcome, table, verdict_of


def analysis_of(alternative="two-sided", **more):
    """One contrast of A over B."""
    return Analysis(contrasts=[{"name": "C1", "treatment": "A", "control": "B", "alternative": alternative, **more}])


def board_of(declared, outcomes, analysis=None, **more):
    """The scoreboard under one contrast, or under `analysis`."""
    return score(declared, outcomes, analysis or analysis_of(), head="h" * 64, registration_id="r1", **more)


def contrast_of(declared, outcomes, analysis=None):
    """The one contrast of a scoreboard."""
    (reading,) = board_of(declared, outcomes, analysis).contrasts
    return reading


CASE_1 = [
    *[("PASS", "PASS")] * 4,
    *[("PASS", "FAIL")] * 9,
    *[("FAIL", "PASS")] * 2,
    ("FAIL", "FAIL"),
    *[("PASS", f"VOID({cause})") for cause in ("fence", "workspace", "model-server", "referee")],
]


def test_case_1_voids_are_no_failures():
    """Four pairs without a verdict stay out of the p-value, keep A's passes out of its common rate, and are counted."""
    board = board_of(*table(CASE_1))
    (reading,) = board.contrasts
    pairs = reading.pairs
    assert (pairs.declared, pairs.judged, pairs.without_verdict, pairs.halted) == (20, 16, 4, 0)
    assert (pairs.treatment_passed, pairs.control_passed) == (13, 6)
    assert reading.p_value == pytest.approx(0.065430, abs=5e-7)
    assert (reading.p_low, reading.p_high) == (reading.p_value, reading.p_value)
    assert reading.p_holm == reading.p_value
    assert reading.supported is False
    assert board.status == "final"
    arm_a, arm_b = board.arms
    assert (arm_a.void, arm_b.void, arm_b.judged, arm_b.passed) == (0, 4, 16, 6)
    assert arm_b.pass_rate == 6 / 16
    voids = {cause: count for cause, count in arm_b.voids.items() if count}
    assert voids == {"fence": 1, "model-server": 1, "referee": 1, "workspace": 1}
    assert board.sentences == ("Every void cell is a control cell: 4 of 4 are B.",)


def test_a_void_has_no_number():
    """The condition of a VOID cell has no rate, no cost and no bound, though its try was charged."""
    board = board_of(*table(CASE_1))
    census = next(item for item in board.conditions if item.void)
    cost = next(item for item in board.costs if item.group == census.group)
    assert (census.pass_rate, census.rate_low, census.rate_high) == (None, None, None)
    assert [cost.n, cost.tokens.value, cost.calls.value, cost.wall_s.value, cost.usd.value] == [
        0,
        None,
        None,
        None,
        None,
    ]


def test_case_2_a_rate_travels_with_its_counts():
    """One pass and two halts are a rate of 1 over 1 of 3, between a third and 1."""
    declared = [key(1, "A", replicate) for replicate in (1, 2, 3)]
    words = ("PASS", "HALT(tokens)", "HALT(wall)")
    outcomes = [outcome(cell, word) for cell, word in zip(declared, words, strict=True)]
    (census,) = board_of(declared, outcomes, Analysis()).conditions
    assert census.beside == "1 of 3 judged, 2 halted, 0 void"
    assert (census.pass_rate, census.rate_low, census.rate_high) == (1, 1 / 3, 1)
    assert census.halts == {"tokens": 1, "usd": 0, "calls": 0, "wall": 1, "output": 0}


def test_case_2_halts_are_no_failures():
    """Six passes against six halts are no discordant pair, and the bounds say what the halts could make of it."""
    board = board_of(*table([("PASS", "HALT(tokens)")] * 6))
    (reading,) = board.contrasts
    assert (reading.pairs.treatment_only, reading.pairs.control_only, reading.pairs.halted) == (0, 0, 6)
    assert reading.p_value == 1
    assert (reading.p_low, reading.p_high) == (0.03125, 1)
    assert (reading.share, reading.odds_ratio) == (None, None)
    assert reading.unjudged == {"HALT(tokens)": (0, 6)}
    assert board.sentences == ("Every halted cell is a control cell: 6 of 6 are B.",)


@pytest.mark.parametrize(
    ("alternative", "low", "high"), [("greater", 1 / 8, 15 / 16), ("less", 5 / 16, 1), ("two-sided", 1 / 4, 1)]
)
def test_bounds_take_every_reading_of_the_halts(alternative, low, high):
    """Each halted cell is read as a pass and as a failure by itself, also where both sides are halted."""
    rows = [("PASS", "FAIL"), ("HALT", "HALT"), ("HALT", "FAIL"), ("HALT", "PASS"), ("FAIL", "HALT")]
    reading = contrast_of(*table(rows), analysis_of(alternative))
    ways = [(1 + b, c) for b in range(3) for c in range(4) if (b, c) != (2, 3)]
    from cells.stats import mcnemar_exact

    expected = [mcnemar_exact(b01, b10, alternative=alternative).p_value for b01, b10 in ways]
    assert (reading.p_low, reading.p_high) == (min(expected), max(expected))
    assert (reading.p_low, reading.p_high) == (low, high)


def test_case_3_five_of_five():
    """Five wins of five are 0.0625 two-sided, which is also the best that five pairs can give."""
    reading = contrast_of(*table([("PASS", "FAIL")] * 5))
    assert reading.p_value == 0.0625
    assert reading.best_attainable_p == 0.0625
    assert (reading.share, reading.odds_ratio) == (1, 11)


def test_case_3_a_missing_cell_withholds_the_verdict():
    """While a cell is missing there are counts, its name, and no p-value anywhere."""
    declared, outcomes = table([("PASS", "FAIL")] * 5)
    board = board_of(declared, outcomes[:-1])
    (reading,) = board.contrasts
    assert board.status == "incomplete"
    assert board.missing == ("made|5|B|none|m|1",)
    assert board.problems == ("missing cell made|5|B|none|m|1: the record has no outcome of it",)
    assert reading.status == "incomplete"
    assert reading.pairs.treatment_only == 4
    assert {reading.p_value, reading.p_holm, reading.p_low, reading.p_high, reading.share, reading.supported} == {None}
    assert board.arms[1].classes["MISSING"] == 1


def test_case_3_the_same_lines_twice_change_nothing():
    """Every line twice is every cell once."""
    declared, outcomes = table([("PASS", "FAIL")] * 5)
    board = board_of(declared, outcomes * 2)
    assert board.contrasts[0].p_value == 0.0625
    assert board.repeated == 10
    assert board.contrasts == board_of(declared, outcomes).contrasts


@pytest.mark.parametrize(("word", "attempt"), [("PASS", 1), ("PASS", 2), ("FAIL", 2), ("VOID", 2)])
def test_case_3_two_verdicts_of_one_cell_are_refused(word, attempt):
    """A cell that was tried again after it was done with is named, counts as none, and refuses every verdict."""
    declared, outcomes = table([("PASS", "FAIL")] * 5)
    board = board_of(declared, [*outcomes, outcome(declared[-1], word, attempt=attempt)])
    assert board.status == "refused"
    assert board.doubled == ("made|5|B|none|m|1",)
    assert "doubled cell made|5|B|none|m|1" in board.problems[0]
    assert board.arms[1].classes["DOUBLED"] == 1
    assert board.contrasts[0].p_value is None


def test_case_3_an_undeclared_cell_is_refused():
    """A cell that the registration does not have is named, counted nowhere, and refuses every verdict."""
    declared, outcomes = table([("PASS", "FAIL")] * 5)
    board = board_of(declared, [*outcomes, outcome(key(6, "A"), "PASS")])
    assert board.status == "refused"
    assert board.undeclared == ("made|6|A|none|m|1",)
    assert sum(census.planned for census in board.arms) == 10
    assert board.contrasts[0].p_value is None


def test_case_3_a_void_may_be_tried_again():
    """VOID, VOID, FAIL is one FAIL, with three tries shown."""
    declared, outcomes = table([("PASS", "FAIL")] * 5)
    last = declared[-1]
    tries = [outcome(last, "FAIL", attempt=3), outcome(last, "VOID(fence)"), outcome(last, "VOID", attempt=2)]
    board = board_of(declared, [*outcomes[:-1], *tries])
    assert board.contrasts[0].p_value == 0.0625
    assert [(item.cell, item.classes) for item in board.tries] == [
        ("made|5|B|none|m|1", ("VOID(fence)", "VOID(workspace)", "FAIL"))
    ]


def test_unlike_task_sets_are_refused():
    """An arm that has a task the other has not makes the contrast no comparison; the odd cell is named."""
    declared, outcomes = table([("PASS", "FAIL")] * 5)
    board = board_of(declared[:-1], outcomes[:-1])
    assert board.status == "refused"
    assert "C1: unlike task sets: 1 declared on one side only, the first is made|m|5|1 of arm 'A'" in board.problems[0]
    assert board.contrasts[0].p_value is None
    other = board_of(declared, outcomes, analysis_of(model="other"))
    assert other.problems == ("C1: no cell of 'A' and 'B' is declared",)


def test_a_cell_declared_twice_is_an_error():
    """A registration can't hold a cell twice."""
    declared, outcomes = table([("PASS", "FAIL")])
    with pytest.raises(IntegrityError, match=r"made\|1\|A\|none\|m\|1 is declared twice"):
        board_of([*declared, declared[0]], outcomes)


def test_pairs_are_of_units_and_never_of_bare_tasks():
    """The same task under two models and two benchmarks is four units, each paired with its own."""
    declared, outcomes = [], []
    for benchmark, model in (("b1", "m1"), ("b1", "m2"), ("b2", "m1"), ("b2", "m2")):
        for arm in ("A", "B"):
            declared.append(key("t", arm, benchmark=benchmark, model=model))
            passes = arm == "A" if model == "m1" else arm == "B"
            outcomes.append(outcome(declared[-1], "PASS" if passes else "FAIL"))
    pairs = contrast_of(declared, outcomes).pairs
    assert (pairs.treatment_only, pairs.control_only) == (2, 2)
    only = contrast_of(declared, outcomes, analysis_of(model="m1")).pairs
    assert (only.declared, only.treatment_only, only.control_only) == (2, 2, 0)


def test_replicates_pair_by_number():
    """Replicate 2 is compared with replicate 2, and the reading says that units repeat."""
    declared = [key(1, arm, replicate) for arm in ("A", "B") for replicate in (1, 2)]
    words = ("PASS", "FAIL", "FAIL", "PASS")
    reading = contrast_of(declared, [outcome(cell, word) for cell, word in zip(declared, words, strict=True)])
    assert (reading.pairs.treatment_only, reading.pairs.control_only) == (1, 1)
    assert reading.replicated


def test_every_class_is_counted_at_zero_too():
    """The classes add up to what was planned, the empty ones are there, and a referee's finer one stands last."""
    words = ("PASS", "HALT(usd)", "FAILED_BOOT", "REFUSED", "UNSCORABLE", "SCREENED", "VOID(referee)", "FAIL")
    declared = [key(task, "A") for task in range(len(words) + 1)]
    outcomes = [outcome(cell, word) for cell, word in zip(declared, words, strict=False)]
    (census,) = board_of(declared, outcomes, Analysis()).arms
    assert list(census.classes) == [
        *("PASS", "FAIL", "NO_BUILD", "INTERFACE_MISS", "TIMEOUT", "MEMORY", "CRASH", "UNSCORABLE"),
        *("HALT", "FAILED_BOOT", "VOID", "REFUSED", "MISSING", "DOUBLED", "SCREENED"),
    ]
    assert sum(census.classes.values()) == census.planned == 9
    assert census.classes["CRASH"] == 0
    assert census.classes["SCREENED"] == 1
    assert census.beside == "3 of 9 judged, 1 halted, 1 void, 1 unscorable, 3 otherwise unjudged"


def test_case_5_the_family():
    """A contrast without a discordant pair stays in the family with p = 1; one added after the data is apart."""
    rows = [("PASS", "FAIL", "PASS")] * 6
    analysis = Analysis(
        contrasts=[
            {"name": "C1", "treatment": "A", "control": "B"},
            {"name": "C2", "treatment": "A", "control": "C"},
        ]
    )
    late = Analysis(contrasts=[{"name": "late", "treatment": "C", "control": "B"}]).contrasts
    board = board_of(*table(rows, arms=("A", "B", "C")), analysis, added=late)
    first, second = board.contrasts
    assert (first.p_value, first.p_holm, first.supported) == (1 / 64, 2 / 64, True)
    assert (second.p_value, second.p_holm, second.supported) == (1, 1, False)
    (apart,) = board.added
    assert (apart.p_value, apart.p_holm, apart.supported, apart.registered) == (1 / 64, None, None, False)


def test_the_json_is_json():
    """The scoreboard is JSON without NaN, undefined figures are null, and what is quoted is in it."""
    data = scoreboard_to_json(board_of(*table(CASE_1)))
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again == data
    assert data["arms"][1]["beside"] == "16 of 20 judged, 0 halted, 4 void"
    assert data["contrasts"][0]["pairs"]["judged"] == 16
    assert data["costs"][-1]["usd"]["value"] is None


def test_scoring_is_a_function_of_the_set():
    """The order of the record's lines changes nothing."""
    declared, outcomes = table(CASE_1)
    assert board_of(declared, outcomes[::-1]) == board_of(declared, outcomes)


def test_what_a_referee_could_not_decide_is_counted_by_its_standing() -> None:
    """A class of the referee's own that decides nothing stands with UNSCORABLE, in the remark and beside the rate."""
    ran_out = replace(verdict_of("UNSCORABLE"), reading="RESOURCE_OUT")
    tries = [
        replace(outcome(key(1, "A"), "UNSCORABLE"), verdict=ran_out),
        outcome(key(2, "A"), "UNSCORABLE"),
        outcome(key(3, "A"), "PASS"),
        *(outcome(key(task, "B"), "PASS") for task in (1, 2, 3)),
    ]
    board = score([one.cell for one in tries], tries, Analysis(), head="h", registration_id="r")
    assert board.sentences == (
        "Unscorable cells are unequal between the arms (extras none, model m): A 2 of 3, B 0 of 3.",
    )
    assert board.arms[0].beside == "1 of 3 judged, 0 halted, 0 void, 2 unscorable"
    assert (board.arms[0].unscorable, board.arms[0].classes["RESOURCE_OUT"]) == (2, 1)
