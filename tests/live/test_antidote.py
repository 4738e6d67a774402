"""
The example of the feedback study, by its commands and with a real model: a pool, the freeze, six arms in lockstep, the
audit, the family of contrasts, a report. Two dead units, two rounds and short answers keep it short.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cells.cli import app
from harness.models.fetch import fetch
from tests.cells.antidote_house import ARMS, UNPINNED, environment, written
from tests.cells.houses import outcomes
from tests.cells.mirrored_house import states

pytestmark = [pytest.mark.live, pytest.mark.timeout(400)]

SHORTER = {
    "draw = { seed = 1, n = 2 }": "draw = { seed = 1, n = 1 }",
    "draw = { seed = 1, n = 3 }": "draw = { seed = 1, n = 1 }",
    "rounds = 4": "rounds = 2",
    "calls = 4": "calls = 2",
    'cluster = "task", strata = ["benchmark"]': 'cluster = "task"',
    "num_predict = 96": "num_predict = 40",
}
"""What a test has no time for, and a bootstrap that one unit a benchmark can bear; all else is the example's own file."""

DEAD = {
    "task_id": "Dead/0",
    "prompt": 'def lot(x):\n    """Return the lot number of the whole number x."""\n',
    "entry_point": "lot",
    "canonical_solution": "    return (x * 7919 + 13) % 101\n",
    "contract": "",
    "base_input": [[1], [2]],
    "plus_input": [[3]],
    "atol": 0,
}
"""A task that its text does not define: every model's candidate runs, and fails with facts."""


def proctor(*words: object) -> str:
    """What a command of ours says, which must end well."""
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done.stdout


def said(*words: object) -> Any:
    """The same as JSON."""
    return json.loads(proctor(*words, "--json"))


def shortened(folder: Path) -> Path:
    """The example's small file, with less to do."""
    path = written(folder, "small.toml", [DEAD])
    text = path.read_text("utf-8")
    for old, new in SHORTER.items():
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text, "utf-8")
    return path


def test_the_example_from_pool_to_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real model's candidates are dead, its rounds are mirrored byte for byte, and the audit finds nothing."""
    fetch("smollm2-135m-instruct")
    monkeypatch.chdir(tmp_path)
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    path = shortened(tmp_path)
    pool = said("pool", "make", path, "--n", 2, "--out", "small-pool.jsonl")
    assert (pool["missing"], len(pool["dead"])) == (0, 2)
    path.write_text(path.read_text("utf-8").replace(UNPINNED, f'sha256 = "{pool["sha256"]}"'), "utf-8")
    assert "prompts of smollm2-135m: at most 3072 tokens, by xllamacpp's own tokeniser" in proctor("freeze", path)
    proctor("run", path)
    (folder,) = (tmp_path / "runs").iterdir()
    assert sorted(one.cell.arm for one in outcomes(folder) if one.is_final) == sorted(ARMS * 2)
    assert states(folder, "CF-SF") == states(folder, "GR-SHAPE") == states(folder, "TC")
    assert len(states(folder, "TC")) == 2 * 2
    assert any(bullets for _block, _code, bullets, _source in states(folder, "TC").values())
    assert said("audit", folder)["verdict"] == "CLEAN"
    proctor("verify", folder)
    board = said("score", folder)
    assert [item["family"] for item in board["contrasts"]] == ["primary"] * 3 + ["sixth arm"] * 2 + ["descriptive"] * 3
    assert {item["fate"] for item in said("predictions", folder)["predictions"]} <= {"HOLDS", "UNRESOLVED"}
    assert "GR-SHAPE" in Path(said("report", folder)["md"]).read_text("utf-8")
