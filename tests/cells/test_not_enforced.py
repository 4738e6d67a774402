"""What a backend did not enforce is said wherever a run's figures are."""

from __future__ import annotations

import json

from cells.plan import Progress
from cells.readings import score, scoreboard_to_json
from cells.score_view import plain_scoreboard
from harness.analysis import Analysis
from tests.cells.scoring_cases import key, outcome
from tests.cells.test_report import report

WHY = {"tmp_inodes": "bubblewrap can't limit the number of files of a memory file system"}
LINE = f"not enforced where these cells were played: tmp_inodes: {WHY['tmp_inodes']}"


def board(not_enforced=WHY):
    """A scoreboard of one cell."""
    return score(
        [key(1, "A")], [outcome(key(1, "A"), "PASS")], Analysis(), head="1:a", registration_id="r",
        not_enforced=not_enforced,
    )  # fmt: skip


def test_every_output_says_what_was_not_enforced():
    """The terminal's text, the JSON and the report."""
    assert LINE in plain_scoreboard(board()).splitlines()
    assert json.loads(json.dumps(scoreboard_to_json(board())))["not_enforced"] == WHY
    assert "not enforced where these cells were played: tmp" in report(board()).replace("\\", "")


def test_what_was_all_enforced_says_nothing():
    """No line where there is nothing to say."""
    assert "not enforced" not in plain_scoreboard(board({}))
    assert scoreboard_to_json(board({}))["not_enforced"] == {}


def test_it_is_read_from_every_session():
    """A promise that one session's backend did not keep stays said, whatever a later one kept."""
    progress = Progress()
    progress.add("session.started", {"guarantees": {"network": None, **WHY}})
    progress.add("session.started", {"guarantees": {"network": None, "tmp_inodes": None, "cpu": "no control groups"}})
    assert progress.not_enforced == {**WHY, "cpu": "no control groups"}
    assert progress.sessions == 2
