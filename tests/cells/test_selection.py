"""Selection: whatever was unequal between arms is said, what is said is true of any set of cells, and bounds bound."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from cells.conditions import CAUSES, CLASSES
from cells.readings import Scoreboard, score
from cells.registered import StopReading
from cells.selection import KINDS
from harness import errors
from harness.analysis import Analysis
from harness.values import LowerBoundPrice
from tests.cells.scoring_cases import key, outcome

SETTINGS = settings(deadline=None, max_examples=50)
ENDED = ("PASS", "FAIL", "HALT(tokens)", "HALT(wall)", "VOID(fence)", "FAILED_BOOT", "REFUSED", "UNSCORABLE")
WORDS = (*ENDED, "NOT_FIRED", None)
COMPARISONS = [
    {"name": "C1", "treatment": "A", "control": "B"},
    {"name": "C2", "treatment": "C", "control": "B", "model": "m"},
    {"name": "C3", "treatment": "B", "control": "A", "extras": "statement"},
]
CELLS = [
    key(task, arm, model=model, extras=extras)
    for task, arm, model, extras in product((1, 2), "ABC", ("m", "n"), ("none", "statement"))
]


def board_of(cells, words, prices, *, contrasts=COMPARISONS, refused=()) -> Scoreboard:
    """The scoreboard of cells that ended so: a word each (None: no outcome), and a price (None, or a lower bound)."""
    outcomes = [
        outcome(cell, word, usd=None if price is None else 0.5, lower_bound=price == "at least")
        for cell, word, price in zip(cells, words, prices, strict=True)
        if word not in {None, "NOT_FIRED"}
    ]
    unfired = tuple(str(cell) for cell, word in zip(cells, words, strict=True) if word == "NOT_FIRED")
    stop = StopReading(rule="enough", condition="done at least 1", figure="1", unfired=unfired) if unfired else None
    analysis = Analysis(contrasts=contrasts)
    return score(cells, outcomes, analysis, head=None, registration_id="r", refused=refused, stop=stop)


worded = st.lists(st.sampled_from(WORDS), min_size=len(CELLS), max_size=len(CELLS))
few = st.lists(st.sampled_from((*["PASS"] * 12, *WORDS)), min_size=len(CELLS), max_size=len(CELLS))
priced = st.lists(st.sampled_from((None, "exact", "at least")), min_size=len(CELLS), max_size=len(CELLS))


def befell(what: str, cells, words, prices):
    """The cells that something befell, counted here from the words alone."""
    tests = {
        "halts": lambda word, _price: word is not None and word.startswith("HALT"),
        "voids": lambda word, _price: word is not None and word.startswith("VOID"),
        "failed boots": lambda word, _price: word == "FAILED_BOOT",
        "refusals": lambda word, _price: word == "REFUSED",
        "unscorable": lambda word, _price: word == "UNSCORABLE",
        "not fired": lambda word, _price: word == "NOT_FIRED",
        "unpriced": lambda word, price: costed(word) and price is None,
        "lower bounds": lambda word, price: costed(word) and price == "at least",
    }
    rows = zip(cells, words, prices, strict=True)
    return [cell for cell, word, price in rows if tests[what](word, price)]


def costed(word) -> bool:
    """Whether the subject did something."""
    return word is not None and (word.startswith("HALT") or word in {"PASS", "FAIL", "UNSCORABLE"})


@SETTINGS
@given(st.one_of(worded, few), priced)
def test_every_sentence_is_true_of_the_cells(words, prices):
    """Each is read as a reader would, and held against a count of its own."""
    board = board_of(CELLS, words, prices)
    for item in board.selection:
        hit = befell(item.what, CELLS, words, prices)
        if item.side is None:
            for share in item.shares:
                mine = [c for c in CELLS if (c.arm, c.extras, c.model) == (share.arm, item.extras, item.model)]
                assert share.count == len([cell for cell in hit if cell in mine])
                assert f"{share.arm} {share.count} of {share.of}" in item.sentence
            continue
        (contrast,) = (one for one in COMPARISONS if one["name"] == item.comparison)
        inside = [
            cell
            for cell in hit
            if cell.arm in {contrast["treatment"], contrast["control"]}
            and cell.extras == contrast.get("extras", "none")
            and contrast.get("model") in {None, cell.model}
        ]
        assert {cell.arm for cell in inside} == {contrast[item.side]} == {item.arm}
        match = re.search(r"(\d+) of (\d+) are (\w+)\.$", item.sentence)
        assert match is not None
        assert match.groups() == (str(len(inside)), str(len(inside)), item.arm)
        if item.sentence.startswith("Every"):
            assert inside == hit
            sides = {side for one in COMPARISONS for side in ("treatment", "control") if one[side] == item.arm}
            assert sides == {item.side}


@SETTINGS
@given(st.one_of(worded, few), priced)
def test_what_is_unequal_is_said_and_nothing_else(words, prices):
    """For each kind: a sentence if and only if the shares of some arms that can be compared differ."""
    board = board_of(CELLS, words, prices)
    for kind in KINDS:
        hit = set(befell(kind.what, CELLS, words, prices))
        shares: dict[tuple[str, str], set[float]] = {}
        arms: dict[tuple[str, str, str], list[object]] = {}
        for cell in CELLS:
            arms.setdefault((cell.arm, cell.extras, cell.model), []).append(cell)
        for (_arm, extras, model), cells in arms.items():
            of = cells
            if kind.what in {"unpriced", "lower bounds"}:
                of = [cell for cell in cells if costed(words[CELLS.index(cell)])]
            if of:
                shares.setdefault((extras, model), set()).add(len(hit & set(cells)) / len(of))
        uneven = any(len(found) > 1 for found in shares.values())
        told = [item for item in board.selection if item.what == kind.what]
        assert bool(told) >= uneven
        assert uneven or all(item.side is not None for item in told)


@SETTINGS
@given(worded, priced)
def test_the_bounds_are_what_any_reading_of_the_cells_could_give(words, prices):
    """Every way to read the halts, and the halts and unscorable cells, lies between the two rates; both are reached."""
    board = board_of(CELLS, words, prices)
    for census in board.arms:
        for names, open_cells in (
            (("rate_low", "rate_high"), census.halted),
            (("rate_lowest", "rate_highest"), census.halted + census.unscorable),
        ):
            whole = census.judged + open_cells
            rates = [(census.passed + more) / whole for more in range(open_cells + 1)] if whole else [None]
            assert [getattr(census, name) for name in names] == [rates[0], rates[-1]]
        if census.pass_rate is not None:
            assert census.rate_lowest <= census.rate_low <= census.pass_rate <= census.rate_high <= census.rate_highest


@SETTINGS
@given(worded, priced)
def test_a_census_adds_up(words, prices):
    """Every planned cell has one class; how far cells came only ever falls; the arms are the sum of the conditions."""
    board = board_of(CELLS, words, prices)
    for census in (*board.arms, *board.conditions):
        assert sum(census.classes.values()) == census.planned
        assert census.planned >= census.buildable >= census.fired >= census.declared >= census.judged
        assert census.declared == census.judged + census.unscorable
        assert census.declared + census.halted == census.priced + census.unpriced
        assert sum(census.halts.values()) == census.halted
        assert sum(census.voids.values()) == census.void
        assert sum(census.refusals.values()) == census.refused
        assert set(CLASSES) <= set(census.classes)
        assert set(CAUSES) <= set(census.voids)
    for name in ("planned", "judged", "passed", "halted", "void", "priced", "lower_bounds"):
        total = sum(getattr(census, name) for census in board.conditions)
        assert sum(getattr(census, name) for census in board.arms) == total


def test_every_halted_cell_is_a_treatment_cell():
    """The sentence of a real campaign, made here with three cells."""
    cells = [key(task, arm) for task in (1, 2, 3) for arm in ("salt-diet", "plain")]
    words = ["HALT(usd)", "PASS"] * 3
    contrasts = [{"name": "premium", "treatment": "salt-diet", "control": "plain"}]
    board = board_of(cells, words, ["exact"] * 6, contrasts=contrasts)
    assert board.sentences == ("Every halted cell is a treatment cell: 3 of 3 are salt-diet.",)
    (item,) = board.selection
    assert [(share.arm, share.count, share.of) for share in item.shares] == [("salt-diet", 3, 3), ("plain", 0, 3)]


def test_an_arm_on_both_sides_is_told_by_comparison():
    """Of two comparisons, in which B is once treatment and once control, each says what it is in it."""
    cells = [key(task, arm) for task in (1, 2) for arm in ("A", "B", "C")]
    contrasts = [
        {"name": "up", "treatment": "B", "control": "A"},
        {"name": "down", "treatment": "C", "control": "B"},
    ]
    board = board_of(cells, ["PASS", "HALT", "PASS"] * 2, ["exact"] * 6, contrasts=contrasts)
    assert board.sentences == (
        "In 'up' every halted cell is a treatment cell: 2 of 2 are B.",
        "In 'down' every halted cell is a control cell: 2 of 2 are B.",
        "Halts are unequal between the arms (extras none, model m): A 0 of 2, B 2 of 2, C 0 of 2.",
    )


def test_without_a_comparison_the_counts_are_said():
    """Nobody registered which arm is the treatment."""
    cells = [key(task, arm) for task in (1, 2) for arm in ("A", "B")]
    board = board_of(cells, ["FAILED_BOOT", "PASS"] * 2, ["exact"] * 4, contrasts=[])
    assert board.sentences == ("Failed boots are unequal between the arms (extras none, model m): A 2 of 2, B 0 of 2.",)


def test_cells_refused_before_the_run_are_planned_and_counted_by_gate():
    """They are no cells of the registration, and part of the census all the same: also where nothing else was."""
    cells = [key(1, "A"), key(1, "B")]
    refused = [
        {"cell": "made|1|A|statement|m|1", "gate": "extras", "detail": "none"},
        {"cell": "made|2|A|none|m|1", "gate": "disjoint", "detail": "none"},
    ]
    board = board_of(cells, ["PASS", "REFUSED"], ["exact", None], refused=refused, contrasts=COMPARISONS[:1])
    rows = [
        (arm.group.label, arm.planned, arm.buildable, arm.fired, arm.refused, dict(arm.refusals)) for arm in board.arms
    ]
    assert rows == [
        ("A|none|m", 2, 1, 1, 1, {"disjoint": 1}),
        ("B|none|m", 1, 1, 0, 1, {"disjoint": 1}),
        ("A|statement|m", 1, 0, 0, 1, {"extras": 1}),
    ]
    assert board.sentences == (
        "Refused cells are unequal between the arms (extras none, model m): A 1 of 2, B 1 of 1.",
    )


def test_lower_bounds_and_missing_prices_are_told_of_the_cells_that_cost():
    """A void has no price to miss; a lower bound is a price."""
    cells = [key(task, arm) for task in (1, 2) for arm in ("A", "B")]
    board = board_of(
        cells, ["PASS", "PASS", "VOID", "PASS"], ["at least", "exact", None, None], contrasts=COMPARISONS[:1]
    )
    first, second = board.arms
    assert (first.priced, first.lower_bounds, first.unpriced) == (1, 1, 0)
    assert (second.priced, second.lower_bounds, second.unpriced) == (1, 0, 1)
    assert board.sentences == (
        "Every void cell is a treatment cell: 1 of 1 are A.",
        "Every cell without a price is a control cell: 1 of 1 are B.",
        "Every price that is a lower bound is a treatment cell: 1 of 1 are A.",
    )


def test_a_void_s_price_is_no_price():
    """What a void try spent is kept, and is nobody's price."""
    spent = outcome(key(1, "A"), "VOID", usd=3.0)
    priced_void = replace(spent, spend=replace(spent.spend, price=LowerBoundPrice(usd=3.0, reason="cut off")))
    board = score([spent.cell], [priced_void], Analysis(), head=None, registration_id="r")
    assert (board.arms[0].priced, board.arms[0].lower_bounds) == (0, 0)


def test_the_causes_of_a_census_are_those_of_the_errors():
    """Each kind of blame, and what has no error of its own."""
    kinds = {item.cause for item in vars(errors).values() if isinstance(item, type) and issubclass(item, errors.Blamed)}
    assert kinds | {"interrupted", "harness", "no briefing"} == set(CAUSES)


def test_cells_that_a_stop_left_unequally_are_said():
    """A stop takes cells out of a comparison as a halt does, and not alike from the arms."""
    cells = [key(task, arm) for task in (1, 2, 3) for arm in "AB"]
    contrasts = COMPARISONS[:1]
    board = board_of(
        cells, ["PASS", "PASS", "PASS", "NOT_FIRED", "NOT_FIRED", "NOT_FIRED"], [None] * 6, contrasts=contrasts
    )
    assert "Cells that were not fired are unequal between the arms (extras none, model m): A 1 of 3, B 2 of 3." in (
        board.sentences
    )
    last = board_of(cells, [*["PASS"] * 5, "NOT_FIRED"], [None] * 6, contrasts=contrasts)
    assert "Every cell that was not fired is a control cell: 1 of 1 are B." in last.sentences
