"""
Hostile programs for the `command` referee, in `command.txt`: they forge, kill, flood, hide and look around.

They are for sealed rooms ONLY: several end every process that they can reach, or fill the disk. Each has the one class
that it comes to. Those that are `raw` are for a suite that no task should have: it lets the program's output into its
report, past the look of the stub.
"""

from __future__ import annotations

from pathlib import Path

from harness.tasks.task import OpenHalf, SealedHalf, Task
from harness.tree import Tree
from tests.live.hostile import Candidate, sections

__all__ = ["CANDIDATES", "HONEST", "OPTIONS", "RAW_HONEST"]

OPTIONS = {"cpu_s": 1, "wall_s": 30.0, "memory_bytes": 64 << 20}

_REFUSES = """
subject often </dev/null >/dev/null 2>&1
[ $? = 2 ] && echo "ok 2 - refuses" || echo "not ok 2 - refuses"
"""
_SUITE = """\
echo 1..2
[ "$(printf ab | subject twice 2>/dev/null)" = abab ] && echo "ok 1 - doubles" || echo "not ok 1 - doubles"
"""
_RAW = """\
echo 1..2
printf ab | subject twice 2>/dev/null | tee found
[ "$(cat found)" = "# abab" ] && echo "ok 1 - doubles" || echo "not ok 1 - doubles"
"""
_HONEST = """\
import sys
if sys.argv[1:] != ["twice"]:
    sys.exit(2)
text = sys.stdin.read()
"""
_REFUSING = """\
import sys
if sys.argv[1:] != ["twice"]:
    sys.exit(2)
"""


def _honest(suite: str, last: str) -> Candidate:
    """The reference of a task with this suite, which passes it."""
    card = {
        "runner": "tap",
        "command": ["sh", "suite.sh"],
        "ids": ["doubles", "refuses"],
        "program": ["python3", "it.py"],
        "needs": ["it.py"],
        "main": "it.py",
    }
    files = {"it.py": _HONEST + last}
    sealed = SealedHalf(tests=Tree.of({"suite.sh": suite + _REFUSES}), solution=Tree.of(files), card=card)
    opened = OpenHalf(benchmark="demo", name="it", instruction="")
    return Candidate(task=Task(open=opened, sealed=sealed), files=files, reading="PASS")


HONEST = _honest(_SUITE, "print(text + text)\n")
RAW_HONEST = _honest(_RAW, "print(f'# {text}{text}')\n")


def _candidate(words: list[str], text: str) -> Candidate:
    raw = words[2:] == ["raw"]
    task = RAW_HONEST.task if raw else HONEST.task
    return Candidate(task=task, files={"it.py": _REFUSING + text if raw else text}, reading=words[1])


CANDIDATES = {
    words[0]: _candidate(words, text) for words, text in sections(Path(__file__).with_name("command.txt"), {})
}
"""By name."""
