"""What else differed between the arms is said in sentences, and what was not written down is not taken for the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cells.confounds import LOAD_MARGIN, Circumstances, circumstances, confounds, labels_of
from cells.declared.recorded import as_cell
from cells.declared.rows import ForeignCell, ForeignKey, ForeignReading, ForeignSpend
from harness.values import Declared, ExactPrice
from tests.cells.scoring_cases import key, outcome

KNOWN = {"run": "r", "load": 1.0, "at_once": 2, "served": "big-1", "rate_card": "2026-09-15", "backend": "docker"}


def cell(arm, **changes):
    """A cell of which everything is known."""
    return Circumstances(arm=arm, extras="none", model="m", **{**KNOWN, **changes})


def test_arms_under_the_same_circumstances_have_no_confound():
    """Nothing differs, and nothing is unknown."""
    assert confounds([cell("A"), cell("B")]) == ()
    assert confounds([cell("A", load=1.0), cell("B", load=1.0 + LOAD_MARGIN)]) == ()
    assert confounds([]) == ()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"load": 1.3},
            "The machine's load differs {where}, medians a CPU: A 1.00, B 1.30; seconds are no clean comparison.",
        ),
        ({"at_once": 4}, "Cells at once differ {where}, medians: A 2.00, B 4.00; seconds are no clean comparison."),
        (
            {"served": "big-2"},
            "The served model differs {where}: A big-1 1 of 1; B big-2 1 of 1; dollars and tokens are of different models.",
        ),
        (
            {"rate_card": "2026-10-01"},
            (
                "The date of the rates differs {where}: A 2026-09-15 1 of 1; B 2026-10-01 1 of 1; "
                "dollars are of different prices."
            ),
        ),
        (
            {"backend": "bubblewrap"},
            "The backend differs {where}: A docker 1 of 1; B bubblewrap 1 of 1; seconds are of different machinery.",
        ),
        (
            {"run": "s"},
            (
                "The run differs {where}: A r 1 of 1; B s 1 of 1; "
                "whatever changed between the runs changed between the arms."
            ),
        ),
    ],
)
def test_each_circumstance_is_told_by_itself(changes, sentence):
    """With the figures of each arm, and what they cast doubt on."""
    where = "between the arms (extras none, model m)"
    assert confounds([cell("A"), cell("B", **changes)]) == (sentence.format(where=where),)


def test_shares_are_compared_and_not_sets():
    """Half and half in both arms is no confound, whatever their sizes; half against a quarter is one."""
    half = [cell("A"), cell("A", backend="bubblewrap")]
    assert confounds([*half, *[one._replace(arm="B") for one in half * 2]]) == ()
    quarter = [cell("B"), cell("B"), cell("B"), cell("B", backend="bubblewrap")]
    (sentence,) = confounds([*half, *quarter])
    assert "A bubblewrap 1 of 2, docker 1 of 2; B bubblewrap 1 of 4, docker 3 of 4" in sentence


def test_only_what_is_compared_is_held_against_each_other():
    """Arms under other extras or on another model are no comparison, and one arm alone is none either."""
    other = cell("B", backend="bubblewrap")._replace(model="n")
    assert confounds([cell("A"), other]) == ()
    assert confounds([cell("A"), other._replace(model="m", extras="statement")]) == ()


def test_what_is_not_known_is_said():
    """It may have differed: how many cells, of what."""
    found = confounds([cell("A", load=None, backend=None), cell("A"), cell("B", load=None)])
    assert found == (
        (
            "Not known, and so perhaps different between the arms (extras none, model m): load (2 of 3 cells), "
            "backend (1 of 3 cells)."
        ),
    )


def test_a_recorded_cell_tells_by_its_room():
    """The mean of the load at start and end a CPU, the most cells at once, and who served."""
    looks = {
        "start": {"load_1m": 2.0, "cpus": 2, "cells": 1, "runnable": 1, "free_memory_bytes": 1},
        "end": {"load_1m": 4.0, "cpus": 2, "cells": 3, "runnable": 1, "free_memory_bytes": 1},
    }
    played = replace(outcome(key(1, "A"), "PASS"), room={"load": looks}, served_models=("big-1", "big-2"))
    of_run = {"run": "r", "backend": "docker", "rate_card m": "2026-09-15"}
    (found,) = circumstances([played, outcome(key(1, "B"), "VOID(fence)")], of_run)
    assert found == cell("A", load=1.5, at_once=3, served="big-1, big-2")
    (bare,) = circumstances([outcome(key(1, "A"), "PASS")], {})
    assert bare == Circumstances(arm="A", extras="none", model="m")


def test_a_cell_keeps_its_circumstances_in_a_set_of_several_runs():
    """As labels, which tell of a foreign cell what the record told of it."""
    looks = {"start": {"load_1m": 1.0, "cpus": 1, "cells": 2}}
    played = replace(outcome(key(1, "A"), "PASS"), room={"load": looks}, served_models=("big-1",))
    of_run = {"run": "r", "backend": "docker", "rate_card m": "2026-09-15"}
    (found,) = circumstances([as_cell("r", played, labels=labels_of(played, of_run))], {})
    assert found == cell("A") == circumstances([played], of_run)[0]
    assert labels_of(outcome(key(1, "A"), "PASS"), {}) == {}


def test_a_foreign_cell_tells_by_its_labels():
    """By the names of the fields; a text that is no number is not known."""

    def foreign(**labels):
        name = ForeignKey(run="r", id="c1", benchmark="b", task="t", arm="A", extras="none", model="m")
        said = ForeignReading(reading="PASS", standing="accepted")
        spend = ForeignSpend(price=ExactPrice(usd=1.0))
        return ForeignCell(cell=name, end=Declared(), verdict=said, spend=spend, labels=labels)

    told = foreign(load="1.0", at_once="2", served="big-1", rate_card="2026-09-15", backend="docker", account="x")
    assert circumstances([told], {}) == [cell("A")]
    assert circumstances([foreign(load="busy")], {}) == [Circumstances(arm="A", extras="none", model="m", run="r")]
