"""The whole published table of contrasts, made by `score()` from pairs with the published counts, to its digits."""

import re
from functools import cache

import pytest

from cells.planned import foreseen
from cells.readings import score
from cells.score_view import plain_scoreboard
from tests.cells.published_study import BOOTSTRAP, CELLS, DESCRIBED, NETS, PRINTED, RISKS, UNLOCKS, study


@cache
def board():
    """The scoreboard of the study; it is made once, since 50,000 draws of eight contrasts take a moment."""
    declared, outcomes, analysis = study()
    return score(declared, outcomes, analysis, head="h" * 64, registration_id="r1")


def contrast(name):
    """One contrast of the study."""
    (found,) = [item for item in board().contrasts if item.name == name]
    return found


def printed(value, like):
    """A figure with as many digits as another has in print, leading zeros apart."""
    places = len(like.partition(".")[2])
    return f"{value:.{places}f}"


def test_the_made_up_pairs_are_the_studys():
    """290 units in 202 clusters, and each arm unlocks as many as published."""
    assert sum(units for _benchmark, _model, units, _first in CELLS) == 290
    assert contrast("C1").bootstrap.clusters == 202
    assert {arm.group.arm for arm in board().arms} == {*UNLOCKS, "BI"}
    for name, passed in UNLOCKS.items():
        assert sum(arm.passed for arm in board().arms if arm.group.arm == name) == passed


@pytest.mark.parametrize("name", PRINTED)
def test_every_published_row(name):
    """Counts, exact p, Holm p within its family, share with interval and odds ratio come out as printed."""
    b01, b10, p, holm, share, (low, high), ratio = PRINTED[name]
    found = contrast(name)
    assert (found.pairs.treatment_only, found.pairs.control_only, found.pairs.judged) == (b01, b10, 290)
    assert printed(found.p_value, p) == p
    assert printed(found.p_holm, holm) == holm
    assert printed(found.share, share) == share
    assert (printed(found.share_low, low), printed(found.share_high, high)) == (low, high)
    assert printed(found.odds_ratio, ratio) == ratio
    assert found.family == ("primary" if name[0] == "C" else "sixth arm")
    assert found.supported is (name != "D1")


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_descriptive_row(name):
    """The descriptive contrasts have their raw p, no adjusted one, and no verdict."""
    b01, b10, p = DESCRIBED[name]
    found = contrast(name)
    assert (found.pairs.treatment_only, found.pairs.control_only) == (b01, b10)
    assert printed(found.p_value, p) == p
    assert (found.p_holm, found.supported) == (None, None)


@pytest.mark.parametrize("name", NETS)
def test_the_nets_of_the_cells(name):
    """Each stratum has its published net, and they add up to the pool's."""
    strata = contrast(name).strata
    assert [part.name for part in strata] == [f"{benchmark}|{model}" for benchmark, model, _units, _first in CELLS]
    assert tuple(part.pairs.net for part in strata) == NETS[name]
    assert [part.pairs.declared for part in strata] == [units for _benchmark, _model, units, _first in CELLS]
    assert sum((part.pairs.treatment_only for part in strata), 0) == contrast(name).pairs.treatment_only


def test_the_published_guards():
    """The harm gate fails C1 at 0.0241 and passes C2 at 0.0103; 3 is less than half of 18; no cell turns round."""
    words = {item.name: (item.passes, f"{item.value:.4f}") for item in board().guards}
    assert words == {
        "rescue": (True, "3.0000"),
        "harm C1": (False, "0.0241"),
        "harm C2": (True, "0.0103"),
        "cells C3": (True, "-1.0000"),
    }


def test_the_published_power():
    """0.72 and 0.83 at the level that Holm begins with, in the scoreboard and before the run alike."""
    declared, _outcomes, analysis = study()
    before = [foreseen(item, declared, analysis)["power"] for item in analysis.contrasts]
    assert [f"{one['power']:.2f}" for one in before[:2]] == ["0.72", "0.83"]
    assert before[2:] == [None] * 6
    assert contrast("C1").power.alpha == pytest.approx(0.05 / 3)
    assert (f"{contrast('C1').power.power:.2f}", f"{contrast('C2').power.power:.2f}") == ("0.72", "0.83")


@pytest.mark.parametrize("name", RISKS)
def test_the_published_risk_differences(name):
    """The risk differences as printed; which units share a cluster was not published, so the ends nearly."""
    value, low, high = RISKS[name]
    found = contrast(name).bootstrap
    assert f"{100 * found.value:.2f}" == f"{value:.2f}"
    assert 100 * found.low == pytest.approx(low, abs=0.75)
    assert 100 * found.high == pytest.approx(high, abs=0.75)
    assert (found.n, found.replicates, found.seed, found.undefined) == (290, BOOTSTRAP["replicates"], 1, None)


def test_the_table_as_a_person_reads_it():
    """The figures above stand in the plain scoreboard, in tables by family, with guards, strata and power."""
    text = plain_scoreboard(board())
    for line in (
        r"C1 +B passes more than P +none +supported +25 +7 +0.001051 +0.002102",
        r"C2 +CF-SF passes more than P +none +supported +21 +3 +0.0001386 +0.0004157",
        r"D1 +B passes more than BI +none +not supported +18 +15 +0.3642 +0.3642",
        r"TC - B +TC passes more than B +none +descriptive +12 +23 +0.9795 +undefined",
        r"harm C1 +harm-gate +C1 +b10 / n <= 0.02 +FAIL +290 +0.0241",
        r"harm C2 +harm-gate +C2 +b10 / n <= 0.02 +PASS +290 +0.0103",
        r"HE\+\|qwen-1.5b +24 ",
        r"pool +290 +25 +7 ",
    ):
        assert re.search(rf"^{line}", text, re.MULTILINE), line
    assert "C1: registered power 0.717: 38 discordant pairs, share 0.737, level 0.0167." in text
    assert "50,000 replicates, seed 1" in text
