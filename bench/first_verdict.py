"""
How long does a person wait for the verdict on one sample? The whole command, from its start to its end.

    python bench/first_verdict.py --backend bubblewrap [--benchmark humaneval] [--runs 10]

The sample is the first task's reference, judged again each time; the first run, which has the expected values computed,
is not counted. Prints the median, and exits with 1 when it is above half a second.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.tasks.evalplus import open_evalplus

LIMIT_S = 0.5
TASKS = Path(__file__).parents[1] / "examples" / "quickstart" / "tasks.jsonl"


def arguments() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", default="", help="humaneval or mbpp; by default the tasks of the quickstart")
    parser.add_argument("--backend", default="bubblewrap", help="a registered workspace backend")
    parser.add_argument("--runs", type=int, default=10, help="counted runs")
    return parser.parse_args()


def command(folder: Path, options: argparse.Namespace) -> list[str]:
    """The command that judges one sample, which it writes."""
    tasks = open_evalplus(options.benchmark or TASKS)
    task = tasks.task(tasks.ids[0])
    solution = task.sealed.solution.text("solution.py")
    (folder / "one.jsonl").write_text(json.dumps({"task_id": task.open.name, "solution": solution}) + "\n")
    name = options.benchmark or "quickstart"
    words = [folder / "one.jsonl", "--benchmark", name, "--data", tasks.path, "--backend", options.backend]
    # With its modules compiled once, as a user has them, whatever is set for those who change them.
    compiled = ("env", "-u", "PYTHONDONTWRITEBYTECODE", f"PYTHONPYCACHEPREFIX={folder / 'compiled'}")
    return list(map(str, (*compiled, Path(sys.executable).parent / "proctor", "judge", *words)))


def once(words: list[str], folder: Path) -> float:
    """Seconds of one command, with no result to go on from. Raises `CalledProcessError` when it fails."""
    (folder / "one_proctor.jsonl").unlink(missing_ok=True)
    began = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> int:
    """The exit status."""
    options = arguments()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        words = command(folder, options)
        once(words, folder)
        seconds = sorted(once(words, folder) for _ in range(options.runs))
    median = statistics.median(seconds)
    load = Path("/proc/loadavg").read_text().split()[0]
    spread = f"of {len(seconds)}, lowest {seconds[0]:.3f}, load {load}"
    print(f"one sample on {options.backend}: median {median:.3f} s {spread}")
    print(f"{'within' if median <= LIMIT_S else 'ABOVE'} the limit of {LIMIT_S} s")
    return 0 if median <= LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
