"""
Which candidates of a cell the referee judges, and what its reading is then: a small class for each way.

All of it happens after the seat's workspace is gone: a seat never learns what the hidden tests say of any candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import anyio

from cells.house import House
from cells.verdicts import judge
from harness.candidates import JudgedCandidate, deciding
from harness.canonical import digest_bytes
from harness.tasks.task import Task
from harness.transcript import read_transcript
from harness.tree import Exhibit, File, Tree
from harness.values import Verdict

__all__ = ["RULINGS", "AnyAccepted", "Left", "Ruling", "Rulings", "Shipped", "accepted_codes", "with_code"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """What a seat left: its exhibit and its transcript so far, of a task with the suite that was registered."""

    task: Task
    suite: str
    exhibit: Exhibit
    transcript: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Ruling:
    """The verdict that counts; and the candidates that it was chosen from, where it was chosen."""

    verdict: Verdict
    candidates: tuple[JudgedCandidate, ...] = ()


class Rulings(Protocol):
    """A way to a cell's reading. `says` is what a person is told of it at a freeze, empty for the usual one."""

    says: str

    async def rule(self, house: House, left: Left) -> Ruling:
        """The ruling on what a seat left. Raises `Blamed` as `judge` does."""
        ...


class Shipped:
    """The exhibit alone: the candidate that ships."""

    says = ""

    async def rule(self, house: House, left: Left) -> Ruling:
        """The referee's verdict on the exhibit."""
        return Ruling(verdict=await judge(house, left.task, left.exhibit, by_suite=left.suite))


class AnyAccepted:
    """
    Every candidate that the public tests accepted, in the order of rounds. A cell passes if any of them does; of a cell
    that has none, the exhibit is judged. Equal code is judged once. A referee that fails on one fails on the cell.
    """

    says = "judged is every candidate that the public tests accepted: a cell passes if any of them does"

    async def rule(self, house: House, left: Left) -> Ruling:
        """The verdict on the candidate that decides, with those on all of them."""
        codes = await anyio.to_thread.run_sync(lambda: list(accepted_codes(read_transcript(left.transcript))))
        if not codes:
            return await Shipped().rule(house, left)
        file = house.parts.seat.options()["file"]
        verdicts: dict[str, Verdict] = {}
        judged = []
        for number, code in codes:
            exhibit = replace(left.exhibit, tree=with_code(left.exhibit.tree, file, code))
            if exhibit.digest not in verdicts:
                await anyio.to_thread.run_sync(house.store.put_tree, exhibit.tree)
                verdicts[exhibit.digest] = await judge(house, left.task, exhibit, by_suite=left.suite)
            judged.append(
                JudgedCandidate(
                    round=number,
                    code_sha256=digest_bytes(code.encode()),
                    exhibit=exhibit.digest,
                    verdict=verdicts[exhibit.digest],
                )
            )
        return Ruling(verdict=deciding(judged).verdict, candidates=tuple(judged))


RULINGS: Mapping[str, Rulings] = MappingProxyType({"shipped": Shipped(), "any-accepted": AnyAccepted()})
"""By their names in an experiment file, `judges` of `[referee]`."""


def accepted_codes(events: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    """The round and the code of each candidate that the public tests accepted, from the events of a transcript."""
    written: tuple[int, str] = (0, "")
    for event in events:
        match event:
            case {"event": "extraction", "round": int(number), "code": str(code)}:
                written = (number, code)
            case {"event": "public", "round": int(number), "accepted": True} if written[1] and number == written[0]:
                yield written
            case _:
                pass


def with_code(tree: Tree, file: str, code: str) -> Tree:
    """The tree with `code` as its file `file`, which stays executable if it was."""
    there = tree.files.get(file, File(data=b""))
    return Tree({**tree.files, file: replace(there, data=code.encode())})
