"""
The example of the feedback study, by its commands and with a real model: a pool, the freeze, six arms in lockstep, the
audit, the family of contrasts, a report. Two dead units, two rounds and short answers keep it short.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.models.fetch import fetch
from tests.cells.antidote_house import ARMS, UNPINNED, written
from tests.cells.houses import outcomes
from tests.cells.mirrored_house import states

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

SHORTER = {
    "draw = { seed = 1, n = 2 }": "cap = 1",
    "draw = { seed = 1, n = 3 }": "cap = 1",
    "rounds = 4": "rounds = 2",
    "calls = 4": "calls = 2",
    "num_predict = 96": "num_predict = 24",
}
"""What a test has no time for; all else is the example's own file."""


def proctor(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a command of ours on the example's data, which must end well."""
    data = {"HUMANEVAL_OVERRIDE_PATH": "HumanEval.jsonl", "MBPP_OVERRIDE_PATH": "Mbpp.jsonl"}
    done = subprocess.run(
        [sys.executable, "-c", "from cells.cli import main; main()", *map(str, words)],
        env={**os.environ, **{name: str(folder / file) for name, file in data.items()}},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def said(folder: Path, *words: object) -> Any:
    """What a command says as JSON."""
    return json.loads(proctor(folder, *words, "--json").stdout)


def test_the_example_from_pool_to_report(tmp_path: Path) -> None:
    """A real model's candidates are dead, its rounds are mirrored byte for byte, and the audit finds nothing."""
    fetch("smollm2-135m-instruct")
    path = written(tmp_path, "small.toml")
    text = path.read_text("utf-8")
    for old, new in SHORTER.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text, "utf-8")
    pool = said(tmp_path, "pool", "make", path, "--n", 2, "--out", "small-pool.jsonl")
    assert (pool["missing"], len(pool["dead"])) == (0, 2)
    assert said(tmp_path, "pool", "show", "small-pool.jsonl")["sha256"] == pool["sha256"]
    path.write_text(text.replace(UNPINNED, f'sha256 = "{pool["sha256"]}"'), "utf-8")
    frozen = proctor(tmp_path, "freeze", path).stdout
    assert "prompts of smollm2-135m: at most 3072 tokens, by xllamacpp's own tokeniser" in frozen
    proctor(tmp_path, "run", path)
    (folder,) = (tmp_path / "runs").iterdir()
    ended = outcomes(folder)
    assert sorted(one.cell.arm for one in ended if one.is_final) == sorted(ARMS * 2)
    assert states(folder, "CF-SF") == states(folder, "GR-SHAPE") == states(folder, "TC")
    assert len(states(folder, "TC")) == 2 * 2
    assert any(bullets for _block, _code, bullets, _source in states(folder, "TC").values())
    assert said(tmp_path, "audit", folder)["verdict"] == "CLEAN"
    proctor(tmp_path, "verify", folder)
    board = said(tmp_path, "score", folder)
    assert [item["family"] for item in board["contrasts"]] == ["primary"] * 3 + ["sixth arm"] * 2 + ["descriptive"] * 3
    assert {item["name"] for item in said(tmp_path, "predictions", folder)["predictions"]}
    proctor(tmp_path, "report", folder, "--out", tmp_path / "report")
