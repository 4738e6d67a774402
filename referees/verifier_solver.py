"""
Stands between the verifier and its solver in the judge's room, and notes what the solver answered.

It is sent there as text. Each answer is passed on as it is; beside that, each `unsat`, `sat` and `unknown` stands in a
log with the solver's own reason, which the verifier does not report: it calls a solver that ran dry an error in the
program.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOLVER = "/usr/bin/z3"
ANSWERS = frozenset({b"sat", b"unknown", b"unsat"})
REASON = b"(:reason-unknown"


def main() -> int:
    """Run the solver with the words that were meant for it; its input is the verifier's own."""
    log = Path(__file__).with_suffix(".log").open("ab")
    with log, subprocess.Popen([SOLVER, *sys.argv[1:]], stdout=subprocess.PIPE) as solver:
        for line in solver.stdout or ():
            if line.strip() in ANSWERS or line.startswith(REASON):
                log.write(line)
                log.flush()
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
    return solver.returncode


if __name__ == "__main__":
    sys.exit(main())
