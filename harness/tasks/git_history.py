"""
What a git repository in a task's open half still holds: the seat reads every object, whatever branch is checked out.

Objects are read by dulwich from a copy of the object files alone. No git program, hook, filter, attribute or
configuration of the repository takes part, and what it names outside of itself is told, never opened.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.tasks.mark_search import Search
from harness.tree import Tree

if TYPE_CHECKING:
    from dulwich.object_store import DiskObjectStore

__all__ = ["GitFinding", "repositories", "search_history"]

_ID = re.compile(r"[0-9a-f]{40}")
_LOOSE = re.compile(r"objects/[0-9a-f]{2}/[0-9a-f]{38}")
_PACK = re.compile(r"objects/pack/pack-[0-9a-f]+\.(?:pack|idx)")
_SHA256 = re.compile(r"objects/(?:[0-9a-f]{2}/[0-9a-f]{62}|pack/pack-[0-9a-f]{64}\.pack)")
_ASIDE = re.compile(
    r"objects/(?:info/.*|pack/(?:multi-pack-index.*|pack-[0-9a-f]+\.(?:rev|bitmap|keep|mtimes|promisor)))"
)
"""Files among the objects that hold none."""
_POINTERS = re.compile(r"(?:packed-refs|[A-Z_]*HEAD|(?:logs/)?refs/.*|logs/HEAD)")


@dataclass(frozen=True, kw_only=True, slots=True)
class GitFinding:
    """Something in a repository that a seat must not be given: where, and what."""

    where: str
    what: str


def repositories(tree: Tree) -> Iterator[str]:
    """
    The folders of `tree` that are git repositories (`.git`, or bare, then "" may be one); those of submodules stand in
    them.
    """
    heads = [path.removesuffix("HEAD").rstrip("/") for path in tree if path == "HEAD" or path.endswith("/HEAD")]
    found: list[str] = []
    for folder in sorted(heads, key=len):
        objects = f"{folder}/objects/" if folder else "objects/"
        has_objects = any(path.startswith(objects) for path in tree)
        inside = "" in found or folder.startswith(tuple(f"{outer}/" for outer in found))
        if has_objects and not inside:
            found.append(folder)
    yield from found


def search_history(git: Tree, name: str, search: Search, forbidden: Iterable[str] = ()) -> list[GitFinding]:
    """
    Everything in the repository `git` (its own folder, called `name`) that is later than what is checked out.

    Commits that the checked-out one does not descend from, and who still points to them (branches, tags, reflogs,
    stashes); objects of elsewhere (alternates, links to another folder); `forbidden` commits that still resolve. Every
    object's text goes through `search`, reachable or not. Submodules are looked at in the same way.
    """
    findings = [*_elsewhere(git, name), *_unreadable(git, name)]
    inner = [f"modules/{module}" for module in repositories(git.under("modules"))]
    for module in inner:
        findings += search_history(git.under(module), f"{name}/{module}", search, forbidden)
    with tempfile.TemporaryDirectory(prefix="proctor-git-") as folder:
        kept = _lay_objects(git, name, Path(folder), search)
        if kept:
            try:
                findings += _search_objects(git, name, Path(folder) / "objects", search, tuple(forbidden))
            except Exception as error:  # noqa: BLE001 - the library has no word of its own for a damaged pack
                why = f"its objects can't be read, so nobody can vouch for them: {type(error).__name__}: {error}"
                findings.append(GitFinding(where=name, what=why))
    return findings


def _unreadable(git: Tree, name: str) -> Iterator[GitFinding]:
    if any(_SHA256.fullmatch(path) for path in git):
        yield GitFinding(
            where=name,
            what="its objects have SHA-256 names, which can't be looked into here: make it a repository with SHA-1",
        )


def _elsewhere(git: Tree, name: str) -> Iterator[GitFinding]:
    for path in ("objects/info/alternates", "objects/info/http-alternates", "commondir", "gitdir"):
        if path in git and git[path].strip():
            yield GitFinding(where=f"{name}/{path}", what=f"takes objects from elsewhere: {git.text(path).strip()!r}")


def _lay_objects(git: Tree, name: str, folder: Path, search: Search) -> int:
    """Copy the files of objects, and nothing else of the repository, into `folder`; what is neither is told."""
    kept = 0
    (folder / "objects" / "pack").mkdir(parents=True)
    for path in git:
        if _LOOSE.fullmatch(path) or _PACK.fullmatch(path):
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(git[path])
            kept += 1
        elif path.startswith("objects/") and not _ASIDE.fullmatch(path):
            search.note(f"{name}/{path}", "no file of git's that is known here: what it holds was not looked at")
    return kept


def _search_objects(
    git: Tree, name: str, objects: Path, search: Search, forbidden: tuple[str, ...]
) -> list[GitFinding]:
    from dulwich.object_store import DiskObjectStore

    store = DiskObjectStore(str(objects))
    try:
        commits = _look_into_objects(store, name, search)
        return [
            *_later(git, name, commits),
            *(
                GitFinding(where=name, what=f"the forbidden commit {wanted} still resolves, to {found}")
                for wanted in forbidden
                for found in sorted(commits)
                if found.startswith(wanted.lower())
            ),
        ]
    finally:
        store.close()


def _look_into_objects(store: DiskObjectStore, name: str, search: Search) -> dict[str, tuple[str, ...]]:
    """Each commit with its parents; every blob, message and tag goes through the search on the way."""
    commits: dict[str, tuple[str, ...]] = {}
    for identity in store:
        where = f"{name}:{identity.decode()[:12]}"
        try:
            kind, data = store.get_raw(identity)
        except Exception as error:  # noqa: BLE001 - a damaged object is told, whatever the library says of it
            search.note(where, f"it can't be read: {type(error).__name__}: {error}")
            continue
        if kind == 2:
            continue  # a tree holds names and ids alone
        search.look(where, data)
        if kind == 1:
            parents = re.findall(rb"^parent ([0-9a-f]{40})$", data.partition(b"\n\n")[0], re.MULTILINE)
            commits[identity.decode()] = tuple(parent.decode() for parent in parents)
    return commits


def _later(git: Tree, name: str, commits: dict[str, tuple[str, ...]]) -> Iterator[GitFinding]:
    """The commits that are not in the history of what is checked out."""
    pointers = _pointers(git)
    head = _resolve(git, pointers)
    past: set[str] = set()
    todo = [] if head is None else [head]
    while todo:
        commit = todo.pop()
        if commit not in past:
            past.add(commit)
            todo += commits.get(commit, ())
    for commit in sorted(set(commits) - past):
        holders = sorted(path for path, ids in pointers.items() if commit in ids)
        named = f"named by {', '.join(holders[:4])}" if holders else "named by nothing, and still there"
        yield GitFinding(where=name, what=f"commit {commit} is not in the history of what is checked out: {named}")


def _pointers(git: Tree) -> dict[str, set[str]]:
    """Every file that names commits, with those that it names."""
    found = {}
    for path in git:
        if _POINTERS.fullmatch(path):
            found[path] = set(_ID.findall(git.text(path)))
    return found


def _resolve(git: Tree, pointers: dict[str, set[str]]) -> str | None:
    """The commit that HEAD leads to, or None where it leads nowhere: then all there is counts as later."""
    head = git.text("HEAD").strip() if "HEAD" in git else ""
    if _ID.fullmatch(head):
        return head
    reference = head.removeprefix("ref:").strip()
    if reference in pointers and len(pointers[reference]) == 1:
        return next(iter(pointers[reference]))
    for line in git.text("packed-refs").splitlines() if "packed-refs" in git else ():
        identity, _, packed = line.partition(" ")
        if packed == reference and _ID.fullmatch(identity):
            return identity
    return None
