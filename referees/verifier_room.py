"""
The program that runs the verifier in the judge's room. It is sent there as text and uses the standard library alone.

It reads one order from its input (files, command, limits) and writes one answer: how the verifier ended, the tail of
what it printed, its report, and what it used. Only the verifier runs here; no line of the subject is ever executed.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

TAIL = 512 << 10
"""Bytes of what the verifier printed, from the end: the summary and the compiler's words stand there."""
REPORT = 4 << 20
"""Bytes of its report, and of the solver's answers; more is none."""
SOLVER = "solver.py"


def limited(order: dict[str, Any]) -> None:
    """Called in the verifier's process before it starts; its solver inherits the limits."""
    cpu, memory = int(order["cpu_s"]), int(order["memory_bytes"])
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def tail(path: Path, most: int) -> str:
    """The last `most` bytes of a file as text; nothing where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - most))
            return file.read(most).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def whole(path: Path) -> str:
    """A file as text; nothing where there is none, or more than is read."""
    return tail(path, REPORT) if path.exists() and path.stat().st_size <= REPORT else ""


def watched(program: str, order: dict[str, Any], folder: Path, output: Any) -> tuple[int, bool]:
    """How the verifier ended, and whether that was for its time. Nothing that it started lives on."""
    process = subprocess.Popen(
        [program, f"/z3exe:{folder / SOLVER}", *order["argv"][1:]],
        cwd=folder,
        env=order["env"],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=lambda: limited(order),  # noqa: PLW1509 - this program has one thread
    )
    overdue = False
    try:
        process.wait(timeout=order["wall_s"])
    except subprocess.TimeoutExpired:
        overdue = True
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait(), overdue


def run(order: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write the files, run the verifier to its end or its limit, and tell."""
    for name, text in order["files"].items():
        folder.joinpath(name).write_text(text, encoding="utf-8", newline="")
    program = shutil.which(order["argv"][0], path=order["env"]["PATH"])
    if program is None:
        return {"missing": order["argv"][0]}
    solver = folder / SOLVER
    solver.write_text("#!/usr/bin/python3 -IS\n" + order["solver"], encoding="utf-8")
    solver.chmod(0o755)
    printed, report = folder / ".printed", folder / order["report"]
    with printed.open("wb") as output:
        status, overdue = watched(program, order, folder, output)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "status": status,
        "overdue": overdue,
        "printed": tail(printed, TAIL),
        "report": whole(report),
        "answers": whole(solver.with_suffix(".log")),
        "cpu_s": used.ru_utime + used.ru_stime,
    }


def main() -> None:
    """One order in, one answer out."""
    order = json.load(sys.stdin)
    answer = run(order, Path.cwd())
    json.dump({**answer, "nonce": order["nonce"]}, sys.stdout)


if __name__ == "__main__":
    main()
