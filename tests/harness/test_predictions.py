"""What may be registered of a result, and what is refused before there is one."""

from __future__ import annotations

import re

import pytest

from harness.errors import ExperimentError
from harness.experiment import Experiment, parse_experiment
from tests.harness.test_experiment import GOOD

RATIO = """
[[analysis.ratios]]
name = "r"
treatment = "P"
control = "B"
quantity = "tokens"
alternative = "two-sided"
"""

POINT = """
[[predictions]]
name = "gain"
claim = "P gains twelve units, give or take three."
point = { of = { contrast = "c", figure = "net" }, value = 12, tolerance = 3 }
refuted_by = [{ below = 0 }, { above = 30 }]
"""

BAND = """
[[predictions]]
name = "rate"
claim = "P passes between a fifth and a half."
band = { of = { arm = "P", figure = "pass_rate" }, low = 0.2, high = 0.5 }
refuted_by = [{ below = 0.1, undefined = true }]
"""

ORDERING = """
[[predictions]]
name = "order"
claim = "P passes more than B."
ordering = { greatest_first = [{ arm = "P", figure = "passed" }, { arm = "B", figure = "passed" }], inversion = 2 }
"""

TABLE = """
[[outcomes]]
verdict = "It helps."
when = [{ contrast = "c", figure = "p_holm", at_most = 0.05 }]
[[outcomes]]
verdict = "It harms."
when = [{ contrast = "c", figure = "p_holm", above = 0.05 }, { contrast = "c", figure = "net", below = 0 }]
[[outcomes]]
verdict = "It is not told apart."
when = [{ contrast = "c", figure = "p_holm", above = 0.05 }, { contrast = "c", figure = "net", at_least = 0 }]
"""

ADVERSE = """
[[adverse]]
name = "more halts under P"
when = [{ arm = "P", figure = "halted", at_least = 3 }, { arm = "B", figure = "halted", below = 3 }]
"""

STOP = """
[[stops]]
name = "money"
figure = "usd_total"
at_least = 5.0
"""


def parsed(*more: str) -> Experiment:
    """The good experiment with more tables."""
    return parse_experiment(GOOD + "".join(more))


def refusal(text: str) -> str:
    """The message of what is refused."""
    with pytest.raises(ExperimentError) as caught:
        parsed(text)
    return str(caught.value)


def test_all_of_it_is_taken_and_comes_back_from_json() -> None:
    """Predictions of each kind, a table, an adverse outcome and a stop rule; a registration keeps them as they are."""
    experiment = parsed(RATIO, POINT, BAND, ORDERING, TABLE, ADVERSE, STOP)
    assert [prediction.kind for prediction in experiment.predictions] == ["point", "band", "ordering"]
    assert [row.verdict for row in experiment.outcomes] == ["It helps.", "It harms.", "It is not told apart."]
    assert str(experiment.stops[0]) == "usd_total of the whole set at least 5"
    assert Experiment.model_validate(experiment.model_dump(mode="json")) == experiment


@pytest.mark.parametrize(
    ("good", "old", "new", "message"),
    [
        (POINT, "refuted_by = [{ below = 0 }, { above = 30 }]", "", "has no `refuted_by`"),
        (POINT, "{ below = 0 }", "{ at_most = 9 }", "prediction 'gain' holds and is refuted at 9"),
        (POINT, "tolerance = 3", "tolerance = -1", r"predictions.0.point.tolerance: .*got -1"),
        (POINT, "value = 12", "value = 0.5", "holds and is refuted at -[12]"),
        (POINT, "value = 12, tolerance = 3", "value = 0.5, tolerance = 0.25", "net of contrast 'c' is never"),
        (POINT, 'figure = "net"', 'figure = "nett"', r"Did you mean 'net'\?"),
        (POINT, 'contrast = "c"', 'contrast = "d"', "unknown contrast 'd'.* Known: c"),
        (POINT, "refuted_by", "ordering = { greatest_first = [], inversion = 0 }\nrefuted_by", "at least 2 items"),
        (POINT, "refuted_by", "band = { of = { figure = 'void' }, low = 0, high = 1 }\nrefuted_by", "point and band"),
        (POINT, "refuted_by", "refuter", r"predictions.0.refuter: unknown key 'refuter'. Did you mean 'refuted_by'\?"),
        (POINT, "claim = ", "# ", r"predictions.0.claim: missing, and required"),
        (BAND, "low = 0.2", "low = 0.6", "low 0.6 is above high 0.5"),
        (BAND, "high = 0.5", "high = nan", "finite"),
        (BAND, "below = 0.1", "below = 0", None),
        (BAND, "{ below = 0.1, undefined = true }", "{ above = 1 }", "pass_rate of arm 'P' is never above 1"),
        (BAND, "{ below = 0.1, undefined = true }", "{ at_most = 0.2 }", "holds and is refuted at 0.2"),
        (BAND, 'arm = "P"', 'arm = "Q"', "unknown arm 'Q'"),
        (ORDERING, "inversion = 2", "inversion = 2 }\nrefuted_by = [{ below = 0 }]\n#", "expected no `refuted_by`"),
        (ORDERING, 'arm = "B"', 'arm = "P"', "is ordered twice"),
        (ORDERING, '"B", figure = "passed"', '"B", figure = "pass_rate"', "are not of one kind"),
        (ORDERING, ", inversion = 2", "", r"ordering.inversion: missing"),
        (TABLE, "at_least = 0", "above = 0", "no row holds at .*net of contrast 'c' = 0"),
        (TABLE, "below = 0", "at_most = 0", r"row 2 \('It harms.'\) and row 3 \('It is not told apart.'\) both hold"),
        (TABLE, "at_most = 0.05", "below = 0.05", "no row holds at p_holm of contrast 'c' = 0.05"),
        (TABLE, '"It harms."', '"It helps."', "outcome 'It helps.' stands 2 times"),
        (TABLE, 'figure = "net", below', 'figure = "p_holm", below', "stands in two conditions"),
        (TABLE, "at_most = 0.05", "above = 1", "p_holm of contrast 'c' is never above 1"),
        (ADVERSE, "at_least = 3", "at_least = 3, at_most = 2", "no number is"),
        (ADVERSE, ", at_least = 3", "", "a region without a bound"),
        (ADVERSE, "when = [", "when = [] # [", "at least 1 item"),
        (STOP, 'figure = "usd_total"', 'contrast = "c"\nfigure = "p_value"', "is withheld while cells are missing"),
        (STOP, "at_least = 5.0", "below = 0.0", "is never below 0"),
        (STOP, 'figure = "usd_total"', 'figure = "usd_totl"', "Did you mean 'usd_total'"),
        (STOP, "at_least = 5.0", "", "a region without a bound"),
    ],
)
def test_what_can_not_be_right_wrong_or_met_is_refused(good: str, old: str, new: str, message: str | None) -> None:
    """One thing wrong at a time, told by name; `None` marks a neighbour that is fine."""
    assert old in good
    text = good.replace(old, new, 1)
    if message is None:
        parsed(text)
    else:
        assert re.search(message, refusal(text), re.DOTALL)


def test_names_stand_once_in_their_list() -> None:
    """Two predictions, adverse outcomes or stop rules of one name can't be told apart."""
    assert "prediction 'gain' stands 2 times" in refusal(POINT + POINT)
    assert "adverse outcome 'more halts under P' stands 2 times" in refusal(ADVERSE + ADVERSE)
    assert "stop rule 'money' stands 2 times" in refusal(STOP + STOP)


def test_a_table_needs_a_row_for_undefined_where_that_can_be() -> None:
    """A p-value of a sign test is undefined without a win or loss; the table must say what is concluded then."""
    rows = (
        '[[outcomes]]\nverdict = "dearer"\nwhen = [{{ ratio = "r", figure = "p_value", at_most = 0.05 }}]\n'
        '[[outcomes]]\nverdict = "not told"\nwhen = [{{ ratio = "r", figure = "p_value", above = 0.05{more} }}]\n'
    )
    assert "no row holds at p_value of ratio 'r' = undefined" in refusal(RATIO + rows.format(more=""))
    parsed(RATIO + rows.format(more=", undefined = true"))
