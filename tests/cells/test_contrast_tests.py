"""The registered tests through `score()`: their figures, and how far every reading of unjudged cells moves them."""

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cells.readings import score
from cells.score_view import plain_scoreboard
from cells.stats import ClusteredPair, fisher_exact, mcnemar_clustered, mcnemar_exact
from harness.analysis import Analysis
from tests.cells.scoring_cases import key, outcome, table

WORDS = st.sampled_from(["PASS", "FAIL", "HALT(tokens)", "UNSCORABLE", "VOID(fence)"])
ROWS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5)
DIRECTIONS = st.sampled_from(["greater", "less", "two-sided"])
OPEN = {
    "halted": {"HALT(tokens)"},
    "unscorable": {"UNSCORABLE"},
    "unjudged": {"HALT(tokens)", "UNSCORABLE", "VOID(fence)"},
}


def reading_of(rows, **more):
    """The one contrast of these rows."""
    return board_of(rows, **more).contrasts[0]


def board_of(rows, **more):
    """The scoreboard of one contrast of A over B."""
    analysis = Analysis(contrasts=[{"name": "C1", "treatment": "A", "control": "B", **more}])
    return score(*table(rows), analysis, head="h", registration_id="r")


def all_readings(rows, over):
    """Every way to read the opened sides, each by itself, over the pairs that are then judged; by brute force."""
    opened = [row for row in rows if set(row) <= {"PASS", "FAIL"} | OPEN[over]]
    sides = [[word] if word in {"PASS", "FAIL"} else ["PASS", "FAIL"] for row in opened for word in row]
    for words in product(*sides):
        yield list(zip(words[::2], words[1::2], strict=True))


def counts(rows):
    """The discordant counts of rows that are all judged."""
    return rows.count(("PASS", "FAIL")), rows.count(("FAIL", "PASS"))


@settings(deadline=None, max_examples=60)
@given(ROWS, DIRECTIONS)
def test_bounds_are_the_extremes_of_every_reading(rows, alternative):
    """Of p and of the risk difference, over the halts and over the unscorable cells; sign and verdict over all three."""
    reading = reading_of(rows, alternative=alternative)
    for bound in reading.bounds:
        readings = list(all_readings(rows, bound.over))
        p_values = [mcnemar_exact(*counts(one), alternative=alternative).p_value for one in readings]
        nets = [counts(one)[0] - counts(one)[1] for one in readings]
        if readings[0]:
            signs = {(net > 0) - (net < 0) for net in nets}
            assert bound.sign_holds is (len(signs) == 1)
        assert bound.verdict_holds is (len({p <= 0.05 for p in p_values}) == 1)
        if bound.over == "unjudged":
            assert (bound.p_low, bound.p_high, bound.effect_low, bound.effect_high) == (None,) * 4
            continue
        assert (bound.p_low, bound.p_high) == (min(p_values), max(p_values))
        if readings[0]:
            assert bound.effect_low == pytest.approx(min(nets) / len(readings[0]))
            assert bound.effect_high == pytest.approx(max(nets) / len(readings[0]))


@settings(deadline=None, max_examples=40)
@given(ROWS, DIRECTIONS)
def test_bounds_of_the_clustered_test_are_too(rows, alternative):
    """Two tasks a cluster: by brute force, for one more win may lower its z."""
    places = {"odd": [f"made|{n}" for n in (1, 3, 5)], "even": [f"made|{n}" for n in (2, 4)]}
    analysis = Analysis(
        contrasts=[
            {"name": "C1", "treatment": "A", "control": "B", "test": "mcnemar-clustered", "cluster": "half"}
            | {"alternative": alternative}
        ],
        groupings=[{"name": "half", "members": places}],
    )
    (reading,) = score(*table(rows), analysis, head="h", registration_id="r").contrasts

    def p_of(numbered):
        clusters = []
        for name, odd in (("odd", 1), ("even", 0)):
            found = [words for n, words in numbered if n % 2 == odd]
            if found:
                clusters.append(ClusteredPair(name=name, n=len(found), b01=counts(found)[0], b10=counts(found)[1]))
        return mcnemar_clustered(clusters, alternative=alternative).p_value if clusters else 1.0

    halted = reading.bounds[0]
    kept = [n for n, row in enumerate(rows, 1) if set(row) <= {"PASS", "FAIL"} | OPEN["halted"]]
    p_values = [p_of(list(zip(kept, one, strict=True))) for one in all_readings(rows, "halted")]
    if kept:
        assert (halted.p_low, halted.p_high) == pytest.approx((min(p_values), max(p_values)))
    judged = [(n, row) for n, row in enumerate(rows, 1) if set(row) <= {"PASS", "FAIL"}]
    assert reading.p_value == pytest.approx(p_of(judged))


def test_clusters_weigh_alike_whatever_their_size():
    """Ten pairs of one task under ten models are one figure: z is 1 over the root of the clusters, not of the pairs."""
    declared = [key("t", arm, model=f"m{n}") for n in range(10) for arm in "AB"] + [key("u", arm) for arm in "AB"]
    outcomes = [outcome(cell, "PASS" if cell.arm == "A" else "FAIL") for cell in declared]
    contrast = {"name": "C1", "treatment": "A", "control": "B"}
    clustered = contrast | {"name": "C2", "test": "mcnemar-clustered", "cluster": "task"}
    board = score(declared, outcomes, Analysis(contrasts=[contrast, clustered]), head="h", registration_id="r")
    exact, by_task = board.contrasts
    assert exact.p_value == 0.5**11
    assert by_task.statistic == pytest.approx(math.sqrt(2))
    assert by_task.p_value == pytest.approx(0.0786496, abs=1e-7)
    assert by_task.best_attainable_p == by_task.p_value
    text = plain_scoreboard(board)
    assert "C2: McNemar with the variance between clusters" in text
    assert "C2: z 1.414 over clusters" in text


def test_too_many_readings_leave_the_bounds_of_p_undefined():
    """Thirteen clusters of one halted pair each have more readings than are gone through; the sign is still told."""
    rows = [("PASS", "HALT(tokens)")] * 13
    (_, unscorable, _) = reading_of(rows, test="mcnemar-clustered", cluster="task").bounds
    halted = reading_of(rows, test="mcnemar-clustered", cluster="task").bounds[0]
    assert (halted.p_low, halted.p_high, halted.verdict_holds) == (None, None, None)
    assert (halted.effect_low, halted.effect_high, halted.sign_holds) == (0, 1, False)
    assert unscorable.open == 0


def test_fisher_takes_the_arms_cells_apart():
    """Arms with different tasks are compared by their cells; the pairs are none, and the p is Fisher's."""
    declared = [key(n, "A") for n in range(4)] + [key(n + 10, "B") for n in range(5)]
    words = ["PASS", "PASS", "PASS", "FAIL", "PASS", "FAIL", "FAIL", "FAIL", "HALT(tokens)"]
    outcomes = [outcome(cell, word) for cell, word in zip(declared, words, strict=True)]
    analysis = Analysis(contrasts=[{"name": "C1", "treatment": "A", "control": "B", "test": "fisher"}])
    board = score(declared, outcomes, analysis, head="h", registration_id="r")
    (reading,) = board.contrasts
    assert board.status == "final"
    assert reading.p_value == fisher_exact(3, 1, 1, 3, alternative="greater").p_value == pytest.approx(17 / 70)
    assert (reading.groups.passed, reading.groups.failed, reading.groups.halted) == ((3, 1), (1, 3), (0, 1))
    assert reading.pairs.declared == 0
    assert reading.p_holm == reading.p_value
    values = [fisher_exact(3, 1, *control, alternative="greater").p_value for control in ((1, 4), (2, 3))]
    assert (reading.p_low, reading.p_high) == (min(values), max(values))
    assert (reading.bounds[0].effect_low, reading.bounds[0].effect_high) == pytest.approx(
        (3 / 4 - 2 / 5, 3 / 4 - 1 / 5)
    )
    text = plain_scoreboard(board)
    assert "C1: arms are not paired; A passes 3 of 4 judged cells, B 1 of 4." in text
    assert "C1: Fisher's exact test, the arms not paired." in text


def test_fisher_without_an_arm_is_refused():
    """An arm without a declared cell is named."""
    declared = [key(n, "A") for n in range(4)]
    analysis = Analysis(contrasts=[{"name": "C1", "treatment": "A", "control": "B", "test": "fisher"}])
    board = score(declared, [outcome(cell, "PASS") for cell in declared], analysis, head="h", registration_id="r")
    assert (board.status, board.problems) == ("refused", ("C1: no cell of 'B' is declared",))
    assert board.contrasts[0].p_value is None


@pytest.mark.parametrize(
    ("b01", "b10", "alternative", "supported"),
    [
        (8, 3, "greater", True),
        (7, 3, "greater", False),
        (3, 8, "greater", False),
        (3, 8, "less", True),
        (3, 8, "two-sided", True),
        (8, 3, "two-sided", True),
        (6, 6, "two-sided", False),
    ],
)
def test_the_count_rule_decides_without_a_p_value(b01, b10, alternative, supported):
    """At a difference of five, the claimed way round; it is in no adjustment, and the other contrast's is unmoved."""
    rows = [("PASS", "FAIL")] * b01 + [("FAIL", "PASS")] * b10
    rule = {"name": "C1", "treatment": "A", "control": "B", "test": "count-rule", "separation": 5}
    other = {"name": "C2", "treatment": "A", "control": "B"}
    analysis = Analysis(contrasts=[rule | {"alternative": alternative}, other])
    counted, tested = score(*table(rows), analysis, head="h", registration_id="r").contrasts
    assert (counted.supported, counted.p_value, counted.p_holm, counted.separation) == (supported, None, None, 5)
    assert counted.best_attainable_p is None
    assert tested.p_holm == tested.p_value
    text = plain_scoreboard(score(*table(rows), analysis, head="h", registration_id="r"))
    assert "C1: count rule, without a p-value." in text
    assert "C1: counts are told apart from a difference of 5 on." in text


def test_the_null_separation_is_of_the_pairs_that_are_discordant():
    """Of 11 pairs a difference of 9 is what chance seldom gives: (10, 1) is apart and (9, 2) is not."""
    found = [
        reading_of(rows, test="count-rule", separation="null", alternative="two-sided")
        for rows in ([("PASS", "FAIL")] * 10 + [("FAIL", "PASS")], [("PASS", "FAIL")] * 9 + [("FAIL", "PASS")] * 2)
    ]
    assert [(item.separation, item.supported) for item in found] == [(9, True), (9, False)]


@pytest.mark.parametrize(
    ("rows", "holds"),
    [
        ([("PASS", "FAIL")] * 8 + [("PASS", "HALT(tokens)")], True),
        ([("PASS", "FAIL")] * 4 + [("PASS", "HALT(tokens)")], False),
        ([("HALT(tokens)", "HALT(tokens)")] * 5, False),  # five apart either way round, and nothing in between
    ],
)
def test_whether_a_count_rules_verdict_holds(rows, holds):
    """However the halts are read."""
    reading = reading_of(rows, test="count-rule", separation=5, alternative="two-sided")
    assert reading.bounds[0].verdict_holds is holds
    assert reading.supported is (len(rows) == 9)


def test_a_verdict_depends_on_the_other_contrasts_halts_too():
    """C1 is at 1/64 whatever is read: alone in second place it is supported, and doubled, before C2, it is not."""
    rows = [("PASS", "FAIL", "HALT(tokens)")] * 6 + [("PASS", "PASS", "HALT(tokens)")]
    analysis = Analysis(
        alpha=0.02,
        contrasts=[
            {"name": "C1", "treatment": "A", "control": "B"},
            {"name": "C2", "treatment": "A", "control": "C"},
        ],
    )
    first, second = score(*table(rows, arms=("A", "B", "C")), analysis, head="h", registration_id="r").contrasts
    assert (first.p_low, first.p_high, first.p_holm, first.supported) == (1 / 64, 1 / 64, 1 / 32, False)
    assert first.bounds[0].verdict_holds is False
    assert (second.p_low, second.p_high, second.bounds[0].verdict_holds) == (1 / 128, 1, False)
