"""
Files in a workspace. Every look and every change is made inside the workspace, as the seat, by a helper that follows no
link (`cell_helper.py`): the harness never opens a path of a seat's on the host.

One call is one `exec` of the workspace. Nothing has to be kept alive between calls, so there is nothing for a seat to
kill or to hold on to, and what a seat does between two calls can't reach into either.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from harness.ports import Workspace
from harness.walls import ToolRules
from harness.workspaces.exhibits import collect, put
from harness.workspaces.frames import (
    HEADER_ROOM,
    FileAbsent,
    FileFailed,
    FileRefused,
    FileToolError,
    answer,
    helper_argv,
    plain_text,
    request,
)

__all__ = [
    "Entry",
    "FileAbsent",
    "FileFailed",
    "FileRefused",
    "FileToolError",
    "Files",
    "Listing",
    "Match",
    "Matches",
    "Reading",
    "collect",
    "put",
]

HOME = "/workspace"
Kind: TypeAlias = Literal["file", "folder", "link", "FIFO", "socket", "device"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """The first bytes of a file, the size of all of it in bytes, and whether `data` is less than all."""

    data: bytes
    size: int
    truncated: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """Something in a folder. `path` is below the folder listed, with bytes that are no UTF-8 written as escapes."""

    path: str
    kind: Kind
    size: int
    executable: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """What is in a folder; `truncated` when there is more."""

    entries: tuple[Entry, ...]
    truncated: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """One line that a search found, counted from 1 and cut at 500 characters."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Matches:
    """What a search found; `truncated` when there is more."""

    matches: tuple[Match, ...]
    truncated: bool


class Files:
    """
    The files of a workspace, for a seat's tools and for the harness.

    `roots` may be read and `writable` may be changed (the roots too, unless it is given); `denied` wins over both.
    A path is absolute, or relative to `/workspace`; one outside is refused, and so is any that passes a link, so that
    what these folders say by name also holds for where a path leads.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        roots: Sequence[str] = (HOME,),
        writable: Sequence[str] | None = None,
        denied: Sequence[str] = (),
        timeout_s: float = 20.0,
    ) -> None:
        self._workspace = workspace
        self._roots = tuple(map(_folder, roots))
        self._writable = self._roots if writable is None else tuple(map(_folder, writable))
        self._denied = tuple(map(_folder, denied))
        self._timeout_s = timeout_s

    @classmethod
    def ruled(cls, workspace: Workspace, rules: ToolRules) -> Files:
        """The files that a seat's tool rules open to it."""
        return cls(workspace, roots=rules.readable, writable=rules.writable, denied=rules.denied)

    async def read(self, path: str, *, max_bytes: int = 1 << 20) -> Reading:
        """The first `max_bytes` bytes of a regular file. Raises a `FileToolError`."""
        head, rest = await self._ask("read", path, self._roots, room=max_bytes, max_bytes=max_bytes)
        size = _whole(head, "size")
        if len(rest) > max_bytes:
            raise FileFailed(f"read {path!r}: {len(rest)} bytes came for the {max_bytes} asked for")
        return Reading(data=rest, size=size, truncated=size > len(rest))

    async def write(self, path: str, data: bytes) -> None:
        """Make `data` the whole of a file, at once, with the folders above it. Raises a `FileToolError`."""
        await self._ask("write", path, self._writable, body=data)

    async def edit(self, path: str, old: str, new: str) -> int:
        """
        Replace the text `old`, which must be in the file exactly once, and say in which line (from 1) it began.

        Raises `FileFailed` when it isn't there or is there more than once, and any other `FileToolError`.
        """
        if not old:
            raise FileFailed(f"edit {path!r}: the old text is empty: expected text that is in the file exactly once")
        try:
            before, after = old.encode(), new.encode()
        except UnicodeEncodeError as error:
            raise FileFailed(f"edit {path!r}: the text can't be written as UTF-8: {error}") from error
        head, _ = await self._ask("edit", path, self._writable, body=before + after, old=len(before))
        return _whole(head, "line")

    async def list(self, path: str = HOME, *, depth: int = 1, max_entries: int = 1000) -> Listing:
        """What is in a folder, `depth` levels down (64 at most), in order of names. Raises a `FileToolError`."""
        head, _ = await self._ask("list", path, self._roots, depth=depth, max_entries=max_entries)
        entries = tuple(_entry(item) for item in _rows(head, "entries", max_entries))
        return Listing(entries=entries, truncated=bool(head.get("cut")))

    async def search(self, pattern: str, path: str = HOME, *, max_matches: int = 200) -> Matches:
        """
        Lines of the text files below a folder that the regular expression `pattern` matches. Raises a `FileToolError`.

        Files with NUL bytes or over 16 MiB are passed over.
        """
        head, _ = await self._ask("search", path, self._roots, pattern=pattern, max_matches=max_matches)
        found = tuple(
            Match(
                path=plain_text(item.get("path"), 4096), line=_whole(item, "line"), text=plain_text(item["text"], 500)
            )
            for item in _rows(head, "matches", max_matches)
            if "text" in item
        )
        return Matches(matches=found, truncated=bool(head.get("cut")))

    async def stat(self, path: str) -> Entry:
        """What is at a path; a link is told as a link, and not followed. Raises a `FileToolError`."""
        head, _ = await self._ask("stat", path, self._roots)
        return _entry(head.get("entry"))

    async def _ask(
        self, op: str, path: str, roots: tuple[str, ...], *, body: bytes = b"", room: int = 0, **more: object
    ) -> tuple[Mapping[str, Any], bytes]:
        what = f"{op} {path!r}"
        root, below = self._place(what, path, roots)
        result = await self._workspace.exec(
            helper_argv(),
            stdin=request({"op": op, "root": root, "path": below, **more}, body),
            timeout_s=self._timeout_s,
            output_bytes=room + HEADER_ROOM,
            cwd="/",
        )
        return answer(result, what)

    def _place(self, what: str, path: str, roots: tuple[str, ...]) -> tuple[str, str]:
        """The root that a path lies in, and the path below it. Raises `FileRefused` when it lies in none."""
        if "\0" in path or ".." in path.split("/"):
            raise FileRefused(f"{what}: a path may have no '..' and no NUL in it")
        full = _folder(posixpath.join(HOME, path))
        if any(_inside(full, folder) for folder in self._denied):
            raise FileRefused(f"{what}: it is in a denied folder")
        holding = [root for root in roots if _inside(full, root)]
        if not holding:
            raise FileRefused(
                f"{what}: it is outside of {', '.join(roots) or 'every folder: none is open to this tool'}"
            )
        root = max(holding, key=len)
        return root, posixpath.relpath(full, root)


def _folder(path: str) -> str:
    """An absolute path in normal form."""
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is not an absolute path of the workspace")
    return "/" + posixpath.normpath(path).lstrip("/")


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _whole(item: Mapping[str, Any], name: str) -> int:
    value = item.get(name)
    if not isinstance(value, int) or value < 0:
        raise FileFailed(f"the file tool answered {name} = {value!r}: expected a count")
    return value


def _rows(head: Mapping[str, Any], name: str, limit: int) -> Sequence[Mapping[str, Any]]:
    rows = head.get(name)
    if not isinstance(rows, list) or len(rows) > limit or not all(isinstance(row, dict) for row in rows):
        raise FileFailed(f"the file tool answered something that is no list of at most {limit} {name}")
    return rows


def _entry(item: object) -> Entry:
    if not isinstance(item, dict) or item.get("kind") not in get_args(Kind):
        raise FileFailed("the file tool answered something that is no entry of a folder")
    return Entry(
        path=plain_text(item.get("path"), 4096),
        kind=item["kind"],
        size=_whole(item, "size"),
        executable=item.get("executable") is True,
    )
