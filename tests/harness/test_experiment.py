"""The experiment file: what is refused, and in which words."""

from __future__ import annotations

import re

import pytest

from harness.errors import ExperimentError
from harness.experiment import parse_experiment

GOOD = """
name = "e"
question = "q?"
arms = ["B", "P"]
[[tasks]]
source = "evalplus:humaneval"
[[models]]
name = "m"
provider = "local"
model = "x"
[seat]
kind = "oneshot"
seed_namespace = "ns"
[referee]
name = "evalplus"
[analysis]
[[analysis.contrasts]]
name = "c"
treatment = "P"
control = "B"
"""


def test_a_good_file_has_its_defaults() -> None:
    """What is left out is written down with its default."""
    experiment = parse_experiment(GOOD)
    assert experiment.workspace.backend == "auto"
    assert (experiment.replicates, experiment.retries.void, experiment.extras) == (1, 1, ["none"])
    assert experiment.models[0].ways()[0].provider == "local"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "e"', 'nmae = "e"', r"nmae: unknown key 'nmae'. Did you mean 'name'\?"),
        ('kind = "oneshot"', 'kindd = "oneshot"', r"seat.kindd: unknown key 'kindd'. Did you mean 'kind'\?"),
        ('source = "evalplus', 'sauce = "evalplus', r"tasks.0.sauce: unknown key 'sauce'. Did you mean 'source'\?"),
        ('treatment = "P"', 'treatment = "Q"', r"unknown arm 'Q'. Known: B, P"),
        ('treatment = "P"', 'treatment = "p"', r"unknown arm 'p'. Did you mean 'P'\? Known: B, P"),
        ('arms = ["B", "P"]', 'arms = ["B", "P", "B"]', r"\n  file: arm 'B' is listed 2 times: expected once$"),
        ('arms = ["B", "P"]', "arms = []", r"arms: .*at least 1"),
        ('model = "x"', "", r"either `provider` and `model`, or `choices`"),
        ('question = "q?"', "", r"question: missing, and required"),
        ('seed_namespace = "ns"', 'seed_namespace = "n|s"', r"seat.seed_namespace: .*got 'n|s'"),
        ('kind = "oneshot"', 'kind = "oneshot"\ndecoding = { temperature = nan }', r"temperature.*nan"),
        ('kind = "oneshot"', 'kind = "oneshot"\ndecoding = { temperature = inf }', r"temperature.*inf"),
        (
            "[analysis]",
            "[budgets.cell]\nusd = 1.0\n[analysis]",
            r"`usd` needs `rates` or `rate_card` on every model: m has none",
        ),
        (
            'model = "x"',
            'model = "x"\nrates = { input = -1.0, output = 1.0 }',
            r"rates.input: .*a rate of -1.0: expected US",
        ),
        ('model = "x"', 'model = "x"\nrates = { input = nan, output = 1.0 }', r"rates.input: .*nan"),
        ('model = "x"', 'model = "x"\nrates = { input = 1e-13, output = 1.0 }', r"rates.input: .*at most 12 decimals"),
        ('model = "x"', 'model = "x"\nrates = { output = 1.0 }', r"rates.input: missing, and required"),
        ("[analysis]", '[cost]\nrounding = "dimes"\n[analysis]', r"cost.rounding: .*'raw' or 'cents', got 'dimes'"),
        ("[analysis]", "[budgets.cell]\ntokens = 0\n[analysis]", r"budgets.cell.tokens: .*got 0"),
        ("[analysis]", '[budgets.cell]\ntokens = "many"\n[analysis]', r"budgets.cell.tokens: .*got 'many'"),
        ("[analysis]", "replicates = 3\n[analysis]", r"referee.replicates: unknown key"),
        ("[analysis]", "[workspace.limits]\npids = 1.5\n[analysis]", r"workspace.limits.pids: .*got 1.5"),
        ('name = "e"', 'name = "a/b"', r"name: .*got 'a/b'"),
        ('name = "e"', "name = ", r"not valid TOML"),
    ],
)
def test_what_is_wrong_is_named_with_what_was_expected(old: str, new: str, message: str) -> None:
    """Each message has the place, the bad value, and the known names or the form."""
    assert old in GOOD
    with pytest.raises(ExperimentError) as caught:
        parse_experiment(GOOD.replace(old, new, 1), "here.toml")
    assert re.search(message, str(caught.value)), str(caught.value)


def test_every_fault_is_told_at_once() -> None:
    """A person mends a file once."""
    with pytest.raises(ExperimentError) as caught:
        parse_experiment(GOOD.replace("question", "qestion").replace("kind", "knd"))
    assert {line.split(":")[0].strip() for line in str(caught.value).splitlines()[1:]} >= {
        "question",
        "qestion",
        "seat.knd",
    }
