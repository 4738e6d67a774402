"""`kill -9` of the driver at several instants: nothing finished is lost or repeated, and nothing is left running."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from cells.verifying import verify_run
from harness import plugins
from harness.record import read_entries
from tests.cells.houses import outcomes, write_experiment

pytestmark = [pytest.mark.live, pytest.mark.timeout(400)]

MODEL = '[models.options]\nreplies = ["```python\\ndef task_1(x):\\n    return x + 1\\n```"]\ndelay_s = 0.4'


def start(folder: Path) -> subprocess.Popen[bytes]:
    """The driver, as a person starts it."""
    command = [sys.executable, "-c", "from cells.cli import main; main()", "run", str(folder / "experiment.toml")]
    with (folder / "driver.log").open("ab") as log:
        return subprocess.Popen([*command, "--runs", str(folder / "runs")], stdout=log, stderr=log)


def kinds(folder: Path) -> list[str]:
    """The kinds of the record's entries so far."""
    paths = list((folder / "runs").glob("*/record.jsonl"))
    return [entry.kind for entry in read_entries(paths[0])] if paths else []


def wait_for(folder: Path, driver: subprocess.Popen[bytes], kind: str, count: int) -> None:
    """Until the record has so many entries of a kind."""
    deadline = time.monotonic() + 120
    while kinds(folder).count(kind) < count:
        assert driver.poll() is None, (folder / "driver.log").read_text("utf-8")
        assert time.monotonic() < deadline, (folder / "driver.log").read_text("utf-8")
        time.sleep(0.02)


@pytest.mark.parametrize("backend", ["docker", "bubblewrap"])
def test_a_driver_killed_three_times_loses_and_repeats_nothing(tmp_path: Path, backend: str) -> None:
    """Killed as it probes, as a cell's model answers, and right after an outcome; then one run finishes it all."""
    path = write_experiment(tmp_path, model=MODEL, concurrency=2, replicates=2)
    text = path.read_text("utf-8").replace('backend = "docker"', f'backend = "{backend}"')
    path.write_text(text.replace('name = "null"', 'name = "evalplus"'), "utf-8")
    for kind, more, pause in (("session.started", 1, 1.0), ("cell.started", 2, 0.2), ("cell.ended", 3, 0.0)):
        driver = start(tmp_path)
        wait_for(tmp_path, driver, kind, kinds(tmp_path).count(kind) + more)
        time.sleep(pause)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    last = start(tmp_path)
    assert last.wait(200) == 0, (tmp_path / "driver.log").read_text("utf-8")
    (folder,) = (tmp_path / "runs").iterdir()
    finished = Counter(str(outcome.cell) for outcome in outcomes(folder) if outcome.is_final)
    assert sorted(finished.values()) == [1] * 12
    interrupted = [outcome for outcome in outcomes(folder) if outcome.outcome_class == "VOID"]
    assert interrupted
    assert {outcome.end.cause for outcome in interrupted} == {"interrupted"}
    assert verify_run(folder).ok
    assert left_over(backend, folder.name) == []


def left_over(backend: str, run: str) -> list[str]:
    """Containers, or sandbox processes, of the run that still exist."""
    assert backend in plugins.table("workspaces")
    if backend == "docker":
        import docker

        client = docker.from_env()
        try:
            return [box.name for box in client.containers.list(all=True, filters={"label": f"proctor.run={run}"})]
        finally:
            client.close()
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"bwrap") and any(run.encode() in word for word in words):
            found.append(str(command))
    return found


def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(tmp_path: Path) -> None:
    """One SIGINT: what ran is recorded as interrupted, nothing is left running, exit 1, and the next run finishes."""
    path = write_experiment(tmp_path, model=MODEL, concurrency=2, replicates=1)
    path.write_text(path.read_text("utf-8").replace('backend = "docker"', 'backend = "bubblewrap"'), "utf-8")
    driver = start(tmp_path)
    wait_for(tmp_path, driver, "cell.started", 1)
    driver.send_signal(signal.SIGINT)
    assert driver.wait(60) == 1
    log = (tmp_path / "driver.log").read_text("utf-8")
    assert "interrupted: what was finished is kept. To go on: proctor run" in log
    (folder,) = (tmp_path / "runs").iterdir()
    entries = list(read_entries(folder / "record.jsonl"))
    assert (entries[-1].kind, entries[-1].body["how"]) == ("session.closed", "interrupted")
    assert left_over("bubblewrap", folder.name) == []
    again = start(tmp_path)
    assert again.wait(120) == 0
    assert json.loads((folder / "log.jsonl").read_text("utf-8").splitlines()[-1])["event"] == "session.closed"
