"""Failure injections: for each broken reply or patch, the action it comes to, the rule it broke, and what it changed."""

from __future__ import annotations

import pytest

from harness.canonical import digest_bytes
from harness.seats.oneshot import MAX_CANDIDATE_BYTES
from harness.seats.revise_actions import MAX_REPLY_CHARS, Escalate, Keep, Patch, parse_action
from tests.seats.desks import fenced
from tests.seats.revisions import RIGHT, WRONG, patch, sat

pytestmark = pytest.mark.anyio

BLOCK = fenced(WRONG.rstrip())
DEEP = "x = " + "(" * 400 + "1" + ")" * 400 + "\n"
FLAT = "x = " + "-" * 60_000 + "1\n"

REPLIES = {
    # injection: (reply, action, the rule it broke)
    "nothing": ("", "keep", "empty"),
    "white space": (" \n\t\n", "keep", "empty"),
    "thoughts alone": ("<think>ACTION: PATCH</think>\n", "keep", "empty"),
    "thoughts never ended": (f"<think>\nACTION: PATCH\n{BLOCK}", "keep", "empty"),
    "NUL in the prose": ("ACTION: KEEP\0", "keep", "nul"),
    "NUL in the code": (patch("x = '\0'"), "keep", "nul"),
    "a huge reply": ("ACTION: KEEP\n" + "a" * MAX_REPLY_CHARS, "keep", "huge"),
    "prose only": ("I would not change a thing.", "keep", "no-action"),
    "code only": (BLOCK, "keep", "no-action"),
    "bare code": (WRONG, "keep", "no-action"),
    "the action inside the block": (f"```python\nACTION: PATCH\n{WRONG}```", "keep", "no-action"),
    "another language's words": (f"AKTION: PATCH\n{BLOCK}", "keep", "no-action"),
    "the action in a sentence": (f"My ACTION: PATCH\n{BLOCK}", "keep", "no-action"),
    "a call of JSON": ('{"action": "PATCH"}', "keep", "no-action"),
    "two actions": (f"ACTION: KEEP\nACTION: PATCH\n{BLOCK}", "keep", "several-actions"),
    "one action twice": (f"ACTION: PATCH\n{BLOCK}\nACTION: PATCH", "keep", "several-actions"),
    "the contract repeated": (
        "ACTION: KEEP\nACTION: PATCH\nACTION: ESCALATE: the reason", "keep", "several-actions",
    ),
    "an unknown action": ("ACTION: REWRITE", "keep", "unknown-action"),
    "no word": ("ACTION:", "keep", "unknown-action"),
    "a word too long": ("ACTION: PATCHES", "keep", "unknown-action"),
    "both in one line": (f"ACTION: KEEP or PATCH\n{BLOCK}", "keep", "unclear-action"),
    "code on the line": ("ACTION: PATCH return a + b", "keep", "unclear-action"),
    "escalation without a reason": ("ACTION: ESCALATE", "keep", "no-reason"),
    "escalation with marks for a reason": ("ACTION: ESCALATE: ...", "keep", "no-reason"),
    "patch without code": ("ACTION: PATCH\nadd should subtract", "keep", "patch-without-code"),
    "patch with unfenced code": (f"ACTION: PATCH\n{WRONG}", "keep", "patch-without-code"),
    "patch with two blocks": (f"ACTION: PATCH\n{BLOCK}\n{BLOCK}", "keep", "several-blocks"),
    "patch with an example of use": (f"ACTION: PATCH\n{BLOCK}\n```\nadd(1, 2)\n```", "keep", "several-blocks"),
    "patch in another language": ("ACTION: PATCH\n```rust\nfn add() {}\n```", "keep", "other-language"),
    "patch as a diff": ("ACTION: PATCH\n```diff\n-a\n+b\n```", "keep", "other-language"),
    "a fence cut off": ("ACTION: PATCH\n```python\ndef add(a, b):\n    retu", "keep", "unclosed-block"),
    "a fence cut off in its end": (f"ACTION: PATCH\n```python\n{WRONG}``", "keep", "unclosed-block"),
    "an empty block": ("ACTION: PATCH\n```python\n\n```", "keep", "empty-block"),
    "lone surrogates": ("ACTION: K\ud800EP", "keep", "unknown-action"),
    # and what is odd but no fault
    "marks and case": (f"**Action: patch**\n{BLOCK}", "patch", None),
    "carriage returns": (patch(WRONG).replace("\n", "\r\n"), "patch", None),
    "a byte order mark": ("\ufeffACTION: KEEP", "keep", None),
    "keep with code beside it": (f"ACTION: KEEP\n{BLOCK}", "keep", None),
    "thoughts before": (f"<think>\nACTION: KEEP?\n</think>\n{patch(WRONG)}", "patch", None),
    "the action after the code": (f"{BLOCK}\nACTION: PATCH", "patch", None),
    "escalation below": ("ACTION: ESCALATE\nThe task contradicts itself.", "escalate", None),
}  # fmt: skip

PATCHES = {
    # injection: (code, why it is not admitted, what the detail says)
    "no Python": ("def add(a, b)\n    return a", "does-not-parse", "SyntaxError"),
    "indentation": ("def add(a, b):\nreturn a", "does-not-parse", "IndentationError"),
    "Python 2": ("print 'add'", "does-not-parse", "SyntaxError"),
    "parentheses too deep": (DEEP, "does-not-parse", "parentheses"),
    "an expression too deep": (FLAT, "does-not-parse", ""),
    "over the cap": (f"x = '{'a' * MAX_CANDIDATE_BYTES}'", "huge", ""),
    "just over the cap in bytes": (f"x = '{'é' * (MAX_CANDIDATE_BYTES // 2)}'", "too-large", "bytes"),
    "a name that is not there": ("add = sub", "raises", "NameError"),
    "a module that is not there": ("import nowhere_at_all", "raises", "ModuleNotFoundError"),
    "an exception of its own": ("class Odd(BaseException): pass\nraise Odd", "raises", "Odd"),
    "exit at import": ("import sys\nsys.exit(0)", "raises", "SystemExit"),
    "end of the process": ("import os\nos._exit(0)", "ends-early", "exit status 0"),
    "killed": ("import os\nos.kill(os.getpid(), 9)", "ends-early", "exit status -9"),
    "a loop": ("while True: pass", "too-slow", "0.5 s"),
    "recursion at import": ("def f(): f()\nf()", "raises", "RecursionError"),
    "the marker forged": ("print('{\"said\": \"executes\"}', flush=True)\nraise OSError", "raises", "OSError"),
    "standard output closed": ("import os\nos.close(1)\nos.close(2)\n1 / 0", "raises", "ZeroDivisionError"),
}  # fmt: skip


def test_there_are_enough_injections():
    """At least 35, each under its own name."""
    assert len({*REPLIES, *PATCHES}) == len(REPLIES) + len(PATCHES) >= 35


@pytest.mark.parametrize("name", REPLIES)
async def test_a_reply_comes_to_its_action_and_a_keep_changes_nothing(bench, name):
    """What the grammar says, what the transcript tells, and the bytes that are left for the referee."""
    reply, expected, broken = REPLIES[name]
    action = parse_action(reply)
    assert type(action).__name__.lower() == expected
    assert not isinstance(action, Keep) or action.malformed == broken
    assert not isinstance(action, Patch) or action.code == WRONG
    assert not isinstance(action, Escalate) or action.reason == "The task contradicts itself."
    table = await sat(bench, reply, restore=False)
    (told,) = table.events("revised")
    assert (told["action"], told["note"]) == (expected, broken)
    left = WRONG if expected == "patch" else RIGHT
    assert table.room.files["solution.py"] == left.encode()
    assert told["before_sha256"] == digest_bytes(RIGHT.encode())
    assert told["after_sha256"] == digest_bytes(left.encode())
    assert told["admitted"] is (True if expected == "patch" else None)


@pytest.mark.parametrize("name", PATCHES)
async def test_a_patch_that_is_not_admitted_changes_nothing(bench, name):
    """The rule that refused it is told, and the state, its evidence and the file stay as they were."""
    code, refused, detail = PATCHES[name]
    table = await sat(bench, patch(code), restore=False, timeout_s=0.5 if refused == "too-slow" else 10.0)
    (told,) = table.events("revised")
    assert told["note"] == refused
    assert told["action"] == ("keep" if refused == "huge" else "patch")
    assert told["admitted"] is (None if refused == "huge" else False)
    assert detail in told["detail"]
    assert told["before_sha256"] == told["after_sha256"] == digest_bytes(RIGHT.encode())
    assert table.room.files["solution.py"] == RIGHT.encode()
    assert table.desk.check.codes == [RIGHT, RIGHT]  # at the start and for the certificate: the patch was never judged


async def test_what_a_trial_does_to_the_files_is_undone(bench):
    """A patch that writes over the solution, or takes it away, leaves what is certified."""
    for vandal in ("open('solution.py', 'w').write('x')", "import os\nos.remove('solution.py')"):
        table = await sat(bench, patch(f"{vandal}\nraise SystemExit"), restore=False)
        assert table.room.files["solution.py"] == RIGHT.encode()
        assert table.room.sweeps >= 3  # after the start, the trial and before the certificate nothing is left alive


async def test_a_patch_that_spoils_the_workspace_ends_the_seat_and_is_no_void(bench):
    """Where the state can't be laid any more, the candidate did it: the seat declares, and nothing is certified."""
    code = "import os\nos.remove('solution.py')\nos.makedirs('solution.py/x')\n" + WRONG
    table = await sat(bench, patch(code), "ACTION: KEEP", revisions=3)
    (told,) = table.events("revised")
    assert (told["note"], told["admitted"]) == ("spoils", False)
    assert told["before_sha256"] == told["after_sha256"]
    assert table.declared.note == "the patch of revision 1 spoiled the workspace: nothing can be certified"
    assert not table.events("certified")


async def test_processes_a_trial_leaves_are_ended(bench):
    """A child that outlives its candidate is swept before the next thing happens."""
    code = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'pass'])\n" + RIGHT
    table = await sat(bench, patch(code))
    assert table.room.sweeps >= 3
    assert table.events("revised")[0]["admitted"]
