"""
Peak memory of a run of 1,000 scripted cells on the embedded workspace, gate included; the limit is 200 MB.

    python bench/memory.py [--cells 1000] [--backend bubblewrap]

Prints the driver's peak resident set (its children, the sandboxes, are bounded by their own limits), the time per cell,
and the same for a tenth of the cells: memory should hardly grow with their number. Exits 1 above the limit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_MB = 200
TASKS = 25

EXPERIMENT = """
name = "memory"
question = "How much memory does a long run take?"
arms = ["plain", "placebo"]
replicates = {replicates}
concurrency = 2
[[tasks]]
source = "evalplus:tasks.jsonl"
[[models]]
name = "none"
provider = "scripted"
model = "script"
options = {{ replies = ["nothing"] }}
[seat]
kind = "scripted"
seed_namespace = "memory"
options = {{ steps = [{{ write = {{ "solution.py" = "x = 1\\n" }} }}] }}
[workspace]
backend = "{backend}"
[referee]
name = "null"
[analysis]
"""


def task(number: int) -> dict[str, object]:
    """One small task in EvalPlus's schema."""
    return {
        "task_id": f"Memory/{number}",
        "prompt": f"def f(x):\n    return x + {number}\n",
        "entry_point": "f",
        "canonical_solution": "",
        "contract": "",
        "base_input": [[1]],
        "plus_input": [[2]],
        "atol": 0,
    }


def measure(cells: int, backend: str, folder: Path) -> tuple[float, float]:
    """Run so many cells in a process of its own; its peak resident set in MB and its time in seconds."""
    folder.mkdir()
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task(number)) + "\n" for number in range(TASKS)))
    text = EXPERIMENT.format(replicates=cells // (2 * TASKS), backend=backend)
    (folder / "experiment.toml").write_text(text)
    command = [sys.executable, "-c", "from cells.cli import main; main()", "run", str(folder), "--json"]
    start = time.perf_counter()
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        driver = subprocess.Popen([*command, "--runs", str(folder / "runs")], stdout=out, stderr=err)
        _pid, status, usage = os.wait4(driver.pid, 0)
    driver.returncode = os.waitstatus_to_exitcode(status)
    if driver.returncode != 0:
        sys.exit((folder / "err").read_text()[-2000:])
    done = json.loads((folder / "out").read_text())["scoreboard"]["planned"]
    assert done == cells, f"{done} cells ran: expected {cells}"
    return usage.ru_maxrss / 1024, time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--backend", default="bubblewrap")
    options = parser.parse_args()
    if options.cells % (20 * TASKS) or options.cells <= 0:
        parser.error(f"--cells {options.cells}: expected a multiple of {20 * TASKS}")
    with tempfile.TemporaryDirectory() as scratch:
        peaks = {}
        for cells in (options.cells // 10, options.cells):
            peaks[cells], seconds = measure(cells, options.backend, Path(scratch) / str(cells))
            print(f"{cells} cells: peak {peaks[cells]:.0f} MB, {seconds:.1f} s, {1000 * seconds / cells:.0f} ms a cell")
    few, many = (peaks[cells] for cells in sorted(peaks))
    print(f"growth for ten times the cells: {many - few:.0f} MB; limit {LIMIT_MB} MB")
    sys.exit(0 if many <= LIMIT_MB else 1)


if __name__ == "__main__":
    main()
