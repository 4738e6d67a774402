"""The pages on statistics and scoring say what the code does."""

import doctest
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

import cells.stats
from cells.charges import Charge, Charges, Per
from cells.conditions import CLASSES, Census
from cells.contrasts import ContrastReading
from cells.costs import Cost, Median
from cells.groups import Group
from cells.pair_counts import PairCounts
from cells.ratios import RatioReading, TaskRatio
from cells.readings import Scoreboard, Tries
from cells.selection import ArmShare, Imbalance
from cells.spent import Spent, Total
from harness.analysis import Analysis, Contrast, Ratio

DOCS = Path(__file__).parents[2] / "docs"
STATISTICS = DOCS / "explanation" / "statistics.md"
SCORING = (DOCS / "reference" / "scoring.md").read_text("utf-8")


def test_the_examples_run():
    """Each example on the page of statistics gives what the page shows."""
    result = doctest.testfile(str(STATISTICS), module_relative=False)
    assert result.failed == 0
    assert result.attempted > 10


@pytest.mark.parametrize("name", sorted(name for name in cells.stats.__all__ if name.islower()))
def test_every_function_is_explained(name):
    """Each public function of the package has its place on the page of statistics."""
    assert f"{name}(" in STATISTICS.read_text("utf-8")


@pytest.mark.parametrize("model", [Analysis, Contrast, Ratio])
def test_every_field_of_the_analysis_is_listed(model):
    """Each field of the experiment file's analysis is on the page of scoring, and has a line of its own in the code."""
    for name, field in model.model_fields.items():
        assert f"`{name}`" in SCORING
        assert field.description


@pytest.mark.parametrize(
    "value",
    [
        Scoreboard,
        Tries,
        Group,
        Census,
        Cost,
        Median,
        Charges,
        Charge,
        Per,
        Spent,
        Total,
        ContrastReading,
        PairCounts,
        RatioReading,
        TaskRatio,
        Imbalance,
        ArmShare,
    ],
)
def test_every_field_of_the_json_is_listed(value):
    """Each field that `scoreboard_to_json` writes is on the page of scoring."""
    derived = [name for name, item in vars(value).items() if isinstance(item, property)]
    for name in (*(item.name for item in fields(value)), *derived):
        assert f"`{name}`" in SCORING


def test_every_class_is_listed():
    """Each class that a census prints is on the page of scoring."""
    for name in CLASSES:
        assert re.search(rf"\b{name}\b", SCORING)


def test_the_example_of_an_analysis_is_one():
    """The TOML on the page is a valid analysis."""
    (text,) = re.findall(r"```toml\n(.*?)```", SCORING, re.DOTALL)
    analysis = Analysis.model_validate(tomllib.loads(text)["analysis"])
    assert analysis.contrasts[0].qualifiers == ("ten small tasks of one author",)
    assert analysis.ratios[0].quantity == "tokens"
