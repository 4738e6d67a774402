"""Reads what Rust's libtest prints under `cargo test`: its text, or its JSON where the command asks for that."""

from __future__ import annotations

import json
import re
from typing import Any

from referees.command_report import DETAIL, MOST, Told, Unreadable

__all__ = ["read_cargo"]

_WORDS = {"ok": "passed", "FAILED": "failed", "ignored": "skipped", "failed": "failed", "timeout": "failed"}
_RUNNING = re.compile(r"running (\d{1,6}) tests?")
_TEST = re.compile(r"test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)(?:, .*)?")
_SLOW = re.compile(r"test \S+ has been running for over \d+ seconds")
_RESULT = re.compile(
    r"test result: (ok|FAILED)\. (\d{1,6}) passed; (\d{1,6}) failed; (\d{1,6}) ignored; 0 measured; \d+ filtered out"
    r"(?:; finished in [\d.]+s)?"
)
_HEAD = re.compile(r"---- (\S+) stdout ----")


def read_cargo(data: bytes) -> list[Told]:
    """
    The tests of every test program that ran, by libtest's own names.

    Raises `Unreadable` for a line out of place, and for a summary that does not agree with the lines before it.
    """
    lines = data.decode("utf-8", "replace").split("\n")
    first = next((line for line in lines if line.strip()), "")
    reader: _Json | _Text = _Json() if first.startswith("{") else _Text()
    for number, line in enumerate(lines, 1):
        try:
            reader.take(line)
        except Unreadable as error:
            raise Unreadable(f"line {number} of the report, {line[:120]!r}: {error}") from None
    if reader.open:
        raise Unreadable("the report stops before its summary")
    if len(reader.told) > MOST:
        raise Unreadable(f"more than {MOST} tests")
    return [
        Told(id=item.id, word=item.word, detail=reader.said.get(item.id, "").strip()[:DETAIL]) for item in reader.told
    ]


class _Text:
    """Blocks of `running N tests`, a line a test, what failing tests said, and a summary."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.said: dict[str, str] = {}
        self.open = False
        self._block: list[Told] = []
        self._wanted = 0
        self._after = False
        self._who = ""

    def take(self, line: str) -> None:
        """One line, by where it stands."""
        if not self.open:
            self._begin(line)
        elif result := _RESULT.fullmatch(line):
            self._close(result)
        elif self._after:
            self._heard(line)
        elif test := _TEST.fullmatch(line):
            self._block.append(Told(id=test[1], word=_WORDS[test[2]]))
        elif not line:
            self._after = True
        elif not _SLOW.fullmatch(line):
            raise Unreadable("expected a test's line")

    def _begin(self, line: str) -> None:
        running = _RUNNING.fullmatch(line)
        if running is None and line:
            raise Unreadable("expected `running N tests`")
        if running is not None:
            self.open, self._after, self._block, self._wanted = True, False, [], int(running[1])

    def _heard(self, line: str) -> None:
        if line and not any(item.word == "failed" for item in self._block):
            raise Unreadable("expected the summary: no test of this program failed")
        head = _HEAD.fullmatch(line)
        if head is not None:
            self._who = head[1]
        elif self._who and len(self.said.get(self._who, "")) < DETAIL:
            self.said[self._who] = f"{self.said.get(self._who, '')}{line[:DETAIL]}\n"

    def _close(self, result: re.Match[str]) -> None:
        words = [item.word for item in self._block]
        counted = (words.count("passed"), words.count("failed"), words.count("skipped"))
        if counted != tuple(int(figure) for figure in result.groups()[1:4]) or len(words) != self._wanted:
            raise Unreadable(f"of {self._wanted} tests, passed, failed and ignored are {counted} by their lines")
        if (result[1] == "ok") != (counted[1] == 0):
            raise Unreadable("the summary's word is not that of its counts")
        self.told += self._block
        self.open, self._who = False, ""


class _Json:
    """Events, one a line: a suite's start, its tests, its end with counts."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.said: dict[str, str] = {}
        self.open = False
        self._block: list[Told] = []
        self._wanted: Any = 0

    def take(self, line: str) -> None:
        """One event."""
        if not line.strip():
            return
        try:
            event = json.loads(line)
            kind, what = event["type"], event["event"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise Unreadable("expected an event of libtest's, as JSON") from None
        if type(kind) is not str or type(what) is not str:
            raise Unreadable("an event whose words are none")
        if kind == "suite" and what == "started" and not self.open:
            self.open, self._block, self._wanted = True, [], event.get("test_count")
        elif kind == "suite" and what in {"ok", "failed"} and self.open:
            self._close(event, what)
        elif kind == "test" and self.open and type(event.get("name")) is str:
            self._tested(event, what)
        else:
            raise Unreadable("an event out of place")

    def _tested(self, event: dict[str, Any], what: str) -> None:
        if what == "started":
            return
        if what not in {"ok", "failed", "ignored", "timeout"}:
            raise Unreadable("an event out of place")
        self._block.append(Told(id=event["name"], word=_WORDS[what]))
        self.said[event["name"]] = str(event.get("stdout", event.get("message", "")))[:DETAIL]

    def _close(self, event: dict[str, Any], what: str) -> None:
        words = [item.word for item in self._block]
        counted = (words.count("passed"), words.count("failed"), words.count("skipped"))
        said = tuple(event.get(key) for key in ("passed", "failed", "ignored"))
        if counted != said or len(words) != self._wanted or (what == "ok") != (counted[1] == 0):
            raise Unreadable(f"passed, failed and ignored are {counted} by their events, and {said} by the last")
        self.told += self._block
        self.open = False
