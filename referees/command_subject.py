"""
The subject's side of the `command` referee: builds the exhibit in a room that holds no test, and runs its program.

Each call is a process of its own, within limits, and is ended with all that it started. What a call leaves in the
folder is there for the next. Nothing here is trusted: whatever the exhibit does to this process, all it can bring about
is an answer, and an answer is only ever bytes to a test. It runs inside workspaces, so it uses the standard library,
the wire, and its neighbours `command_program`, `command_witness` and `pytest_watch` only.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from referees.command_program import Bounds, confined, run
from referees.command_wire import lay, packed, unpacked
from referees.command_witness import go_on_below
from referees.pytest_watch import adopt
from referees.pytest_wire import BEAT, LOAD, frame, raw_frame, read_frame, take_channel, write_all

__all__ = ["Subject", "main"]

_SAID = 2000


class Subject:
    """The exhibit in its folder; `beat` says that a program of it still runs."""

    def __init__(self, folder: Path, order: dict[str, Any], beat: Callable[[], None]) -> None:
        self.folder = folder
        self.order = order
        self.beat = beat
        self.left_s: dict[str, float] = {"cpu_s": order["cpu_s"], "blocked_s": order["blocked_s"]}
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
            **order["environment"],
        }

    def build(self) -> dict[str, Any]:
        """Build, and see whether there is a program then: `{}`, or a reading and why."""
        left_s = {"cpu_s": self.order["build_s"], "blocked_s": self.order["build_s"]}
        for argv in self.order["build"]:
            bounds = Bounds(output_bytes=self.order["build_bytes"], **left_s)
            end, out, err = run(argv, self.folder, self.env, b"", bounds, beat=self.beat)
            left_s = {name: max(0.0, left_s[name] - end[name]) for name in left_s}
            if end["status"] != 0:
                said = (out[-_SAID:] + err[-_SAID:]).decode("utf-8", "replace")[-_SAID:]
                how = end["over"] or end["failed"] or end["signal"] or end["status"]
                reading = "TIMEOUT" if end["over"] in {"cpu", "blocked"} else "NO_BUILD"
                return {"reading": reading, "why": f"{' '.join(argv)} ended with {how}: {said}"}
        first = self.order["program"][0]
        found = shutil.which(str(self.folder / first) if "/" in first else first, path=self.env["PATH"])
        missing = [] if found else [f"{first} (an executable file)"]
        missing += [name for name in self.order["needs"] if not (self.folder / name).is_file()]
        return {"reading": "INTERFACE_MISS", "why": f"missing: {', '.join(missing)}"} if missing else {}

    def answer(self, body: bytes) -> bytes:
        """One call of the program, within what those before it have left."""
        head, (stdin,) = unpacked(body, 1)
        bounds = Bounds(
            output_bytes=self.order["output_bytes"],
            memory_bytes=self.order["memory_bytes"],
            **{name: max(0.0, left) for name, left in self.left_s.items()},
        )
        argv = [*self.order["program"], *head["argv"]]
        end, out, err = run(argv, self.folder, {**self.env, **head["env"]}, stdin, bounds, beat=self.beat)
        for name in self.left_s:
            self.left_s[name] -= end[name]
        return packed(end, out, err)


def main(folder: str) -> None:
    """Load the exhibit, build it, say so, then answer until the channel closes."""
    reader, writer = take_channel()
    go_on_below(writer)
    order = json.loads(read_frame(reader, LOAD)[1])
    lay(read_frame(reader, LOAD)[1], Path(folder))
    adopt()
    write_all(writer, frame(b"L", {"confined": confined()}))
    subject = Subject(Path(folder), order, lambda: write_all(writer, raw_frame(BEAT, b"")))
    write_all(writer, frame(b"H", subject.build()))
    try:
        while True:
            write_all(writer, raw_frame(b"R", subject.answer(read_frame(reader, LOAD)[1])))
    except EOFError:
        os._exit(0)
