"""What a freeze refuses of what was said beforehand, and what it prints of what can be shown at best."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cells.freeze import Frozen, freeze
from cells.freeze_view import freeze_lines
from harness.clock import SystemClock
from harness.errors import ExperimentError
from harness.experiment import Experiment
from harness.registration import load_registration
from tests.cells.houses import fake_backend, fakes, frozen_run, write_experiment

pytestmark = pytest.mark.anyio

CLAIM = """
[[predictions]]
name = "cheap"
claim = "A task under P takes about so many calls."
point = { of = { arm = "P", task = "Fake/1", figure = "median_calls" }, value = 3, tolerance = 1 }
refuted_by = [{ above = 5 }]
"""

RATIO = """
[[analysis.ratios]]
name = "premium"
treatment = "P"
control = "B"
quantity = "tokens"
alternative = "greater"
"""

BAND = """
[[predictions]]
name = "premium of one"
claim = "The control's median of one task."
band = { of = { ratio = "premium", task = "Fake/2", figure = "control_median" }, low = 100, high = 900 }
refuted_by = [{ above = 900 }]
"""

TOTAL = """
[[predictions]]
name = "all"
claim = "All of it together."
band = { of = { figure = "calls_total" }, low = 6, high = 50 }
refuted_by = [{ above = 60 }]
"""


async def lines_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, **others: Any) -> tuple[Frozen, str]:
    """A frozen experiment, and what is printed of it."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path, more=more, **others)
    return frozen, "\n".join(freeze_lines(frozen))


async def test_what_was_said_is_frozen_with_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registration holds the predictions as they were written; the same claims come back from it."""
    frozen, _lines = await lines_of(tmp_path, monkeypatch, CLAIM)
    kept = Experiment.model_validate(dict(load_registration(frozen.folder).experiment))
    assert kept.predictions == frozen.parts.experiment.predictions
    assert kept.predictions[0].refs[0].task == "Fake/1"


async def test_a_task_that_is_not_declared_is_refused_with_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks are known at freeze; nothing is written for what can't be."""
    with pytest.raises(ExperimentError, match=r"unknown task 'Fake/9'. Did you mean 'Fake/[0-2]'\?"):
        await lines_of(tmp_path, monkeypatch, CLAIM.replace("Fake/1", "Fake/9"))
    assert not (tmp_path / "runs").exists()


async def test_a_stratum_that_no_unit_is_in_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Strata are known by the declared cells: the benchmark of this one is `tasks`."""
    more = """
strata = ["benchmark"]
[[predictions]]
name = "part"
claim = "It helps there."
point = { of = { contrast = "P over B", stratum = "NAME", figure = "net" }, value = 3, tolerance = 0 }
refuted_by = [{ below = 0 }]
"""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        path = write_experiment(tmp_path)
        text = path.read_text("utf-8")
        for name, told in (("taks", r"unknown stratum 'taks'. Did you mean 'tasks'\?"), ("tasks", None)):
            path.write_text(text + more.replace("NAME", name), "utf-8")
            if told is not None:
                with pytest.raises(ExperimentError, match=told):
                    await freeze(path, tmp_path / "runs", clock=SystemClock())
            else:
                assert (await freeze(path, tmp_path / "runs", clock=SystemClock())).folder.is_dir()


async def test_a_stop_rule_that_is_met_at_once_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a run would end before it begins."""
    with pytest.raises(ExperimentError, match=r"stop rule 'none passed' .* is met before the first cell"):
        await lines_of(tmp_path, monkeypatch, '[[stops]]\nname = "none passed"\nfigure = "passed"\nbelow = 1\n')
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("more", "budget", "sentence"),
    [
        (
            CLAIM,
            "[budgets.cell]\ncalls = 2\n",
            (
                "prediction 'cheap', median_calls of arm 'P', task 'Fake/1' = 3, is above the cell's budget of 2 calls: "
                "a predicted halt"
            ),
        ),
        (CLAIM, "[budgets.cell]\ncalls = 3\n", None),
        (CLAIM, "[budgets.cell]\ntokens = 2\n", None),
        (CLAIM, "[budgets.run]\ncalls = 2\n", None),
        (
            RATIO + BAND,
            "[budgets.cell]\ntokens = 800\n",
            (
                "prediction 'premium of one', control_median of ratio 'premium', task 'Fake/2' up to 900, is above the "
                "cell's budget of 800 tokens: a predicted halt"
            ),
        ),
        (RATIO + BAND, "[budgets.cell]\ntokens = 900\n", None),
        (
            TOTAL,
            "[budgets.run]\ncalls = 40\n",
            (
                "prediction 'all', calls_total of the whole set up to 50, is above the run's budget of 40 calls: "
                "a predicted halt"
            ),
        ),
        (TOTAL, "[budgets.cell]\ncalls = 40\n", None),
    ],
)
async def test_a_claim_above_a_budget_is_named_a_predicted_halt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, budget: str, sentence: str | None
) -> None:
    """A cell's budget for medians, the run's for totals; at the budget is not above it."""
    frozen, lines = await lines_of(tmp_path, monkeypatch, budget, model=MODEL + more)
    found = [halt["sentence"] for halt in frozen.registration.outlook["predicted_halts"]]
    assert found == ([] if sentence is None else [sentence])
    assert ("a predicted halt" in lines) == (sentence is not None)


MODEL = '[models.options]\nreplies = ["```python\\nx = 1\\n```"]\n'

SECOND = """
[[analysis.contrasts]]
name = "B over P"
treatment = "B"
control = "P"
"""


async def test_a_test_that_can_not_reach_its_level_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three pairs reach 0.125 at best; in 5 replicates one test reaches the level and two of a family do too."""
    _frozen, lines = await lines_of(tmp_path, monkeypatch, "")
    assert "P over B: exact McNemar, greater, n = 3: the best attainable p is 0.125\n    it can't reach 0.05" in lines
    frozen, lines = await lines_of(tmp_path / "five", monkeypatch, "", replicates=5)
    assert "it can't reach" not in lines
    assert frozen.registration.outlook["tests"][0]["in_reach"] is True


async def test_the_family_is_taken_into_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six pairs reach 0.0156 alone and 0.0625 in a family of four: then none of the four can reach 0.05."""
    family = "".join(SECOND.replace("B over P", f"again {number}") for number in range(3))
    frozen, lines = await lines_of(tmp_path, monkeypatch, "", replicates=2)
    assert frozen.registration.outlook["tests"][0]["in_reach"] is True
    path = tmp_path / "experiment.toml"
    path.write_text(path.read_text("utf-8") + family, "utf-8")
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await freeze(path, tmp_path / "runs", clock=SystemClock())
    lines = "\n".join(freeze_lines(frozen))
    assert [test["in_reach"] for test in frozen.registration.outlook["tests"]] == [False] * 4
    assert "the best attainable p is 0.01562, 0.0625 adjusted in family 'primary'" in lines
    assert lines.count("it can't reach 0.05") == 4


async def test_a_count_rule_has_no_p_to_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is outside the family, so that the contrast beside it stands alone."""
    rule = SECOND.replace('"B over P"', '"counted"') + 'test = "count-rule"\nseparation = 2\n'
    with fakes(monkeypatch, fake_backend(tmp_path)):
        path = write_experiment(tmp_path, replicates=2)
        path.write_text(path.read_text("utf-8") + rule, "utf-8")
        frozen = await freeze(path, tmp_path / "runs", clock=SystemClock())
    tests = frozen.registration.outlook["tests"]
    assert [(test["best_attainable_holm"], test["in_reach"]) for test in tests] == [(0.5**6, True), (None, None)]
    assert "counted: count rule, without a p-value, greater, n = 6: it has no p-value" in "\n".join(
        freeze_lines(frozen)
    )


async def test_what_can_not_be_built_is_named_with_its_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each condition that a gate refuses, its reason once, its replicates counted."""
    _frozen, lines = await lines_of(tmp_path, monkeypatch, 'extras = ["none", "statement"]\n', replicates=2)
    assert "12 of 24 declared cells can be built" in lines
    assert "12 refused by gate 'extras':" in lines
    for task in range(3):
        assert f"the card of tasks/Fake/{task} carries no extras:" in lines
        assert f"tasks|Fake/{task}|P|statement|m (2 replicates)" in lines
