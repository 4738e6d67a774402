"""
Hostile programs for the `command` referee, in `command.txt`: they forge, kill, flood, hide and look around.

They are for sealed rooms ONLY: several end every process that they can reach, or fill the disk. Each has the one class
that it comes to. Those with a third word are for a suite that no task should have: it lets the program's output into its
report, past the look of the stub.
"""

from __future__ import annotations

from pathlib import Path

from harness.tasks.task import OpenHalf, SealedHalf, Task
from harness.tree import Tree
from tests.live.hostile import Candidate, sections
from tests.live.hostile.command_suites import BEGINNING, REFUSING, SUITES, Suite

__all__ = ["CANDIDATES", "HONEST", "HONESTS", "OPTIONS"]

OPTIONS = {"cpu_s": 1, "wall_s": 30.0, "memory_bytes": 64 << 20}


def _honest(suite: Suite) -> Candidate:
    """The reference of a task with this suite, which passes it."""
    card = {"command": ["sh", "suite.sh"], "program": ["python3", "it.py"], "needs": ["it.py"], "main": "it.py"}
    files = {"it.py": BEGINNING + suite.last}
    sealed = SealedHalf(tests=Tree.of({"suite.sh": suite.text}), solution=Tree.of(files), card={**card, **suite.card})
    opened = OpenHalf(benchmark="demo", name="it", instruction="")
    return Candidate(task=Task(open=opened, sealed=sealed), files=files, reading="PASS")


HONESTS = {word: _honest(suite) for word, suite in SUITES.items()}
"""The honest program of each suite."""
HONEST = HONESTS["captured"]


def _candidate(words: list[str], text: str) -> Candidate:
    kind = words[2] if len(words) > 2 else "captured"
    text = text if kind == "captured" else REFUSING + text
    return Candidate(task=HONESTS[kind].task, files={"it.py": text}, reading=words[1])


CANDIDATES = {
    words[0]: _candidate(words, text) for words, text in sections(Path(__file__).with_name("command.txt"), {})
}
"""By name."""
