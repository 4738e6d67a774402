"""
Reads how many tests passed by a card's own pattern. The search is a process of its own, with a limit: a pattern that is
quick with what a suite says may take for ever over what a program has put out.
"""

from __future__ import annotations

import json
import subprocess
import sys

from referees.command_report import MOST, Told, Unreadable

__all__ = ["read_counts"]

LINE = 10_000
"""Characters of the longest line of a report that is searched for counts."""
SEARCH_S = 1
"""Seconds of the processor that the search may take."""

_SEARCH = """\
import itertools, json, re, resource, sys
pattern, lines, seconds = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
found = (match for line in lines for match in re.finditer(pattern, line))
print(json.dumps([[match.group()[:120], match.groupdict()] for match in itertools.islice(found, 2)]))
"""


def read_counts(data: bytes, pattern: str) -> list[Told]:
    """
    Numbered tests for the counts in the one place that `pattern` matches, in one line: those that passed first.

    Raises `Unreadable` where none matches or several do, where a line is too long to be searched or the search takes
    too long, or where the counts are no numbers. Starts a process: call it from a worker thread.
    """
    lines = data.decode("utf-8", "replace").split("\n")
    longest = max(map(len, lines))
    if longest > LINE:
        raise Unreadable(f"a line of {longest} characters: expected at most {LINE}")
    matches = _found(pattern, lines)
    if len(matches) != 1:
        raise Unreadable(f"{'2 places match' if matches else 'no place matches'} {pattern!r}: expected one")
    ((line, groups),) = matches
    try:
        counts = {name: int(text or "0") for name, text in groups.items()}
    except ValueError:
        raise Unreadable(f"the counts are no numbers: {line!r}") from None
    if not 0 <= sum(counts.values()) <= MOST or min(counts.values()) < 0:
        raise Unreadable(f"counts out of bounds: {line!r}")
    words = [(name, counts.get(name, 0)) for name in ("passed", "failed", "skipped")]
    listed = [word for word, count in words for _ in range(count)]
    return [Told(id=str(number), word=word) for number, word in enumerate(listed, 1)]


def _found(pattern: str, lines: list[str]) -> list[tuple[str, dict[str, str | None]]]:
    """The first two matches: what was matched, and its groups."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _SEARCH],
        input=json.dumps([pattern, lines, SEARCH_S]).encode("ascii"),
        capture_output=True,
        check=False,
    )
    if done.returncode < 0:
        raise Unreadable(f"the search for {pattern!r} took over {SEARCH_S} s, or all memory")
    if done.returncode:
        raise Unreadable(f"the search for {pattern!r} failed: {done.stderr[-200:]!r}")
    return [(line, dict(groups)) for line, groups in json.loads(done.stdout)]
