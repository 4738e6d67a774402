"""Strata add up to their pool or raise, guards say yes and no, bootstraps and spreads are read as registered."""

import json
import math
from dataclasses import replace

import pytest

from cells.bounds import declared_set, expired_bounds
from cells.contrasts import read_contrast
from cells.guards import read_guards
from cells.readings import score, scoreboard_to_json
from cells.score_view import plain_scoreboard
from cells.settled import settle
from cells.stats import cluster_bootstrap, spread_probability
from cells.stats.bootstrap import Cluster
from cells.strata import check_pooled
from harness.analysis import Analysis
from harness.errors import IntegrityError
from tests.cells.scoring_cases import key, outcome, table

CONTRAST = {"name": "C1", "treatment": "A", "control": "B"}
PARTS = {
    "name": "part",
    "members": {"odd": [f"made|{n}" for n in (1, 3, 5, 7, 9)], "even": [f"made|m|{n}" for n in (2, 4, 6)]},
}
ROWS = [("PASS", "FAIL"), ("FAIL", "PASS"), ("PASS", "PASS"), ("HALT", "FAIL"), ("PASS", "FAIL"), ("VOID", "FAIL")]


def board_of(rows=ROWS, *, guards=(), drop=0, **more):
    """The scoreboard of one contrast with these settings."""
    analysis = Analysis(contrasts=[CONTRAST | more], groupings=[PARTS], guards=list(guards))
    declared, outcomes = table(rows)
    return score(declared, outcomes[: len(outcomes) - drop], analysis, head="h", registration_id="r")


def test_a_grouping_splits_the_pool_and_adds_up():
    """By task under every model and by unit alike; each kind of pair is in its stratum."""
    (reading,) = board_of(strata=["part"]).contrasts
    odd, even = reading.strata
    assert [(part.name, part.pairs.treatment_only, part.pairs.control_only) for part in (odd, even)] == [
        ("odd", 2, 0),
        ("even", 0, 1),
    ]
    assert (odd.pairs.both, even.pairs.halted, even.pairs.without_verdict) == (1, 1, 1)
    assert odd.pairs + even.pairs == reading.pairs
    assert (odd.p_value, even.p_value, odd.odds_ratio, even.share) == (0.25, 1.0, 5.0, 0.0)


def test_strata_are_crossed_in_their_order():
    """A stratum is called by its parts, as a unit is."""
    declared = [key(n, arm, model=m, benchmark=b) for n in (1, 2) for b in "XY" for m in "mn" for arm in "AB"]
    analysis = Analysis(contrasts=[CONTRAST | {"strata": ["model", "benchmark"]}])
    board = score(declared, [outcome(cell, "PASS") for cell in declared], analysis, head="h", registration_id="r")
    assert [part.name for part in board.contrasts[0].strata] == ["m|X", "n|X", "m|Y", "n|Y"]
    assert {(part.p_value, part.odds_ratio, part.share) for part in board.contrasts[0].strata} == {(1.0, None, None)}


def test_a_pool_that_is_not_the_sum_raises():
    """A pair that is lost, doubled or moved between kinds is named with the counts of each stratum."""
    (reading,) = board_of(strata=["part"]).contrasts
    assert check_pooled("C1", reading.pairs, reading.strata) is None
    for kind in ("declared", "both", "treatment_only", "control_only", "neither", "halted", "without_verdict"):
        wrong = replace(reading.pairs, **{kind: getattr(reading.pairs, kind) + 1})
        with pytest.raises(IntegrityError, match=f"contrast 'C1': pooled {kind} is {getattr(wrong, kind)}, its strata"):
            check_pooled("C1", wrong, reading.strata)
    with pytest.raises(IntegrityError, match=r"its strata make 3: 3 \(odd\); expected every pair in one stratum"):
        check_pooled("C1", reading.pairs, reading.strata[:1])


def test_a_unit_that_has_no_place_refuses_the_scoreboard_and_never_the_sum():
    """Read from a declaration that no freeze looked at: the unit is named, and the invariant fires where asked past it."""
    declared, outcomes = table([*ROWS, ("PASS", "FAIL"), ("PASS", "FAIL")])  # task 8 is in no part
    analysis = Analysis(contrasts=[CONTRAST | {"strata": ["part"]}], groupings=[PARTS])
    board = score(declared, outcomes, analysis, head="h", registration_id="r")
    assert board.status == "refused"
    assert board.problems[0].startswith("C1: strata part: 1 units have no place, the first is made|m|8")
    assert (board.contrasts[0].strata, board.contrasts[0].p_value) == ((), None)
    settled = settle(declared, outcomes)
    with pytest.raises(IntegrityError, match="pooled declared is 8, its strata make 7"):
        read_contrast(analysis.contrasts[0], settled, "final", analysis, taken_over=declared_set(declared))


def test_an_unfinished_record_has_counts_of_strata_and_no_p():
    """As the pool itself."""
    (reading,) = board_of(strata=["part"], drop=1).contrasts
    assert reading.status == "incomplete"
    assert [part.pairs.declared for part in reading.strata] == [3, 3]
    assert {part.p_value for part in reading.strata} == {None}


HARM = {"name": "harm", "kind": "harm-gate", "contrast": "C1", "most": 0.25}
STRATA = {"name": "strata", "kind": "stratum-gate", "contrast": "C1", "worst_net": -1, "alpha": 0.05}


@pytest.mark.parametrize(("most", "passes"), [(0.25, True), (0.24, False)])
def test_the_harm_gate_is_over_judged_pairs(most, passes):
    """One of four judged pairs: halts and voids are no pair that was kept."""
    board = board_of(guards=[HARM | {"most": most}])
    (guard,) = board.guards
    assert (guard.value, guard.passes, guard.rule) == (0.25, passes, f"b10 / n <= {most:g}")
    word = "PASS" if passes else "FAIL"
    assert f"harm   harm-gate  C1  b10 / n <= {most:g}  {word}  4  0.2500" in plain_scoreboard(board)
    assert guard.n == (4,)


@pytest.mark.parametrize(("worst", "failing"), [(-1, ("even",)), (-2, ())])
def test_the_stratum_gate_names_the_strata_that_turn_round(worst, failing):
    """A net of -1 fails where -1 is the worst that was registered."""
    board = board_of(strata=["part"], guards=[STRATA | {"worst_net": worst}])
    (guard,) = board.guards
    assert (guard.value, guard.passes, guard.failing) == (-1.0, not failing, failing)
    if failing:
        assert "FAIL: even" in plain_scoreboard(board)


def test_a_stratum_fails_by_its_p_of_harm_too():
    """Five of five against the treatment, where no net was bad enough."""
    rows = [("FAIL", "PASS")] * 7
    (guard,) = board_of(rows, strata=["part"], guards=[STRATA | {"worst_net": -9}]).guards
    assert guard.failing == ()
    (guard,) = board_of(rows, strata=["part"], guards=[STRATA | {"worst_net": -9, "alpha": 0.1}]).guards
    assert guard.failing == ("odd",)  # 1/16; even has three, 1/8


@pytest.mark.parametrize(("share", "passes"), [(0.5, False), (0.6, True)])
def test_the_material_rescue_takes_its_share(share, passes):
    """A placebo's net of 1 against the treatment's 2."""
    rows = [("PASS", "FAIL", "PASS"), ("PASS", "FAIL", "FAIL")]
    analysis = Analysis(
        contrasts=[CONTRAST, {"name": "C0", "treatment": "Z", "control": "B"}],
        guards=[{"name": "g", "kind": "material-rescue", "placebo": "C0", "treatment": "C1", "share": share}],
    )
    (guard,) = score(*table(rows, arms=("A", "B", "Z")), analysis, head="h", registration_id="r").guards
    assert (guard.value, guard.passes, guard.contrasts, guard.n) == (1.0, passes, ("C0", "C1"), (2, 2))


@pytest.mark.parametrize(("rows", "drop", "why"), [(ROWS, 1, "withheld"), ([("VOID", "FAIL")], 0, "no pair of C1")])
def test_a_guard_without_figures_says_why(rows, drop, why):
    """It passes neither and fails neither, and its rule stands as it was registered."""
    board = board_of(rows, drop=drop, strata=["part"], guards=[HARM, STRATA])
    assert {guard.passes for guard in board.guards} == {None}
    assert all(why in guard.undefined for guard in board.guards)
    assert {guard.n for guard in board.guards} == {() if drop else (0,)}
    assert board.guards[0].rule == "b10 / n <= 0.25"
    assert board.guards[1].rule == "in every stratum: net > -1 and one-sided p of harm >= 0.05"
    assert "undefined: " in plain_scoreboard(board)


def test_no_guard_without_contrasts():
    """Nothing registered, nothing read, no table."""
    assert read_guards((), ()) == ()
    assert "Guards" not in plain_scoreboard(board_of())


BOOTSTRAP = {"cluster": "task", "replicates": 2000, "seed": 7}


def test_the_bootstrap_is_of_the_judged_pairs_clusters():
    """The same draw as the function gives of these clusters; voids and halts leave their clusters empty."""
    found = board_of(bootstrap=BOOTSTRAP).contrasts[0].bootstrap
    clusters = [Cluster(stratum="all", name=f"made|{n}", total=d, size=1) for n, d in ((1, 1), (2, -1), (3, 0), (5, 1))]
    drawn = cluster_bootstrap(clusters, seed=7, replicates=2000)
    assert (found.value, found.low, found.high) == (drawn.value, *drawn.interval)
    assert (found.n, found.clusters, found.empty, found.seed) == (4, 4, 2, 7)
    again = board_of(bootstrap=BOOTSTRAP).contrasts[0].bootstrap
    assert again == found
    assert board_of(bootstrap=BOOTSTRAP | {"seed": 8}).contrasts[0].bootstrap != found


def test_a_bootstrap_that_can_not_vary_says_why():
    """One judged cluster has no interval; the reason stands where the interval would."""
    board = board_of([("PASS", "FAIL"), ("VOID", "FAIL")], bootstrap=BOOTSTRAP)
    found = board.contrasts[0].bootstrap
    assert (found.value, found.low, found.high) == (None, None, None)
    assert found.undefined.startswith("there are 1 clusters")
    assert "seed 7) is undefined: there are 1 clusters" in plain_scoreboard(board)


def test_bounds_name_their_set_and_expire_with_it():
    """Stored bounds hold for the very set alone, whatever its order; when it grows each is named as expired."""
    declared = table(ROWS)[0]
    board = board_of()
    stored = scoreboard_to_json(board)
    now = declared_set(reversed(declared))
    assert {bound.taken_over for bound in board.contrasts[0].bounds} == {now.digest}
    assert expired_bounds(stored, now) == []
    grown = declared_set([*declared, key(7, "A")])
    lines = expired_bounds(stored, grown)
    assert len(lines) == 4
    assert lines[0].startswith("bounds of the pass rates: expired: taken over SET ")
    assert lines[1] == (
        f"C1, bounds over halted cells: expired: taken over SET {now.digest[:12]} (12 cells), "
        f"now SET {grown.digest[:12]} (13 cells)"
    )
    assert f"Taken over SET {now.digest[:12]}." in plain_scoreboard(board)
    assert len(expired_bounds(stored, declared_set([*declared[1:], key(7, "A")]))) == 4  # as large, and another


RATIO = {"name": "R", "quantity": "usd", "treatment": "A", "control": "B", "alternative": "two-sided", "sd_ln": 0.30458}


def costs(prices, **more):
    """The scoreboard of one ratio, from the prices of each arm's replicates of each task; None is unknown."""
    declared, outcomes = [], []
    for task, sides in enumerate(prices, start=1):
        for arm, side in zip("AB", sides, strict=True):
            for replicate, usd in enumerate(side, start=1):
                declared.append(key(task, arm, replicate))
                outcomes.append(outcome(declared[-1], "PASS", usd=usd))
    return score(declared, outcomes, Analysis(ratios=[RATIO | more]), head="h", registration_id="r")


def test_the_spread_clause_expects_by_the_registered_sd_and_counts_what_is_seen():
    """Three cells and two are expected by their own chances; a condition with an unknown price is in neither."""
    board = costs([([1, 1.2, 1.6], [1, 1.1]), ([2, 2, 2], [1, 4]), ([1, None], [3])], wide=1.5)
    (reading,) = board.ratios
    two, three = (spread_probability(1.5, 0.30458, n) for n in (2, 3))
    assert reading.wide.probability == ((2, two), (3, three))
    assert (reading.wide.conditions, reading.wide.seen) == (4, 2)
    assert reading.wide.expected == pytest.approx(2 * two + 2 * three)
    text = plain_scoreboard(board)
    assert f"has probability {two:.3f} at 2 cells, {three:.3f} at 3 cells; of 4 conditions" in text
    assert "2 do." in text


def test_twenty_conditions_of_three_are_expected_to_look_wide_twelve_times():
    """As the published campaign says of its own registered spread: 0.614, about 12 of 20."""
    (reading,) = costs([([1, 1, 1], [1, 1, 1])] * 10, wide=1.5).ratios
    assert reading.wide.probability == ((3, pytest.approx(0.614, abs=5e-4)),)
    assert (reading.wide.conditions, round(reading.wide.expected), reading.wide.seen) == (20, 12, 0)


def test_all_of_it_is_json():
    """Everything that an analysis can hold comes through JSON as it is: no key that is no text, no NaN."""
    bootstrap = {"cluster": "task", "replicates": 1000, "seed": 1}
    data = scoreboard_to_json(board_of(strata=["part"], guards=[HARM, STRATA], bootstrap=bootstrap))
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    data = scoreboard_to_json(costs([([1, 1.2, 1.6], [1, 1.1])], wide=1.5))
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert [row[0] for row in data["ratios"][0]["wide"]["probability"]] == [2, 3]


def test_the_runs_own_spread_is_told_and_gates_nothing():
    """Pooled within conditions; whatever it is, the floor is the registered one's."""
    calm, wild = costs([([1, 1], [1, 1])]), costs([([1, 9], [1, 1])])
    assert calm.ratios[0].own_spread.sd_ln == 0
    assert wild.ratios[0].own_spread.sd_ln == pytest.approx(
        math.log(3)
    )  # two logs ln 3 off their mean, of two freedoms
    assert (wild.ratios[0].own_spread.conditions, wild.ratios[0].own_spread.cells) == (2, 4)
    assert calm.ratios[0].tasks[0].resolvable == wild.ratios[0].tasks[0].resolvable
    assert "It is told and gates nothing." in plain_scoreboard(wild)
    assert costs([([1], [1])]).ratios[0].own_spread is None


def test_tasks_below_the_floor_are_named():
    """Both ways round, and none that clears it."""
    board = costs([([1.2], [1]), ([9], [1]), ([1], [1.2]), ([1], [9])])
    assert board.ratios[0].below_floor == ("made|m|1", "made|m|3")
    text = plain_scoreboard(board)
    assert "Below the floor of the registered spread, either way round: made|m|1, made|m|3." in text
