"""The pages say what a registered analysis may hold, and what its readings add to the JSON."""

import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from cells.bootstrap_reading import BootstrapReading
from cells.bounds import Bounds
from cells.contrasts import Groups
from cells.guards import GuardReading
from cells.planned import TESTS, Power
from cells.spread_reading import OwnSpread, Wide
from cells.strata import Stratum
from harness.analysis import Analysis, Contrast
from harness.grouping import Expected, Grouping, Resampling
from harness.guarding import HarmGate, MaterialRescue, StratumGate

ROOT = Path(__file__).parents[2]
SCORING = (ROOT / "docs" / "reference" / "scoring.md").read_text("utf-8")
TEMPLATE = (ROOT / "cells" / "templates" / "experiment.toml").read_text("utf-8")


@pytest.mark.parametrize("model", [Expected, Grouping, Resampling, HarmGate, MaterialRescue, StratumGate])
def test_every_field_of_the_small_tables_is_listed(model):
    """Each is on the page of scoring, and has a line of its own in the code."""
    for name, field in model.model_fields.items():
        assert f"`{name}`" in SCORING
        assert field.description


@pytest.mark.parametrize("value", [Groups, Stratum, Bounds, BootstrapReading, Power, GuardReading, Wide, OwnSpread])
def test_every_field_of_the_json_is_listed(value):
    """Each field that `scoreboard_to_json` writes of these is on the page of scoring."""
    for item in fields(value):
        assert f"`{item.name}`" in SCORING


def test_every_test_is_explained_and_has_words():
    """A name that may be registered is on the page, and is called by something in print."""
    names = Contrast.model_fields["test"].annotation.__args__
    assert set(names) == set(TESTS)
    for name in names:
        assert f"| `{name}` |" in SCORING


def test_the_template_shows_each_test_but_the_unpaired_one_in_use():
    """With every `#` taken away the template's analysis is one, with strata, a bootstrap, power, guards and a grouping."""
    text = "\n".join(line.removeprefix("#") if not line.startswith("# ") else line for line in TEMPLATE.splitlines())
    analysis = Analysis.model_validate(tomllib.loads(text)["analysis"])
    assert {item.test for item in analysis.contrasts} == {"mcnemar", "mcnemar-clustered", "count-rule"}
    assert [guard.kind for guard in analysis.guards] == ["harm-gate", "stratum-gate", "material-rescue"]
    first = analysis.contrasts[0]
    assert first.bootstrap is not None
    assert first.power is not None
    assert first.strata == ("benchmark", "difficulty")
