"""Hostile candidates: none is run on this machine, each ends within a bound, and none is believed."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from harness.clock import fresh_token
from harness.conformance.candidates import claiming, endless, marked
from harness.conformance.rows import Row, row
from harness.conformance.trial import Trial

__all__ = ["bounded", "unbelieved", "walled"]

_NOT_HERE = "not measured: what is hostile would have run on this machine"


async def walled(trial: Trial) -> Row:
    """Where the candidate's code is run: not in the harness's own process, and not on this machine without a room."""
    module = f"proctor_conformance_{fresh_token(6)}"
    expected = "what is judged runs in a room that was opened for it"
    with tempfile.TemporaryDirectory(prefix="proctor-conformance-") as folder:
        mark = Path(folder) / "mark"
        tree = marked(trial.referee.reference(trial.task.sealed), module, str(mark))
        if tree is None:
            return Row(rule="walled", held=None, seen="can't be told: no file of Python or shell", expected=expected)
        await trial.judge(tree)
        faults = ["it ran in the harness's own process"] if sys.modules.pop(module, None) is not None else []
        faults += ["it ran on this machine, outside of every room"] if mark.exists() and not faults else []
    trial.runs_here = bool(faults)
    return row("walled", faults, expected=expected, seen="it left no mark on this machine")


async def bounded(trial: Trial) -> Row:
    """Endless candidates, each within the bound and never accepted; the reference after each is accepted still."""
    reference = trial.referee.reference(trial.task.sealed)
    tried = {**trial.hostile, **endless(reference)}
    expected = f"an answer within {trial.bound_s:g} s, never accepted; the reference accepted afterwards"
    if trial.runs_here:
        return Row(rule="bounded", held=False, seen=_NOT_HERE, expected=expected)
    faults = [] if tried else ["not measured: no endless candidate is known for its files, and none was given"]
    slowest = 0.0
    for name, tree in tried.items():
        answer = await trial.judge(tree)
        slowest = max(slowest, answer.seconds)
        if answer.kind == "late" or answer.seconds > trial.bound_s or answer.standing == "accepted":
            faults.append(f"a candidate that {name} was {answer}")
    after = await trial.judge(reference)
    faults += [] if after.standing == "accepted" else [f"the reference afterwards was {after}"]
    return row("bounded", faults, expected=expected, seen=f"{', '.join(tried)}: {slowest:.1f} s at most")


async def unbelieved(trial: Trial) -> Row:
    """Candidates that end well, say that all passed and plant reports of it, and do nothing right."""
    tried = claiming(trial.referee.reference(trial.task.sealed))
    expected = "exit codes, output and planted files are no proof"
    if trial.runs_here:
        return Row(rule="not believed", held=False, seen=_NOT_HERE, expected=expected)
    faults = []
    for name, tree in tried.items():
        answer = await trial.judge(tree)
        if answer.standing != "rejected":
            faults.append(f"a candidate that {name} was {answer}")
    return row("not believed", faults, expected=expected, seen=", ".join(tried))
