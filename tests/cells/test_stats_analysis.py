"""The registered analysis refuses what the experiment does not have."""

import pytest
from pydantic import ValidationError

from harness.analysis import Analysis
from harness.errors import ExperimentError

CONTRAST = {"name": "C1", "treatment": "B", "control": "P"}
RATIO = {"name": "premium", "quantity": "usd", "treatment": "B", "control": "P", "alternative": "greater"}


def test_defaults_and_round_trip():
    """An analysis read back from its own JSON is the same analysis."""
    analysis = Analysis.model_validate({"contrasts": [CONTRAST], "ratios": [RATIO]})
    assert analysis.contrasts[0].extras == "none"
    assert analysis.contrasts[0].alternative == "greater"
    assert Analysis.model_validate_json(analysis.model_dump_json()) == analysis


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"contrasts": [CONTRAST | {"treatmnt": "B"}]}, "treatmnt"),
        ({"contrasts": [CONTRAST | {"treatment": "P"}]}, "compares arm 'P' with itself"),
        ({"contrasts": [CONTRAST, CONTRAST]}, "'C1' is used more than once"),
        ({"contrasts": [CONTRAST | {"alternative": "bigger"}]}, "alternative"),
        ({"contrasts": [CONTRAST | {"name": " "}]}, "name"),
        ({"ratios": [RATIO | {"sd_ln": float("nan")}]}, "sd_ln"),
        ({"ratios": [RATIO | {"sd_ln": 0.0}]}, "sd_ln"),
        ({"ratios": [RATIO | {"min_n": 0}]}, "min_n"),
        ({"alpha": 1.0}, "alpha"),
    ],
)
def test_a_malformed_analysis_is_refused(change, says):
    """Unknown keys, an arm against itself, doubled names and figures out of range are refused by name."""
    with pytest.raises(ValidationError, match=says):
        Analysis.model_validate(change)


def test_references_are_checked_all_at_once():
    """Every unknown arm, model and extras is named in one message, with the known ones."""
    analysis = Analysis.model_validate(
        {"contrasts": [CONTRAST | {"treatment": "Bee", "extras": "stmt"}], "ratios": [RATIO | {"model": "m9"}]}
    )
    with pytest.raises(ExperimentError) as caught:
        analysis.validate_against(["B", "P"], ["m1"], ["none", "statement"])
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert "contrast 'C1': treatment: unknown arm 'Bee'" in lines[0]
    assert "Known: B, P." in lines[0]
    assert "unknown extras 'stmt'" in lines[1]
    assert "ratio 'premium': unknown model 'm9'" in lines[2]


def test_good_references_pass():
    """An analysis whose names are all known is accepted, and answers nothing."""
    analysis = Analysis.model_validate({"contrasts": [CONTRAST], "ratios": [RATIO]})
    assert analysis.validate_against({"B", "P"}, {"m1"}, {"none"}) is None
