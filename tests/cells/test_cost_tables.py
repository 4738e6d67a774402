"""The tables of charges and shares: every figure with its denominator, its kinds, and calls and seconds beside it."""

from __future__ import annotations

from dataclasses import replace

from cells.comparison_tables import ratio_sheets
from cells.cost_tables import charge_sheet, cost_sheets, share_sheet
from cells.readings import score, scoreboard_to_json
from cells.score_tables import arm_cost_sheet
from harness.analysis import Analysis
from tests.cells.scoring_cases import key, outcome
from tests.cells.test_readings_cost import campaign

RATIO = {"name": "R", "quantity": "usd", "treatment": "A", "control": "B", "alternative": "greater"}


def board(*tries, of_run=None):
    """The scoreboard of tries `(arm, word, usd, lower_bound)`, each of a task of its own."""
    declared = [key(task, arm) for task, (arm, *_rest) in enumerate(tries, start=1)]
    outcomes = [
        outcome(cell, word, usd=usd, lower_bound=bound)
        for cell, (_arm, word, usd, bound) in zip(declared, tries, strict=True)
    ]
    analysis = Analysis(ratios=[RATIO])
    return score(declared, outcomes, analysis, head="h", registration_id="r", of_run=of_run or {})


PLAYED = (
    ("A", "PASS", 1.0, False),
    ("A", "FAIL", 2.0, True),
    ("A", "HALT(usd)", 3.0, False),
    ("A", "VOID(fence)", 8.0, False),
    ("B", "FAIL", None, False),
    ("B", "FAILED_BOOT", None, False),
)


def rows(sheet):
    """The rows of a sheet by its words."""
    return {row[: sheet.left]: row[sheet.left :] for row in sheet.rows}


def test_charge_stands_beside_class():
    """Each arm's ARM and SUNK spend with how those tries ended, and all of it as the meter has it."""
    sheet = charge_sheet(board(*PLAYED))
    assert sheet.header == (
        "arm",
        "charge",
        "ended as",
        "tries",
        "usd",
        "exact/bound/void",
        "calls",
        "wall s",
        "tokens",
    )
    assert rows(sheet) == {
        ("A", "ARM", "FAIL 1, HALT(usd) 1, PASS 1"): ("3", "at least 6.0000", "2/1/0", "6", "9.00", "300"),
        ("A", "SUNK", "VOID(fence) 1"): ("1", "8.0000", "1/0/0", "2", "3.00", "100"),
        ("A", "both", ""): ("4", "at least 14.0000", "3/1/0", "8", "12.00", "400"),
        ("B", "ARM", "FAIL 1"): ("1", "undefined", "0/0/1", "2", "3.00", "100"),
        ("B", "SUNK", "FAILED_BOOT 1"): ("1", "undefined", "0/0/1", "2", "3.00", "100"),
        ("B", "both", ""): ("2", "undefined", "0/0/2", "4", "6.00", "200"),
        ("all arms", "ARM", ""): ("4", "at least 6.0000", "2/1/1", "8", "12.00", "400"),
        ("all arms", "SUNK", ""): ("2", "at least 8.0000", "1/0/1", "4", "6.00", "200"),
        ("all arms", "both", ""): ("6", "at least 14.0000", "3/1/2", "12", "18.00", "600"),
    }


def test_each_denominator_has_a_row():
    """With its n, and undefined where it is none."""
    found = rows(share_sheet(board(*PLAYED)))
    assert found["A", "declared end"] == ("2", "at least 1.5000", "2.00", "3.00", "100")
    assert found["A", "attempt"] == ("3", "at least 2.0000", "2.00", "3.00", "100")
    assert found["A", "pass"] == ("1", "at least 6.0000", "6.00", "9.00", "300")
    assert found["B", "attempt"] == ("1", "undefined", "2.00", "3.00", "100")
    assert found["B", "pass"] == ("0", "undefined", "undefined", "undefined", "undefined")


def test_medians_say_how_many_prices_are_which():
    """And what they would be of the exact ones alone."""
    found = rows(arm_cost_sheet(board(*PLAYED)))
    assert found["A",] == ("3", "100", "2", "3.00", "at least 2.0000", "2/1/0", "2.0000")
    assert found["B",] == ("1", "100", "2", "3.00", "undefined (1 unknown)", "0/0/1", "undefined")


def test_every_comparison_of_cost_names_its_confounds():
    """Under the medians by arm, the shares and the ratios."""
    made = board(*PLAYED, of_run={"backend": "docker", "rate_card m": "2026-09-15"})
    (sentence,) = made.confounds
    assert sentence == (
        "Not known, and so perhaps different between the arms (extras none, model m): load (4 of 4 cells), "
        "cells at once (4 of 4 cells), served model (4 of 4 cells)."
    )
    for sheet in (arm_cost_sheet(made), share_sheet(made), *ratio_sheets(made)):
        assert sentence in sheet.notes
    quiet = replace(made, confounds=())
    assert all(sentence not in sheet.notes for sheet in (arm_cost_sheet(quiet), share_sheet(quiet)))


def test_the_json_has_the_charges():
    """The total is what every try cost, and the board's `spent`."""
    data = scoreboard_to_json(board(*PLAYED))
    assert data["spent"] == data["charges"]["total"]
    assert [(item["group"]["arm"], item["tries"]) for item in data["charges"]["arms"]] == [("A", 4), ("B", 2)]
    assert data["charges"]["arms"][0]["per_pass"]["usd"] == {"value": 6.0, "n": 1, "bound": "at_least"}
    assert data["charges"]["total"]["usd"]["exact"] == 3


def test_a_set_without_cells_has_no_cost_sheets():
    """There is no arm to charge."""
    empty = score([], [], Analysis(), head=None, registration_id="r")
    assert cost_sheets(empty) == []
    assert empty.spent.usd.value == 0.0


def test_a_published_campaign_by_denominator():
    """43 cells (SaltBench v3, arXiv:2609.11076): a pass of the treatment's cost 2.5 times one of the control's."""
    made = score(*campaign(borrowed=True), Analysis(), head="h", registration_id="r")
    plain, salted = made.charges.arms[:2]
    assert (plain.arm.usd.known, plain.arm_classes) == (220.10, {"PASS": 18})
    assert (salted.arm.usd.known, salted.arm_classes) == (337.16, {"FAIL": 1, "HALT(usd)": 3, "PASS": 11})
    assert [round(arm.per_pass["usd"].value, 4) for arm in (plain, salted)] == [12.2278, 30.6509]
    assert [arm.per_attempt["usd"].n for arm in (plain, salted)] == [18, 15]
    usd = made.charges.total.usd
    assert (usd.n, usd.exact, usd.lower_bounds, usd.unknown, usd.known) == (43, 26, 13, 4, 645.12)
    assert made.charges.sunk.usd.unknown == 4
    assert "plain 8 of 18, salt-diet 3 of 15" in made.sentences[-1]
