"""
Does what a seat is shown give away what is sealed? Files, archives and git histories of a task's open half are searched
for text of its suite and reference, before anything is launched.

The search is for windows of lines (`mark_search.py`): reformatted or retold text is not found, and is the author's to
look for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.clock import fresh_token
from harness.tasks.git_history import GitFinding, repositories, search_history
from harness.tasks.mark_search import WINDOW, Marks, Search, hashed, lines_of, windows_of
from harness.tasks.task import Task
from harness.tree import Tree

__all__ = ["Leak", "LeakReport", "SealedMarks", "scan_open_half", "sealed_marks"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Leak:
    """Something sealed, or on the way to it, that the seat would be shown: where, and what it is."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, kw_only=True, slots=True)
class LeakReport:
    """What a scan found, what it could not look into, how many files it looked at, and what is too short to find."""

    leaks: tuple[Leak, ...]
    unread: tuple[Leak, ...] = ()
    files: int = 0
    too_short: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SealedMarks:
    """What is looked for, as hashes under a key made for one scan, and the sealed files' names by number."""

    told: Mapping[str, Any]
    """What a search in a room is given, as JSON data: it tells that room nothing of what is sealed."""
    names: tuple[str, ...]
    too_short: tuple[str, ...]

    @property
    def marks(self) -> Marks:
        """What a search on this side is given."""
        return Marks(**self.told)

    def leaks(self, hits: Iterable[Mapping[str, Any]]) -> Iterator[Leak]:
        """A search's hits by the sealed files' names."""
        for hit in hits:
            what = f"{hit['windows']} of {hit['of']} passages of the sealed {self.names[int(hit['sealed'])]}"
            yield Leak(where=str(hit["where"]), what=what)


_SHORT = 40
"""Characters that a sealed file must have in lines that say something, to be looked for at all."""


def sealed_marks(*tasks: Task) -> SealedMarks:
    """
    What of the sealed halves of tasks can be searched for.

    Left out is what the seat is shown on purpose: lines of the instruction, those of the environment's own file at the
    same path (the one to be repaired), and the files that the card says are `shared`.
    """
    book = _Book(key=bytes.fromhex(fresh_token(16)))
    for task in tasks:
        book.add(task)
    return book.marks()


class _Book:
    """Marks as they are gathered, task by task."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._starts: dict[str, set[int]] = {}
        self._groups: list[dict[str, Any]] = []
        self._names: list[str] = []
        self._sizes: list[int] = []
        self._short: list[str] = []

    def add(self, task: Task) -> None:
        """All of one task's sealed files."""
        told = set(lines_of(task.open.instruction.encode()))
        quiet, windows = set(told), dict[str, list[int]]()
        for name, data, same in _sealed_files(task):
            shown = told.union(*map(lines_of, same))
            quiet |= shown
            kept = [line for line in lines_of(data) if line not in shown]
            if sum(map(len, kept)) < _SHORT:
                self._short.append(f"{task.key}: {name}")
                continue
            self._file(f"{name} of {task.key}", [hashed(self._key, line) for line in kept], windows)
        hushed = sorted(hashed(self._key, line) for line in quiet)
        self._groups.append({"quiet": hushed, "windows": windows})

    def _file(self, name: str, lines: list[str], windows: dict[str, list[int]]) -> None:
        for start in lines[: max(1, len(lines) - WINDOW + 1)]:
            self._starts.setdefault(start, set()).add(len(self._groups))
        found = set(windows_of(self._key, lines))
        for window in found:
            windows.setdefault(window, []).append(len(self._names))
        self._names.append(name)
        self._sizes.append(len(found))

    def marks(self) -> SealedMarks:
        """What was gathered."""
        starts = {start: sorted(groups) for start, groups in self._starts.items()}
        told = {"key": self._key.hex(), "starts": starts, "groups": self._groups, "sizes": self._sizes}
        return SealedMarks(told=told, names=tuple(self._names), too_short=tuple(self._short))


def _sealed_files(task: Task) -> Iterator[tuple[str, bytes, list[bytes]]]:
    """Each sealed file that is not shared: its name, its bytes, and the open files that stand at its place."""
    environment, sealed = task.open.environment, task.sealed
    shared = set(sealed.card.get("leaks", {}).get("shared", ()))
    parts: list[tuple[str, Tree, tuple[str, ...]]] = [
        ("tests", sealed.tests, ("", "tests/", "test/")),
        ("solution", sealed.solution, ("",)),
        ("mutants", sealed.mutants, ()),
    ]
    for part, tree, places in parts:
        for path in tree:
            if f"{part}/{path}" in shared or (part == "solution" and path in environment and _same(task, path)):
                continue
            same = [environment[place + path] for place in places if place + path in environment]
            yield f"{part}/{path}", tree[path], same


def _same(task: Task, path: str) -> bool:
    return task.open.environment[path] == task.sealed.solution[path]


def scan_open_half(task: Task) -> LeakReport:
    """
    Search everything that the seat of `task` is shown. Pure, but for a temporary folder for git's objects.

    The instruction and extras are held to a milder rule, since they must speak of what is asked: they may not hold a
    sealed file whole. `statement` is derived from the reference on purpose and is not looked at.
    """
    sealed = sealed_marks(task)
    search = Search(sealed.marks)
    git: list[GitFinding] = []
    environment = task.open.environment
    inside = tuple(repositories(environment))
    prefixes = tuple(f"{repository}/" if repository else "objects/" for repository in inside)
    forbidden = tuple(task.sealed.card.get("leaks", {}).get("forbidden_commits", ()))
    for repository in inside:
        found = environment.under(repository) if repository else environment
        git += search_history(found, repository or "environment", search, forbidden)
    for path in environment:
        if path == ".git" or path.endswith("/.git"):
            leads = f"leads elsewhere: {environment.text(path)[:200]!r}"
            git.append(GitFinding(where=f"environment/{path}", what=leads))
        if not path.startswith(prefixes):
            search.look(f"environment/{path}", environment[path])
    leaks = [
        *_told_whole(task),
        *sealed.leaks(search.hits),
        *(Leak(where=finding.where, what=finding.what) for finding in git),
    ]
    return LeakReport(
        leaks=tuple(leaks),
        unread=tuple(Leak(where=item["where"], what=item["why"]) for item in search.unread),
        files=search.files,
        too_short=sealed.too_short,
    )


_WHOLE_LINES = 5
"""Lines that say something which a sealed file must have before "all of it is told" means anything."""


def _told_whole(task: Task) -> Iterator[Leak]:
    texts = {"instruction.md": task.open.instruction}
    texts |= {f"extras/{name}.md": text for name, text in task.open.extras.items() if name != "statement"}
    texts |= {f"details.{name}": text for name, text in task.open.details.items()}
    for where, text in texts.items():
        told = set(lines_of(text.encode()))
        for name, data, _same_place in _sealed_files(task):
            lines = set(lines_of(data))
            if len(lines) >= _WHOLE_LINES and lines <= told:
                yield Leak(where=where, what=f"every line of the sealed {name}")
