"""
How long does a command take to be there? Medians of warm starts against their limits.

    python bench/startup.py [--runs 20]

Prints the medians, and exits with 1 when one is above its limit.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

LIMITS_S = {"proctor --help": 0.25, "import harness": 0.15}
BIN = Path(sys.executable).parent
COMMANDS = {
    "proctor --help": [str(BIN / "proctor"), "--help"],
    "import harness": [sys.executable, "-c", "import harness"],
}


def start_once(command: Sequence[str]) -> float:
    """Seconds from starting `command` to its end. Raises `CalledProcessError` when it fails."""
    # A warm start finds compiled code: an environment that keeps Python from leaving any would measure the compiler.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
    return time.perf_counter() - began


def measure(command: Sequence[str], runs: int, once: Callable[[Sequence[str]], float] = start_once) -> list[float]:
    """The seconds of `runs` starts, after one that fills the caches and is not counted."""
    once(command)
    return sorted(once(command) for _ in range(runs))


def judge(name: str, seconds: Sequence[float]) -> bool:
    """Print what was measured; true if the median is within the limit."""
    median, limit = statistics.median(seconds), LIMITS_S[name]
    kept = median <= limit
    spread = f"lowest {seconds[0]:.3f}, highest {seconds[-1]:.3f}"
    word = "within" if kept else "ABOVE"
    print(f"{name}: median {median:.3f} s of {len(seconds)} ({spread}), {word} the limit of {limit:.2f} s")
    return kept


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="counted starts of each command")
    options = parser.parse_args()
    # All are measured before the status is known: a list, no generator.
    kept = [judge(name, measure(command, options.runs)) for name, command in COMMANDS.items()]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
