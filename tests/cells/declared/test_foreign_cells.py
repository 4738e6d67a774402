"""Cells of another harness are counted, paired and priced by the same code as recorded ones."""

from dataclasses import replace

import pytest

from cells.declared.rows import ForeignReading
from cells.readings import score, scoreboard_to_json
from cells.settled import settle
from harness.analysis import Analysis
from tests.cells.foreign_cases import foreign, foreign_key
from tests.cells.scoring_cases import key, outcome

CONTRAST = {"name": "C1", "treatment": "A", "control": "B"}
RATIO = {"name": "cost", "treatment": "A", "control": "B", "quantity": "usd", "alternative": "greater"}
ROWS = [("LRU", "PASS", "FAIL"), ("LZW", "HALT(usd)", "PASS"), ("Crc", "FAILED_BOOT", "UNSCORABLE")]


def board_of(outcomes, **analysis):
    """The scoreboard over the very cells of the outcomes."""
    cells = dict.fromkeys(item.cell for item in outcomes)
    return score(cells, outcomes, Analysis(**analysis), head=None, registration_id="r1")


def test_both_kinds_of_cell_give_the_same_figures():
    """The same table of words, played here and played elsewhere, differs by the names of the cells alone."""
    ours = [outcome(key(task, arm), word) for task, *words in ROWS for arm, word in zip("AB", words, strict=True)]
    theirs = [
        foreign(foreign_key(f"{task}{arm}", arm, task, 1), word)
        for task, *words in ROWS
        for arm, word in zip("AB", words, strict=True)
    ]
    one, other = (board_of(outcomes, contrasts=[CONTRAST], ratios=[RATIO]) for outcomes in (ours, theirs))
    figures = [_without_names(scoreboard_to_json(board)) for board in (one, other)]
    assert figures[0] == figures[1]
    assert one.status == "final"
    assert one.contrasts[0].pairs.treatment_only == 1


def _without_names(data):
    """The scoreboard without the digests of the sets, which name the cells."""
    if isinstance(data, dict):
        return {name: _without_names(item) for name, item in data.items() if name not in {"taken_over", "digest"}}
    return [_without_names(item) for item in data] if isinstance(data, list) else data


def test_ids_repeat_across_runs():
    """Two runs have a cell c1: they are two cells, and both count."""
    board = board_of([foreign(foreign_key("c1", "A", run=run), "PASS") for run in ("first", "second")])
    assert (board.planned, board.arms[0].passed, board.doubled) == (2, 2, ())


def test_a_contrast_without_replicates_pairs_one_cell_a_side():
    """One cell a side needs no number to be a pair."""
    board = board_of(
        [foreign(foreign_key("a", "A"), "PASS"), foreign(foreign_key("b", "B"), "FAIL")], contrasts=[CONTRAST]
    )
    assert (board.status, board.contrasts[0].pairs.declared) == ("final", 1)


@pytest.mark.parametrize(("replicate", "said"), [(None, "without a replicate"), (1, "with replicate 1")])
def test_a_contrast_does_not_choose_among_cells_that_nothing_tells_apart(replicate, said):
    """Two cells of one condition with no replicate, or the same one, make no pair: refused, both are named."""
    outcomes = [
        foreign(foreign_key("a1", "A", replicate=replicate), "PASS"),
        foreign(foreign_key("a2", "A", replicate=replicate), "FAIL"),
        foreign(foreign_key("b1", "B", replicate=replicate), "FAIL"),
    ]
    board = board_of(outcomes, contrasts=[CONTRAST], ratios=[RATIO])
    assert board.status == "refused"
    assert board.contrasts[0].pairs.declared == 0
    assert board.contrasts[0].p_value is None
    (problem,) = board.problems
    assert "cells r/a1 and r/a2 are both made|m|LRU of arm 'A' " + said in problem


def test_a_ratio_of_medians_needs_no_replicate():
    """A median is of all cells of a condition, numbered or not."""
    usd = {"a1": 3.0, "a2": 5.0, "a3": 4.0, "b1": 2.0}
    board = board_of(
        [foreign(foreign_key(name, name[0].upper()), "PASS", usd=price) for name, price in usd.items()], ratios=[RATIO]
    )
    assert (board.status, board.ratios[0].tasks[0].ratio) == ("final", 2.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"run": ""}, "run is ''"),
        ({"id_": ""}, "id is ''"),
        ({"id_": "c\n1"}, "expected a name that prints on one line"),
        ({"id_": " c1"}, "without outer spaces"),
        ({"replicate": 0}, "expected 1 or more"),
        ({"task": "a|b"}, "task is 'a|b'"),
        ({"model": ""}, "model is ''"),
    ],
)
def test_a_name_with_a_gap_is_refused(change, said):
    """Each part of a name and a condition is there and can be written."""
    with pytest.raises(ValueError, match=said.replace("|", "[|]")):
        foreign_key(**({"id_": "c", "arm": "A"} | change))


def test_a_verdict_stands_beside_a_declared_end_alone():
    """The END decides first: no verdict beside a halt, none missing beside DECLARED, no would-be beside a boot."""
    cell = foreign_key("c", "A")
    said = ForeignReading(reading="PASS", standing="accepted")
    with pytest.raises(ValueError, match="verdict beside DECLARED"):
        replace(foreign(cell, "HALT(usd)"), verdict=said)
    with pytest.raises(ValueError, match="verdict beside DECLARED"):
        replace(foreign(cell, "PASS"), verdict=None)
    with pytest.raises(ValueError, match="would-be"):
        replace(foreign(cell, "FAILED_BOOT"), would_be=said)
    with pytest.raises(ValueError, match="attempt is 0"):
        foreign(cell, "PASS", attempt=0)
    assert replace(foreign(cell, "HALT(usd)"), would_be=said).passed is None


class Counted:
    """An outcome that counts how often it is compared."""

    compared = 0

    def __init__(self, cell, attempt):
        self.cell, self.attempt = cell, attempt
        self.end, self.spend = "VOID", attempt
        self.is_final = False

    def __eq__(self, other):
        Counted.compared += 1
        return (self.cell, self.attempt) == (other.cell, other.attempt)

    __hash__ = None


def test_settling_is_linear_in_the_tries_of_one_cell():
    """A thousand different tries of one cell are compared with none of each other, and their repetitions once each."""
    Counted.compared = 0
    settled = settle(["c"], [Counted("c", attempt) for _ in range(2) for attempt in range(1000)])
    assert (len(settled.tries["c"]), settled.repeated, Counted.compared) == (1000, 1000, 1000)


class Name:
    """A cell that counts how often it is compared; its hash tells it from all others."""

    compared = 0

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return self.number

    def __eq__(self, other):
        Name.compared += 1
        return self.number == other.number


def test_settling_is_linear_in_the_cells():
    """With every cell doubled, each is looked up by its hash, and compared a few times at most."""
    names = [Name(number) for number in range(2000)]
    outcomes = [foreign(foreign_key("c", "A"), word) for word in ("PASS", "FAIL")]
    doubled = [_Of(name, item) for name in map(Name, range(2000)) for item in outcomes]
    Name.compared = 0
    settled = settle(names, doubled)
    assert len(settled.doubled) == 2000
    assert {settled.label(name) for name in names} == {"DOUBLED"}
    assert Name.compared < 20 * len(names)


class _Of:
    """The outcome of another cell, as of this one."""

    def __init__(self, cell, outcome):
        self.cell, self.outcome = cell, outcome

    def __getattr__(self, name):
        return getattr(self.outcome, name)
