"""EvalPlus's own two files, whole: how many tasks each has, and each of its profiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.tasks.evalplus import load_evalplus
from harness.tasks.profiles import PROFILES, hidden_over

pytestmark = [pytest.mark.live, pytest.mark.only_with("evalplus-files"), pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are kept below the test's own folder."""
    monkeypatch.setenv("PROCTOR_HOME", str(tmp_path / "home"))


def records(benchmark: str) -> list[dict[str, Any]]:
    """The sealed records of every task that is loaded."""
    return [json.loads(task.sealed.tests["evalplus.json"]) for task in load_evalplus(benchmark)]


def test_both_benchmarks_whole() -> None:
    """HumanEval+ has 164 tasks, of which 126 have over 300 hidden tests; MBPP+ has 378, and none has."""
    assert [(len(found), hidden_over(found, 300)) for found in (records("humaneval"), records("mbpp"))] == [
        (164, 126),
        (378, 0),
    ]


def test_each_profile_keeps_365_of_mbpp() -> None:
    """Each keeps its 365 tasks; what the first leaves out are just those with a tolerance."""
    for name, item in PROFILES.items():
        kept = [task.open.name for task in load_evalplus("mbpp", profile=name)]
        assert (len(kept), len(set(kept))) == (365, 365)
        assert not set(kept) & set(item.left_out)
    tolerant = {record["task_id"] for record in records("mbpp") if record["atol"] != 0}
    assert tolerant == set(PROFILES["mbpp365-reconstruction-isclose"].left_out)
