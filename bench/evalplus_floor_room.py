# ruff: noqa: BLE001, S102, S302 - it runs the benchmark's own programs, whatever they do, and reads its own data
"""
The least that any judge must pay: the same programs and calls in one plain process, without isolation.

Its source is sent into a room, so that it runs on the interpreter that the referee's candidates run on; it imports the
standard library and, under the name `compare`, the source of the referee's own rules. Standard input is one line of
JSON: tasks, each with its programs and the reference, which is run first, and not counted, to learn its values. Printed
is, for each program, a row of

- seconds of CPU for building it and calling its function, up to the first call that is not accepted;
- the same with what surrounds a call in any judge: a fresh copy of its arguments, and the comparison. Values of over
  20,000 items are compared outside of the count: what that costs is a judge's own choice;
- how many calls were made, and whether all were accepted.
"""

from __future__ import annotations

import base64
import gc
import hashlib
import io
import json
import marshal
import resource
import signal
import sys
import time
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEAST_S, FACTOR = 1.0, 4.0
MEMORY = 6 << 30
LARGE = 20_000
clock = time.thread_time_ns
"""Exact at any moment. That of the process moves by the tick while a timer of the process runs, as it does here."""


class OverLimitError(BaseException):
    """A call took more CPU time than its limit."""


def stop(*_: object) -> None:
    """Called by the timer."""
    raise OverLimitError


def kept(value: Any) -> Any:
    """A value, or the digest of a large one."""
    if isinstance(value, list | tuple | str) and len(value) > LARGE:
        return hashlib.sha256(marshal.dumps(value, 2)).digest()
    return value


class Program:
    """One program of a task, and what it took."""

    def __init__(self, code: str, task: dict[str, Any]) -> None:
        self.code, self.task = code, task
        self.calls_ns = self.all_ns = self.paused_ns = self.made = 0

    def tier(self, blobs: list[bytes], expected: list[Any] | None) -> list[tuple[Any, float]] | None:
        """What the calls of a tier gave and took; None at the first not accepted, where there is something expected."""
        gave: list[tuple[Any, float]] = []
        began = clock()
        try:
            signal.setitimer(signal.ITIMER_PROF, 2 * LEAST_S, 0.1)
            entry = self.build()
            self.calls_ns += clock() - began
            for at, blob in enumerate(blobs):
                limit = LEAST_S if expected is None else max(LEAST_S, FACTOR * expected[at][1])
                signal.setitimer(signal.ITIMER_PROF, 600 if expected is None else limit, 0.1)
                value, seconds = self.call(entry, marshal.loads(blob))
                if expected is None:
                    gave.append((kept(value), seconds))
                elif not self.accepted(value, expected[at][0], blob):
                    return None
        except OverLimitError:
            return None
        except BaseException:
            return None
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self.all_ns += clock() - began
        return gave

    def build(self) -> Any:
        """The program's entry point."""
        space = types.ModuleType("solution").__dict__
        exec(compile(self.code, "solution.py", "exec", dont_inherit=True), space)
        return space[self.task["entry"]]

    def call(self, entry: Any, arguments: list[Any]) -> tuple[Any, float]:
        """One call: what it gave, and the seconds it took."""
        self.made += 1
        began = clock()
        try:
            value = entry(*arguments)
        finally:
            taken = clock() - began
            self.calls_ns += taken
        return value, taken / 1e9

    def accepted(self, value: Any, expected: Any, blob: bytes) -> bool:
        """Whether a value is accepted; a quick look first, as any judge would."""
        if self.task["rule"] == "not_none":
            return isinstance(value, bool) or (value is not None) == (expected is not None)
        if isinstance(expected, bytes) or (isinstance(value, list | tuple | str) and len(value) > LARGE):
            signal.setitimer(signal.ITIMER_PROF, 0)  # it is the call's, and set anew for the next
            paused = clock()
            same = bool(kept(value) == expected)
            self.paused_ns += clock() - paused
            return same
        if type(value) is type(expected) and value == expected:
            return True
        import compare

        task = self.task
        arguments = marshal.loads(blob)
        return bool(compare.accepts(task["rule"], task["entry"], arguments, expected, value, atol=task["atol"]))


def measure(task: dict[str, Any]) -> list[tuple[float, float, int, bool]]:
    """All programs of a task."""
    tiers = [[base64.b64decode(blob) for blob in blobs] for blobs in task["tiers"]]
    reference = Program(task["reference"], task)
    expected = [reference.tier(blobs, None) for blobs in tiers]
    assert None not in expected, f"{task['entry']}: the reference does not run"
    rows = []
    for code in task["programs"]:
        program = Program(code, task)
        passed = all(program.tier(blobs, known) is not None for blobs, known in zip(tiers, expected, strict=True))
        rows.append((program.calls_ns / 1e9, (program.all_ns - program.paused_ns) / 1e9, program.made, passed))
    return rows


def main() -> None:
    """Read, run, tell."""
    tasks = json.loads(sys.stdin.buffer.readline())
    signal.signal(signal.SIGPROF, stop)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    said, sys.stdout = sys.stdout, io.StringIO()
    sys.set_int_max_str_digits(0)
    gc.freeze()
    rows = []
    for task in tasks:
        rows.append(measure(task))
        sys.stdout.seek(0)
        sys.stdout.truncate()
    said.write(json.dumps(rows))


if __name__ == "__main__":
    main()
