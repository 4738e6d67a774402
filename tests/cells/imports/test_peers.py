"""
What Harbor and Inspect themselves write is read as they mean it, and told apart where they do not.

Needs both packages, in the interpreter that PROCTOR_PEERS_PYTHON names: `--with peers`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cells.declared.opening import read_declared
from cells.imports.imported import Counted, label_of
from cells.imports.importing import import_cells
from tests.cells.imports.test_import_command import CONTRAST, call, pairs_of

pytestmark = [pytest.mark.only_with("peers"), pytest.mark.timeout(300)]

HERE = Path(__file__).parent


def by_peers(program, *arguments):
    """What a program prints that runs by the interpreter with the packages."""
    python = os.environ.get("PROCTOR_PEERS_PYTHON", sys.executable)
    done = subprocess.run(
        [python, str(HERE / program), *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE), "LITELLM_LOCAL_MODEL_COST_MAP": "True"},  # no network
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("form", ["eval", "json"])
def test_real_logs_of_inspect(tmp_path, form):
    """Each sample as Inspect tells it: but a verdict only where neither limit nor error is; from log to contrast."""
    told = by_peers("inspect_evals.py", tmp_path / "logs", form)
    logs = sorted((tmp_path / "logs").iterdir())
    options = {"scorer": "letters", "places": {"arm": "eval.task_args.arm"}}
    counted, seen = Counted(), []
    found = list(counted.each(import_cells("inspect", logs, options, seen=seen)))
    census = counted.census(seen)
    assert (census.results, census.planned, census.absent) == (40, 40, 0)
    last = {(cell.cell.arm, cell.cell.id): cell for cell in found}
    for arm, samples in told.items():
        for name, said in samples.items():
            cell = last[arm, name]
            assert cell.attempt == said["tries"]
            assert cell.spend.tokens == (said["tokens"] or None)
            if said["limit"]:
                assert cell.end.kind == "HALT", name
            elif said["error"]:
                assert cell.end.kind == "VOID", name
            else:
                assert cell.outcome_class == {"C": "PASS", "I": "FAIL", "nan": "UNSCORABLE"}[said["score"]], name
    # What Inspect counts: errors that were scored, and stops.
    assert {name: said["score"] for name, said in told["A"].items() if said["error"] or said["limit"]} == {
        f"{name}_epoch_{epoch}": score
        for name, score in {"s3": "I", "s4": "C", "s5": "C", "s6": "C", "s9": None}.items()
        for epoch in (1, 2)
    }
    assert census.classes == {
        "FAIL": 6,
        "HALT(calls)": 4,
        "HALT(tokens)": 4,
        "HALT(wall)": 4,
        "PASS": 10,
        "UNSCORABLE": 4,
        "VOID(unknown)": 8,
    }
    score(tmp_path, "inspect", logs, "--scorer", "letters", "--place", "arm=eval.task_args.arm")


def score(tmp_path, name, logs, *options):
    """From the logs by the commands to the pairs of a contrast: three tasks that A alone passes, twice."""
    cells, declaration = tmp_path / "cells.jsonl", tmp_path / "d.toml"
    assert call("import", name, *logs, "--out", cells, *options)[0] == 0
    call("declare", cells, declaration)
    declaration.write_text(declaration.read_text().replace('"?"', '"Is A better?"') + CONTRAST)
    found = read_declared(declaration)
    assert found.final
    assert pairs_of(found.readings[0].board) == (6, 0, 2, 6, 6)
    assert call("score", "--declaration", declaration)[0] == 0


def test_a_real_job_of_harbor(tmp_path):
    """Each trial as Harbor tells it: what raised is no verdict, whatever the reward."""
    told = by_peers("harbor_jobs.py", tmp_path)
    counted, seen = Counted(), []
    cells = list(counted.each(import_cells("harbor", [tmp_path / "job"], {}, seen=seen)))
    assert {cell.cell.id for cell in cells} == set(told)
    assert {cell.cell.arm for cell in cells} == {"an__agent"}
    for cell in cells:
        said = told[cell.cell.id]
        if said["exceptions"]:
            assert cell.verdict is None
        else:
            assert cell.passed == (said["rewards"]["reward"] == 1)
    labels = {cell.cell.task: label_of(cell) for cell in cells}
    assert labels == {
        "made/solved": "PASS",
        "made/failed": "FAIL",
        "made/slow": "HALT(wall)",
        "made/broken": "VOID(unknown)",
        "made/inner": "VOID(unknown)",
        "made/exits": "VOID(seat)",
        "made/silent": "VOID(referee)",
        "made/badimage": "VOID(workspace)",
    }
    # Harbor holds these rewards valid, the one of the agent that was stopped among them.
    valid = {name.partition("__")[0] for name, said in told.items() if said["valid"]}
    assert valid == {"solved", "failed", "slow", "broken", "inner", "exits"}
    assert {cell.cell.replicate for cell in cells} == {1, 2}
    assert counted.census(seen).whole
