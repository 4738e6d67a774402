"""A tiny pool, made by the command in real rooms: the public tests run, and it goes on after it was cut off."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "quickstart" / "tasks.jsonl"
EXPERIMENT = """
name = "tiny-pool"
question = "Which units are dead?"
arms = ["B", "P"]
[[tasks]]
source = "evalplus:tasks.jsonl"
cap = 2
[[models]]
name = "m"
provider = "scripted"
model = "script"
[models.options]
pick = "order"
replies = [{replies}]
[seat]
seed_namespace = "tiny-pool"
[workspace]
backend = "bubblewrap"
[referee]
name = "evalplus"
[analysis]
[[analysis.contrasts]]
name = "P over B"
treatment = "P"
control = "B"
"""


def proctor(*words: object) -> subprocess.CompletedProcess[str]:
    """Run a command of ours."""
    program = "from cells.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, words)], capture_output=True, text=True, check=False
    )


def test_a_pool_in_real_rooms(tmp_path: Path) -> None:
    """The first task's second candidate is its reference, the other's are wrong or empty: one unit is dead."""
    shutil.copy(EXAMPLE, tmp_path / "tasks.jsonl")
    record = json.loads(EXAMPLE.read_text("utf-8").splitlines()[0])
    right = f"```python\n{record['prompt']}{record['canonical_solution']}\n```"
    replies = ", ".join(json.dumps(reply) for reply in ("no", right, "```python\nx = 1\n```", "STATUS: DONE"))
    (tmp_path / "experiment.toml").write_text(EXPERIMENT.format(replies=replies))
    out = tmp_path / "pool.jsonl"
    done = proctor("pool", "make", tmp_path, "--n", 2, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    [cell] = shown["cells"]
    assert (cell["dead"], cell["alive"], cell["accepted_standard"], cell["candidates"]) == (1, 1, 1, 4)
    whole = out.read_bytes()
    out.write_bytes(b"\n".join(whole.split(b"\n")[:4]) + b"\n")
    assert proctor("pool", "show", out).returncode == 1
    assert proctor("pool", "make", tmp_path, "--n", 2, "--out", out).returncode == 0
    assert json.loads(proctor("pool", "show", out, "--json").stdout)["missing"] == 0
    assert out.read_bytes().split(b"\n")[:4] == whole.split(b"\n")[:4]
