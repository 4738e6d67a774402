"""
Hostile candidates, and the little harness that runs them past a referee: `NAME_candidates.py` holds those of one referee.

Each candidate is shown to be rejected in its one class, and right after it a canary, an honest candidate, to be accepted
by the same judge: a referee that rejects everything, or that a candidate has harmed, does not get through.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from harness.tasks.task import Task
from harness.tree import Exhibit, Tree
from harness.values import Verdict

__all__ = ["Candidate", "Judge", "faults", "sections"]


def sections(path: Path, fragments: Mapping[str, str]) -> Iterator[tuple[list[str], str]]:
    """
    The sections of a file of candidates: the words of the heading (`=== WORD | WORD`), and the text below it.

    A line `<NAME>` or `<NAME, as WORD>` stands for the fragment of that name, with WORD in its gaps.
    """

    def filled(line: re.Match[str]) -> str:
        return fragments[line[1]].replace("{0}", line[2] or "")

    for part in re.split(r"^=== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        words = [word.strip() for word in heading.split("|")]
        yield words, re.sub(r"^<(\w+)(?:, as (\w+))?>\n", filled, text.strip("\n") + "\n", flags=re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What a hostile seat left of a task, and the one reading that it must come to."""

    task: Task
    files: Mapping[str, str | bytes]
    reading: str

    @property
    def exhibit(self) -> Exhibit:
        """What the harness took out of its workspace."""
        return Exhibit(tree=Tree.of(dict(self.files)))


Judge = Callable[[Candidate], Awaitable[Verdict]]
"""Judges one candidate: a referee, in the rooms or on the warm line that the test chose."""


@dataclass
class _Heard:
    """What was wrong so far."""

    faults: list[str] = field(default_factory=list)

    def note(self, name: str, expected: str, verdict: Verdict) -> None:
        if verdict.reading != expected:
            self.faults.append(f"{name}: {verdict.reading}, expected {expected} ({verdict.detail[:200]})")


async def faults(
    judge: Judge,
    candidates: Mapping[str, Candidate],
    canary: Candidate,
    *,
    within_s: float,
    every: int = 1,
    at_once: int = 1,
) -> list[str]:
    """
    Judge each candidate, and the canary after each, or after as many as `every` says, and once at the end; a sentence
    for each reading that was not the expected one. `at_once` are judged at a time, for a judge of fresh rooms.

    Raises `TimeoutError` when all of them together took longer than `within_s` seconds: one hung the judge.
    """
    heard = _Heard()
    queue = iter(enumerate(candidates.items(), start=1))

    async def work() -> None:
        for number, (name, candidate) in queue:
            heard.note(name, candidate.reading, await judge(candidate))
            if number % every == 0:
                heard.note(f"the canary after {name}", canary.reading, await judge(canary))

    with anyio.fail_after(within_s):
        async with anyio.create_task_group() as workers:
            for _ in range(at_once):
                workers.start_soon(work)
        heard.note("the canary at the end", canary.reading, await judge(canary))
    return heard.faults
