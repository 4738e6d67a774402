"""
The git repository that an experiment file stands in: which commit was frozen, and what was not committed.

What is pinned is pinned by digest, whatever git says; a commit tells a reader where to look for the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["dirt_text", "repository_facts"]

_NAMED = 50
"""So many uncommitted paths are kept by name; how many there are is kept in any case."""


def repository_facts(source: Path) -> dict[str, Any] | None:
    """
    The commit of the repository around the file `source`, and the paths that differ from it; None outside of any.

    `dirty` holds the first 50 paths, below the repository's root, that are staged, changed, or not tracked (the last
    below the experiment's own folder only); `dirty_count` is how many there are. A repository that can't be read is
    told as `unreadable` with why, and stops nothing: the pins do not rest on it.
    """
    from dulwich.errors import NotGitRepository
    from dulwich.repo import Repo

    try:
        with Repo.discover(str(source.parent)) as repository:
            root = Path(repository.path).resolve()
            paths = sorted(set(_uncommitted(repository, source.parent.resolve().relative_to(root))))
            commit = _head(repository)
    except NotGitRepository:
        return None
    except Exception as error:  # noqa: BLE001 - the pins don't rest on git: whatever is wrong with it is told
        return {"unreadable": f"{type(error).__name__}: {error}"}
    return {"commit": commit, "dirty": paths[:_NAMED], "dirty_count": len(paths)}


def _head(repository: Any) -> str | None:
    """The commit checked out; None where there is none yet."""
    try:
        return str(repository.head().decode("ascii"))
    except KeyError:
        return None


def _uncommitted(repository: Any, folder: Path) -> Iterator[str]:
    from dulwich.porcelain import status

    found = status(repository, untracked_files="normal")
    yield from map(_text, [path for paths in found.staged.values() for path in paths])
    yield from map(_text, found.unstaged)
    root = Path(repository.path)
    for path in map(_text, found.untracked):
        # Run folders are what Proctor writes, not what it reads.
        if Path(path).is_relative_to(folder) and not any((root / path).glob("*/registration.json")):
            yield path


def _text(path: bytes | str) -> str:
    return path.decode("utf-8", "backslashreplace") if isinstance(path, bytes) else path


def dirt_text(facts: Mapping[str, Any] | None) -> Iterable[str]:
    """What a reader must know of the repository, a line each: none where it is clean."""
    if facts is None:
        return
    if "unreadable" in facts:
        yield f"git: the repository can't be read ({facts['unreadable']}): no commit is recorded"
        return
    if facts["commit"] is None:
        yield "git: the repository has no commit yet: none is recorded"
    if facts["dirty_count"]:
        names = ", ".join(facts["dirty"][:5]) + (", ..." if facts["dirty_count"] > 5 else "")
        yield f"git: {facts['dirty_count']} paths are not committed: {names}"
