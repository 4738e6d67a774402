"""What a registered analysis may not say of its strata, tests, bootstraps, guards and groupings."""

import re

import pytest
from pydantic import ValidationError

from cells.planned import foreseen, refuse_unreadable
from harness.analysis import Analysis
from harness.errors import ExperimentError
from tests.cells.scoring_cases import key

CONTRAST = {"name": "C1", "treatment": "A", "control": "B"}
PLACEBO = {"name": "C0", "treatment": "Z", "control": "B"}
GROUPING = {"name": "difficulty", "members": {"easy": ["made|1"], "hard": ["made|m|2"]}}
BOOTSTRAP = {"cluster": "task", "replicates": 1000, "seed": 1}
GATE = {"name": "G", "kind": "harm-gate", "contrast": "C1", "most": 0.02}
STRATUM = {"name": "G", "kind": "stratum-gate", "contrast": "C1", "worst_net": -2, "alpha": 0.05}
RESCUE = {"name": "G", "kind": "material-rescue", "placebo": "C0", "treatment": "C1", "share": 0.5}
RATIO = {"name": "R", "quantity": "usd", "treatment": "A", "control": "B", "alternative": "greater"}


def contrasts(**more):
    """An analysis of one contrast with these settings."""
    return {"contrasts": [CONTRAST | more], "groupings": [GROUPING]}


@pytest.mark.parametrize(
    "given",
    [
        contrasts(strata=["benchmark", "model", "difficulty"]),
        contrasts(test="mcnemar-clustered", cluster="task"),
        contrasts(test="mcnemar-clustered", cluster="difficulty"),
        contrasts(test="count-rule", separation=14),
        contrasts(test="count-rule", separation="null", strata=["difficulty"]),
        contrasts(test="fisher", alternative="two-sided"),
        contrasts(bootstrap=BOOTSTRAP | {"strata": ["difficulty"]}),
        contrasts(power={"pairs": 38, "share": 0.737}),
        contrasts(family="descriptive"),
        contrasts() | {"guards": [GATE]},
        contrasts(strata=["model"]) | {"guards": [STRATUM]},
        {"contrasts": [CONTRAST, PLACEBO], "guards": [RESCUE]},
        {"ratios": [RATIO | {"sd_ln": 0.3, "wide": 1.5}]},
    ],
)
def test_a_whole_analysis_is_read_back_as_itself(given):
    """Each setting in its place is accepted, and survives the JSON of a registration."""
    analysis = Analysis.model_validate(given)
    assert Analysis.model_validate_json(analysis.model_dump_json()) == analysis


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (contrasts(strata=["task"]), "'C1': strata: unknown 'task': expected one of benchmark, model, difficulty"),
        (contrasts(strata=["dificulty"]), "unknown 'dificulty'"),
        (contrasts(test="mcnemar-clustered"), "has test 'mcnemar-clustered' without `cluster`"),
        (contrasts(cluster="task"), "has `cluster` with test 'mcnemar': expected it with 'mcnemar-clustered' only"),
        (contrasts(test="mcnemar-clustered", cluster="model"), "cluster: unknown 'model'"),
        (contrasts(test="count-rule"), "without `separation`"),
        (contrasts(separation=3), "has `separation` with test 'mcnemar'"),
        (contrasts(test="count-rule", separation=0), "separation"),
        (contrasts(test="count-rule", separation="nul"), "separation"),
        (contrasts(test="fisher", strata=["model"]), "test 'fisher', which has no pairs"),
        (contrasts(test="fisher", bootstrap=BOOTSTRAP), "test 'fisher', which has no pairs"),
        (
            contrasts(test="count-rule", separation=3, power={"pairs": 3, "share": 0.5}),
            "`power` with test 'count-rule'",
        ),
        (contrasts(test="chi-square"), "test"),
        (contrasts(bootstrap=BOOTSTRAP | {"cluster": "model"}), "cluster: unknown 'model'"),
        (contrasts(bootstrap=BOOTSTRAP | {"strata": ["unit"]}), "strata: unknown 'unit'"),
        (contrasts(bootstrap=BOOTSTRAP | {"replicates": 999}), "replicates"),
        (contrasts(bootstrap={"cluster": "task", "replicates": 1000}), "seed"),
        (contrasts(power={"pairs": 0, "share": 0.5}), "pairs"),
        (contrasts(power={"pairs": 3, "share": float("nan")}), "share"),
        ({"family": "descriptive"}, "the family is called 'descriptive', which means none"),
        (contrasts() | {"guards": [GATE | {"contrast": "C2"}]}, "guard 'G': unknown contrast 'C2'"),
        (contrasts() | {"guards": [GATE, GATE]}, "'G' is used more than once"),
        (contrasts() | {"guards": [{**GATE, "kind": "harm"}]}, "harm-gate"),
        (contrasts() | {"guards": [{name: GATE[name] for name in ("name", "kind", "contrast")}]}, "most"),
        (contrasts() | {"guards": [GATE | {"most": 1.0}]}, "most"),
        (contrasts() | {"guards": [STRATUM]}, "contrast 'C1' has no `strata`"),
        (contrasts(test="fisher") | {"guards": [GATE]}, "test 'fisher', and no pairs"),
        (
            {"contrasts": [CONTRAST, PLACEBO | {"control": "Y"}], "guards": [RESCUE]},
            "controls B, Y of its two contrasts",
        ),
        ({"groupings": [GROUPING, GROUPING]}, "'difficulty' is used more than once"),
        ({"groupings": [GROUPING | {"name": "model"}]}, "'model', which is a part of every unit"),
        ({"groupings": [GROUPING | {"members": {}}]}, "members"),
        ({"groupings": [GROUPING | {"members": {"easy": ["1"]}}]}, "expected `benchmark|task`"),
        ({"groupings": [GROUPING | {"members": {"a": ["made|1"], "b": ["made|1"]}}]}, "stands in 'a' and in 'b'"),
        ({"ratios": [RATIO | {"wide": 1.5}]}, "has `wide` without `sd_ln`"),
        ({"ratios": [RATIO | {"sd_ln": 0.3, "wide": 1.0}]}, "wide"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(given, said):
    """The contrast, guard or grouping, the value, and what was expected."""
    with pytest.raises(ValidationError, match=re.escape(said)):
        Analysis.model_validate(given)


def cells(tasks=(1, 2), arms=("A", "B")):
    """Declared cells of these tasks."""
    return [key(task, arm) for task in tasks for arm in arms]


def test_a_unit_without_a_place_is_refused_at_the_freeze():
    """By contrast, split, number and the first unit; where all have a place nothing is said."""
    analysis = Analysis.model_validate(contrasts(strata=["difficulty"], bootstrap=BOOTSTRAP))
    assert refuse_unreadable(analysis, cells()) is None
    with pytest.raises(ExperimentError, match=r"C1: strata difficulty: 2 units have no place, the first is made\|m\|3"):
        refuse_unreadable(analysis, cells((1, 3, 4)))
    elsewhere = [key(3, "A", extras="statement"), key(3, "Z"), *cells()]
    assert refuse_unreadable(analysis, elsewhere) is None  # neither is a cell of the contrast


@pytest.mark.parametrize(
    ("more", "tasks", "said"),
    [
        ({}, (1,), "there are 1 clusters"),
        ({"strata": ["difficulty"]}, (1, 2), "stratum 'easy' has one cluster"),
    ],
)
def test_a_bootstrap_that_can_not_vary_is_refused_at_the_freeze(more, tasks, said):
    """One cluster, or one in a stratum, could never give an interval."""
    analysis = Analysis.model_validate(contrasts(bootstrap=BOOTSTRAP | more))
    with pytest.raises(ExperimentError, match=f"C1: bootstrap: {said}"):
        refuse_unreadable(analysis, cells(tasks))


@pytest.mark.parametrize(
    ("more", "n", "best"),
    [
        ({}, 5, 1 / 32),
        ({"alternative": "two-sided"}, 5, 1 / 16),
        ({"test": "mcnemar-clustered", "cluster": "task"}, 5, pytest.approx(0.0126737, abs=1e-7)),  # z = sqrt(5)
        ({"test": "fisher"}, 10, pytest.approx(1 / 252)),
        ({"test": "count-rule", "separation": 3}, 5, None),
    ],
)
def test_what_is_foreseen_of_each_test(more, n, best):
    """How many pairs (cells, where arms are not paired) and the best p-value, in words that name the test."""
    analysis = Analysis.model_validate(contrasts(**more))
    found = foreseen(analysis.contrasts[0], cells(range(1, 6)), analysis)
    assert (found["n"], found["best_attainable_p"], found["power"]) == (n, best, None)
    assert foreseen(analysis.contrasts[0], [], analysis)["best_attainable_p"] is None


def test_power_is_at_holms_first_level_or_a_registered_one():
    """Two contrasts halve the level; a descriptive one and a count rule are no part of the family."""
    power = {"pairs": 38, "share": 0.737}
    others = [
        {"name": "C2", "treatment": "B", "control": "A"},
        {"name": "C3", "treatment": "B", "control": "A", "family": "descriptive"},
        {"name": "C4", "treatment": "B", "control": "A", "test": "count-rule", "separation": 3},
    ]
    analysis = Analysis.model_validate({"contrasts": [CONTRAST | {"power": power}, *others]})
    assert foreseen(analysis.contrasts[0], cells(), analysis)["power"]["alpha"] == 0.025
    given = Analysis.model_validate({"contrasts": [CONTRAST | {"power": power | {"alpha": 0.01}}, *others]})
    assert foreseen(given.contrasts[0], cells(), given)["power"]["alpha"] == 0.01
