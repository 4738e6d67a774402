"""References to figures: what they may name, and what is refused with the nearest known name."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from harness.analysis import Analysis
from harness.errors import ExperimentError
from harness.figure_refs import FigureRef, Known, known_of, refuse_unknown
from harness.figure_tables import FIGURES
from harness.values import CellKey

ANALYSIS = Analysis.model_validate(
    {
        "contrasts": [
            {"name": "c", "treatment": "P", "control": "B"},
            {"name": "counted", "treatment": "P", "control": "B", "test": "count-rule", "separation": 2},
            {"name": "told", "treatment": "P", "control": "B", "family": "descriptive", "strata": ["benchmark"]},
        ],
        "guards": [{"name": "harm", "kind": "harm-gate", "contrast": "c", "most": 0.1}],
        "ratios": [
            {"name": "r", "treatment": "P", "control": "B", "quantity": "usd", "alternative": "greater"},
            {
                "name": "of one",
                "treatment": "P",
                "control": "B",
                "quantity": "usd",
                "alternative": "greater",
                "model": "m",
            },
        ],
    }
)


def key(task: str, arm: str, *, model: str = "m", extras: str = "none", benchmark: str = "made") -> CellKey:
    """A declared cell."""
    return CellKey(benchmark=benchmark, task=task, arm=arm, extras=extras, model=model, replicate=1)


CELLS = [
    *(key(task, arm, model=model) for task in ("t1", "t2") for arm in ("B", "P") for model in ("m", "n")),
    *(key("t1", arm, extras="statement") for arm in ("B", "P")),
    key("t1", "P", benchmark="other", extras="statement"),
]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"figure": "p"}, r"unknown figure of the whole set 'p'"),
        ({"contrast": "c", "figure": "p_valeu"}, r"unknown figure of a contrast 'p_valeu'. Did you mean 'p_value'\?"),
        ({"guard": "g", "contrast": "c", "figure": "b01"}, "`contrast` and `guard` together"),
        ({"stratum": "s", "figure": "planned"}, "`stratum` says nothing of a figure of the whole set"),
        ({"guard": "g", "stratum": "s", "figure": "passes"}, "`stratum` says nothing of a figure of a guard"),
        ({"contrast": "c", "figure": "wins"}, r"It is a figure of a ratio\."),
        ({"contrast": "c", "ratio": "r", "figure": "p_value"}, "`contrast` and `ratio` together"),
        ({"contrast": "c", "task": "t1", "figure": "b01"}, "`task` says nothing of a figure of a contrast"),
        ({"task": "t1", "figure": "planned"}, "`task` says nothing of a figure of the whole set"),
        ({"ratio": "r", "figure": "ratio"}, r"It is a figure of a task of a ratio\."),
        ({"arm": "P", "benchmark": "b", "figure": "passed"}, "`benchmark` says nothing of a figure of an arm"),
        ({"arm": "P"}, "Field required"),
        ({"arm": 3, "figure": "passed"}, "valid string"),
        ({"amr": "P", "figure": "passed"}, "Extra inputs"),
    ],
)
def test_a_reference_without_sense_is_refused(fields: dict[str, Any], message: str) -> None:
    """An unknown figure is told with the nearest one and with what it is a figure of."""
    with pytest.raises(ValidationError, match=message):
        FigureRef.model_validate(fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"contrast": "count", "figure": "net"},
            r"unknown contrast 'count'. Did you mean 'counted'\? Known: c, counted, told",
        ),
        ({"ratio": "q", "figure": "wins"}, r"unknown ratio 'q'.* Known: of one, r"),
        ({"arm": "Q", "figure": "passed"}, r"unknown arm 'Q'.* Known: B, P"),
        (
            {"arm": "P", "extras": "statment", "figure": "passed"},
            r"unknown extras 'statment'. Did you mean 'statement'\?",
        ),
        ({"arm": "P", "model": "mm", "figure": "passed"}, r"unknown model 'mm'. Did you mean 'm'\?"),
        ({"arm": "P", "figure": "passed"}, "`extras` could be none or statement: expected it named"),
        ({"arm": "P", "extras": "none", "figure": "passed"}, "`model` could be m or n: expected it named"),
        (
            {"arm": "P", "extras": "none", "model": "m", "task": "t9", "figure": "passed"},
            r"unknown task 't9'.* Known: t1, t2",
        ),
        ({"arm": "P", "extras": "statement", "task": "t1", "figure": "passed"}, "`benchmark` could be made or other"),
        ({"arm": "P", "extras": "statement", "model": "n", "figure": "passed"}, "no declared cell is of it"),
        ({"ratio": "r", "task": "t1", "figure": "ratio"}, "`model` could be m or n"),
        ({"contrast": "counted", "figure": "p_value"}, "test 'count-rule' gives no p_value"),
        ({"contrast": "told", "figure": "p_holm"}, "is in the family 'descriptive'"),
        ({"contrast": "c", "stratum": "made", "figure": "net"}, "the contrast has no `strata`"),
        ({"contrast": "told", "stratum": "mode", "figure": "net"}, r"unknown stratum 'mode'. Did you mean 'made'\?"),
        ({"guard": "ham", "figure": "passes"}, r"unknown guard 'ham'. Did you mean 'harm'\?"),
    ],
)
def test_what_the_experiment_has_not_is_refused(fields: dict[str, Any], message: str) -> None:
    """Names of everything, tasks among the declared cells, what could be two things, figures that the test has not."""
    with pytest.raises(ExperimentError, match=message):
        refuse_unknown(FigureRef.model_validate(fields), known_of(ANALYSIS, CELLS, {"told": ["made", "other"]}))


@pytest.mark.parametrize(
    "fields",
    [
        {"figure": "usd_total"},
        {"contrast": "c", "figure": "p_holm"},
        {"contrast": "counted", "figure": "net"},
        {"contrast": "told", "figure": "p_value"},
        {"contrast": "told", "stratum": "other", "figure": "net"},
        {"guard": "harm", "figure": "passes"},
        {"ratio": "r", "figure": "wins"},
        {"ratio": "r", "task": "t1", "model": "m", "figure": "ratio"},
        {"ratio": "of one", "task": "t2", "figure": "control_median"},
        {"arm": "P", "extras": "none", "model": "m", "figure": "pass_rate"},
        {"arm": "B", "extras": "statement", "figure": "passed"},
        {"arm": "P", "extras": "none", "model": "n", "task": "t2", "figure": "median_usd"},
    ],
)
def test_a_reference_to_one_thing_is_taken(fields: dict[str, Any]) -> None:
    """What leaves something out is taken where there is only one to choose; equal references are one axis."""
    ref = FigureRef.model_validate(fields)
    refuse_unknown(ref, known_of(ANALYSIS, CELLS, {"told": ["made", "other"]}))
    assert len({ref, FigureRef.model_validate(fields)}) == 1


def test_before_the_cells_are_known_only_names_are_checked() -> None:
    """The file alone does not say which tasks there are."""
    known = Known(analysis=ANALYSIS, arms=["B", "P"], extras=["none"], models=["m"])
    refuse_unknown(FigureRef(arm="P", task="t9", figure="passed"), known)
    with pytest.raises(ExperimentError, match="unknown arm"):
        refuse_unknown(FigureRef(arm="Q", task="t9", figure="passed"), known)


def test_a_reference_says_what_it_is_of() -> None:
    """As text it is for people."""
    assert str(FigureRef(figure="void")) == "void of the whole set"
    assert str(FigureRef(arm="P", task="t1", figure="void")) == "void of arm 'P', task 't1'"


def test_each_figure_says_what_it_is() -> None:
    """Every figure has a meaning, and its domain something in it."""
    for figures in FIGURES.values():
        for name, figure in figures.items():
            assert figure.meaning, name
            assert figure.domain.points([]), name
