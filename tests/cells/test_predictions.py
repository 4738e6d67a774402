"""Predictions, the table of outcomes and adverse outcomes, read from scoreboards of small tables."""

from __future__ import annotations

from typing import Any

import pytest

from cells.figure_reading import figure_value, read_figure
from cells.predictions import PredictionReading, read_predictions, with_registered
from cells.readings import Scoreboard, score, scoreboard_to_json
from harness.analysis import Analysis
from harness.errors import ExperimentError
from harness.experiment import parse_experiment
from harness.figure_refs import FigureRef
from harness.figure_tables import FIGURES
from harness.predictions import Prediction
from tests.cells.scoring_cases import key, outcome, table
from tests.harness.test_experiment import GOOD
from tests.harness.test_predictions import ADVERSE, RATIO, TABLE

ANALYSIS = Analysis.model_validate(
    {
        "contrasts": [{"name": "c", "treatment": "P", "control": "B", "strata": ["half"]}],
        "groupings": [
            {
                "name": "half",
                "members": {
                    "first": [f"made|{task}" for task in range(1, 10)],
                    "second": [f"made|{task}" for task in range(10, 30)],
                },
            }
        ],
        "guards": [
            {"name": "harm", "kind": "harm-gate", "contrast": "c", "most": 0.1},
            {"name": "mild", "kind": "harm-gate", "contrast": "c", "most": 0.2},
        ],
        "ratios": [{"name": "r", "treatment": "P", "control": "B", "quantity": "usd", "alternative": "two-sided"}],
    }
)
ROWS = [("FAIL", "PASS")] * 9 + [("PASS", "FAIL")] * 2 + [("PASS", "PASS")] * 4 + [("FAIL", "HALT(tokens)")]
"""Columns B and P: b01 = 9, b10 = 2, four pass both, one pair is halted."""


def board(rows: Any = ROWS) -> Scoreboard:
    """The scoreboard of a table of words."""
    declared, outcomes = table(rows, arms=("B", "P"))
    return score(declared, outcomes, ANALYSIS, head=None, registration_id="x")


def ref(**fields: Any) -> FigureRef:
    """A reference."""
    return FigureRef.model_validate(fields)


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"contrast": "c", "figure": "b01"}, 9),
        ({"contrast": "c", "figure": "b10"}, 2),
        ({"contrast": "c", "figure": "net"}, 7),
        ({"contrast": "c", "figure": "discordant"}, 11),
        ({"contrast": "c", "figure": "judged"}, 15),
        ({"contrast": "c", "figure": "halted"}, 1),
        ({"contrast": "c", "figure": "treatment_rate"}, 13 / 15),
        ({"contrast": "c", "figure": "control_rate"}, 6 / 15),
        ({"contrast": "c", "figure": "rate_difference"}, 7 / 15),
        ({"contrast": "c", "figure": "share"}, 9 / 11),
        ({"contrast": "c", "stratum": "first", "figure": "b01"}, 9),
        ({"contrast": "c", "stratum": "second", "figure": "net"}, -2),
        ({"contrast": "c", "stratum": "first", "figure": "p_value"}, 0.5**9),
        ({"guard": "harm", "figure": "passes"}, 0),
        ({"guard": "mild", "figure": "passes"}, 1),
        ({"guard": "harm", "figure": "value"}, 2 / 15),
        ({"ratio": "r", "figure": "ties"}, 16),
        ({"ratio": "r", "figure": "p_value"}, None),
        ({"ratio": "r", "task": "3", "figure": "ratio"}, 1.0),
        ({"ratio": "r", "task": "3", "figure": "control_median"}, 0.5),
        ({"arm": "P", "figure": "passed"}, 13),
        ({"arm": "P", "figure": "failed"}, 2),
        ({"arm": "P", "figure": "pass_rate"}, 13 / 15),
        ({"arm": "P", "figure": "rate_low"}, 13 / 16),
        ({"arm": "P", "figure": "median_usd"}, 0.5),
        ({"arm": "P", "task": "16", "figure": "halted"}, 1),
        ({"arm": "P", "task": "16", "figure": "pass_rate"}, None),
        ({"arm": "B", "task": "1", "figure": "median_tokens"}, 100),
        ({"figure": "planned"}, 32),
        ({"figure": "passed"}, 19),
        ({"figure": "usd_total"}, 16.0),
        ({"figure": "calls_total"}, 64),
    ],
)
def test_each_kind_of_figure_is_read(fields: dict[str, Any], value: float | None) -> None:
    """Of a contrast, a ratio, a ratio's task, an arm, a condition and the whole set; undefined is None."""
    assert read_figure(ref(**fields), board()) == value


def test_the_exact_p_is_the_one_that_is_printed() -> None:
    """One-sided (9, 2) is 0.032715; alone in its family, Holm leaves it."""
    for figure in ("p_value", "p_holm"):
        assert read_figure(ref(contrast="c", figure=figure), board()) == pytest.approx(0.032715, abs=1e-6)


def test_every_registered_figure_can_be_read() -> None:
    """No name of the tables leads nowhere."""
    names: dict[str, dict[str, str]] = {
        "a contrast": {"contrast": "c"},
        "a stratum": {"contrast": "c", "stratum": "second"},
        "a guard": {"guard": "harm"},
        "a ratio": {"ratio": "r"},
        "a task of a ratio": {"ratio": "r", "task": "1"},
        "an arm": {"arm": "P"},
        "a condition": {"arm": "P", "task": "1"},
        "the whole set": {},
    }
    whole = board()
    for kind, figures in FIGURES.items():
        for figure, spec in figures.items():
            value = figure_value(ref(**names[kind], figure=figure), whole)
            assert any(point in value.span for point in spec.domain.points([value.span])), (kind, figure)


def test_what_the_board_has_not_is_an_error() -> None:
    """A contrast of another analysis, a task that is not declared, an arm under two models."""
    declared = [key(1, arm, model=model) for arm in ("B", "P") for model in ("m", "n")]
    whole = score(declared, [], Analysis(), head=None, registration_id="x")
    with pytest.raises(ExperimentError, match="the scoreboard has 0 of it"):
        read_figure(ref(contrast="c", figure="b01"), whole)
    with pytest.raises(ExperimentError, match="the scoreboard has 2 of it"):
        read_figure(ref(arm="P", figure="passed"), whole)


def test_a_group_that_a_gate_refused_whole_is_not_meant() -> None:
    """Without its extras named, an arm is the one that could be built; named, it is the refused one."""
    declared, outcomes = table(ROWS, arms=("B", "P"))
    refused = [{"cell": "made|1|P|statement|m|1", "gate": "extras", "detail": "d"}]
    whole = score(declared, outcomes, ANALYSIS, head=None, registration_id="x", refused=refused)
    assert read_figure(ref(arm="P", figure="passed"), whole) == 13
    assert read_figure(ref(arm="P", extras="statement", figure="refused"), whole) == 1


def read(claim: dict[str, Any], refuted_by: list[dict[str, Any]] | None = None, rows: Any = ROWS) -> PredictionReading:
    """What one prediction comes to."""
    more = {} if refuted_by is None else {"refuted_by": refuted_by}
    return read_predictions([Prediction.model_validate({"name": "n", "claim": "c", **claim, **more})], board(rows))[0]


NET = {"contrast": "c", "figure": "net"}


@pytest.mark.parametrize(
    ("value", "tolerance", "refuted_by", "fate", "why"),
    [
        (8, 1, [{"below": 0}], "HOLDS", "it is 7, which is at least 7 and at most 9"),
        (10, 1, [{"below": 8}], "REFUTED", "it is 7, below 9 by 2"),
        (2, 2, [{"below": 0}, {"above": 6}], "REFUTED", "it is 7, above 4 by 3"),
        (10, 1, [{"below": 0}], "UNRESOLVED", "it is 7, below 9 by 2, and in no region that refutes it"),
    ],
)
def test_a_point_holds_is_refuted_with_its_direction_or_neither(
    value: float, tolerance: float, refuted_by: list[dict[str, Any]], fate: str, why: str
) -> None:
    """The end of the tolerance is in; on which side it failed and by how much is told."""
    reading = read({"point": {"of": NET, "value": value, "tolerance": tolerance}}, refuted_by)
    assert (reading.fate, reading.why) == (fate, why)
    assert reading.figures == ("net of contrast 'c' = 7",)


def test_a_tolerance_is_decimal() -> None:
    """0.3 - 0.1 holds at 0.2, as a person computes it."""
    rows = [("PASS", "PASS")] + [("PASS", "FAIL")] * 4
    claim = {"point": {"of": {"arm": "P", "figure": "pass_rate"}, "value": 0.3, "tolerance": 0.1}}
    assert read(claim, [{"above": 0.5}], rows).fate == "HOLDS"


def test_an_undefined_figure_is_void_unless_it_was_registered_to_refute() -> None:
    """Without a judged cell there is no pass rate: no claim about it can hold."""
    claim = {"band": {"of": {"arm": "P", "figure": "pass_rate"}, "low": 0.2, "high": 0.9}}
    rows = [("PASS", "HALT(usd)")]
    assert read(claim, [{"below": 0.1}], rows).fate == "VOID"
    refuted = read(claim, [{"below": 0.1, "undefined": True}], rows)
    assert (refuted.fate, refuted.why) == ("REFUTED", "the figure is undefined, which was registered to refute it")


PASSED = [{"arm": "P", "figure": "passed"}, {"arm": "B", "figure": "passed"}]


@pytest.mark.parametrize(
    ("order", "inversion", "fate", "why"),
    [
        (PASSED, 0, "HOLDS", "each is above the next"),
        (PASSED[::-1], 6, "REFUTED", "inverted: passed of arm 'P' is above passed of arm 'B' by 7"),
        (PASSED[::-1], 7, "UNRESOLVED", "passed of arm 'P' is above passed of arm 'B' by 7"),
        (
            [{"arm": "P", "figure": "halted"}, {"arm": "B", "figure": "refused"}, {"arm": "P", "figure": "void"}],
            0,
            "UNRESOLVED",
            "refused of arm 'B' and void of arm 'P' are equal",
        ),
        (
            [{"arm": "B", "task": "1", "figure": "pass_rate"}, {"arm": "P", "task": "16", "figure": "pass_rate"}],
            0,
            "VOID",
            "undefined: pass_rate of arm 'P', task '16'",
        ),
    ],
)
def test_an_order_names_the_worst_inversion(order: list[dict[str, Any]], inversion: float, fate: str, why: str) -> None:
    """Strictly falling holds, an inversion beyond the margin refutes, and between the two nothing is decided."""
    reading = read({"ordering": {"greatest_first": order, "inversion": inversion}})
    assert (reading.fate, reading.why) == (fate, why)


def test_a_lower_bound_decides_only_where_the_figure_would_whatever_it_is() -> None:
    """At least 0.5 dollars can refute `at most 0.3`, and can't tell whether 0.6 is right."""
    declared = [key(1, arm) for arm in ("B", "P")]
    outcomes = [outcome(cell, "PASS", lower_bound=cell.arm == "P") for cell in declared]
    whole = score(declared, outcomes, ANALYSIS, head=None, registration_id="x")
    of = {"arm": "P", "figure": "median_usd"}
    predictions = [
        {"band": {"of": of, "low": 0, "high": 0.3}, "refuted_by": [{"above": 0.3}]},
        {"band": {"of": of, "low": 0.5, "high": 0.7}, "refuted_by": [{"above": 0.7}]},
        {
            "band": {"of": {"ratio": "r", "task": "1", "figure": "ratio"}, "low": 0, "high": 2},
            "refuted_by": [{"above": 2}],
        },
        {"ordering": {"greatest_first": [of, {**of, "arm": "B"}], "inversion": 0}},
    ]
    entries = [Prediction.model_validate({"name": "n", "claim": "c", **more}) for more in predictions]
    found = read_predictions(entries, whole)
    assert [reading.fate for reading in found] == ["REFUTED", "UNRESOLVED", "UNRESOLVED", "UNRESOLVED"]
    assert found[0].why == "it is at least 0.5, above 0.3 by 0.2"
    assert "a bound" in found[1].why


def test_before_the_end_nothing_is_decided_and_a_refused_record_decides_nothing() -> None:
    """A missing cell leaves it open; a doubled cell makes the record one that no figure is read of."""
    claim = {"point": {"of": NET, "value": 8, "tolerance": 1}}
    rows: list[Any] = [*ROWS, ("PASS", None)]
    missing = read(claim, [{"below": 0}], rows)
    assert (missing.fate, missing.why) == ("UNRESOLVED", "the run is incomplete: 1 of 34 cells are missing")
    declared, outcomes = table(ROWS, arms=("B", "P"))
    refused = score(
        declared, [*outcomes, outcome(declared[0], "PASS", attempt=2)], ANALYSIS, head=None, registration_id="x"
    )
    prediction = Prediction.model_validate({"name": "n", "claim": "c", **claim, "refuted_by": [{"below": 0}]})
    reading = read_predictions([prediction], refused)[0]
    assert reading.fate == "VOID"
    assert "doubled cell made|1|B|none|m|1" in reading.why


def test_the_row_that_holds_and_what_happened_stand_on_the_board() -> None:
    """One row with its figures; an adverse outcome is told as happened and as not; the JSON carries both."""
    experiment = parse_experiment(GOOD + RATIO + TABLE + ADVERSE)
    helped = with_registered(board(), experiment)
    assert helped.outcome is not None
    assert (helped.outcome.row, helped.outcome.verdict) == (1, "It helps.")
    assert helped.outcome.figures[0].startswith("p_holm of contrast 'c' = 0.0327")
    assert [item.happened for item in helped.adverse] == [False]
    harmed = with_registered(board([("PASS", "FAIL")] * 3 + [("PASS", "HALT(usd)")] * 3), experiment)
    assert harmed.outcome is not None
    assert (harmed.outcome.row, harmed.outcome.verdict) == (2, "It harms.")
    assert [item.happened for item in harmed.adverse] == [True]
    assert scoreboard_to_json(harmed)["outcome"]["row"] == 2
    missing = with_registered(board([("PASS", None)]), experiment)
    assert missing.outcome is not None
    assert (missing.outcome.row, missing.outcome.why) == (None, "the run is incomplete: 1 of 2 cells are missing")
    assert [item.happened for item in missing.adverse] == [None]


def test_a_board_of_nothing_registered_has_nothing() -> None:
    """No table, no row; no adverse outcome, none told."""
    plain = with_registered(board(), parse_experiment(GOOD))
    assert (plain.outcome, plain.adverse) == (None, ())
