"""
Files in a workspace. Every look and every change is made inside the workspace, as the seat, by a helper that follows no
link (`helper.py`, `cell_helper.py`): the harness never opens a path of a seat's on the host.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from harness.walls import ToolRules
from harness.workspaces.exhibits import collect, lay, put
from harness.workspaces.file_helper import Asking
from harness.workspaces.frames import FileAbsent, FileFailed, FileRefused, FileToolError

__all__ = [
    "Entry",
    "FileAbsent",
    "FileFailed",
    "FileRefused",
    "FileToolError",
    "Files",
    "Lines",
    "Listing",
    "Match",
    "Matches",
    "Reading",
    "collect",
    "lay",
    "put",
]

HOME = "/workspace"
ROWS_BYTES = 1 << 20
"""Bytes that a listing or the matches of a search may take."""

GIVE_UP = 0.8
"""The part of its time after which a search gives up by itself, so that a slow one is not taken for a lost helper."""

Kind: TypeAlias = Literal["file", "folder", "link", "FIFO", "socket", "device"]
_KINDS: Mapping[str, Kind] = {
    "f": "file", "d": "folder", "l": "link", "p": "FIFO", "s": "socket", "b": "device"
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """The first bytes of a file, the size of all of it in bytes, and whether `data` is less than all."""

    data: bytes
    size: int
    truncated: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Lines:
    """
    Some lines of a file, `cut` when more of them were asked for than there was room for. `total` is how many lines
    there are in the first `looked` bytes, which are all that was looked at of the file's `size` bytes.
    """

    data: bytes
    cut: bool
    total: int
    looked: int
    size: int


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
        helper: Asking,
        *,
        roots: Sequence[str] = (HOME,),
        writable: Sequence[str] | None = None,
        denied: Sequence[str] = (),
        timeout_s: float = 20.0,
    ) -> None:
        self._helper = helper
        self._roots = tuple(map(_folder, roots))
        self._writable = self._roots if writable is None else tuple(map(_folder, writable))
        self._denied = tuple(map(_folder, denied))
        self._timeout_s = timeout_s

    @classmethod
    def ruled(cls, helper: Asking, rules: ToolRules, *, timeout_s: float = 20.0) -> Files:
        """The files that a seat's tool rules open to it."""
        return cls(helper, roots=rules.readable, writable=rules.writable, denied=rules.denied, timeout_s=timeout_s)

    async def read(self, path: str, *, max_bytes: int = 1 << 20) -> Reading:
        """The first `max_bytes` bytes of a regular file. Raises a `FileToolError`."""
        head, data = await self._ask("read", path, self._roots, room=max_bytes, max_bytes=max_bytes)
        size = _whole(head, "size")
        return Reading(data=data, size=size, truncated=size > len(data))

    async def lines(self, path: str, *, start: int = 1, count: int = 10**9, max_bytes: int = 1 << 20) -> Lines:
        """`count` lines of a text file from number `start` (from 1), `max_bytes` at most. Raises a `FileToolError`."""
        head, data = await self._ask(
            "lines", path, self._roots, room=max_bytes, start=start, count=count, max_bytes=max_bytes
        )
        total, looked, size = (_whole(head, name) for name in ("total", "looked", "size"))
        return Lines(data=data, cut=head.get("cut") is True, total=total, looked=looked, size=size)

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

    async def list(
        self, path: str = HOME, *, depth: int = 1, max_entries: int = 1000, max_bytes: int = ROWS_BYTES
    ) -> Listing:
        """
        What is in a folder, `depth` levels down (64 at most), in order of names and without what is denied.

        Raises a `FileToolError`.
        """
        head, data = await self._ask(
            "list", path, self._roots, room=max_bytes,
            depth=depth, max_entries=max_entries, max_bytes=max_bytes, skip=self._skipped(path),
        )  # fmt: skip
        return Listing(entries=tuple(map(_entry, _fields(data))), truncated=head.get("cut") is True)

    async def search(
        self, pattern: str, path: str = HOME, *, max_matches: int = 200, max_bytes: int = ROWS_BYTES
    ) -> Matches:
        """
        Lines of the text files below a folder that the regular expression `pattern` matches. Raises a `FileToolError`.

        Files with NUL bytes or over 16 MiB are passed over, and so is what is denied.
        """
        head, data = await self._ask(
            "search", path, self._roots, room=max_bytes,
            pattern=pattern, max_matches=max_matches, max_bytes=max_bytes, skip=self._skipped(path),
            seconds=GIVE_UP * self._timeout_s,
        )  # fmt: skip
        return Matches(matches=_matches(_fields(data)), truncated=head.get("cut") is True)

    async def stat(self, path: str) -> Entry:
        """What is at a path; a link is told as a link, and not followed. Raises a `FileToolError`."""
        _, data = await self._ask("stat", path, self._roots, room=ROWS_BYTES)
        fields = _fields(data)
        return _entry(fields[0] if fields else "")

    async def _ask(
        self, op: str, path: str, roots: tuple[str, ...], *, body: bytes = b"", room: int = 0, **more: object
    ) -> tuple[Mapping[str, Any], bytes]:
        what = f"{op} {path!r}"
        root, below = self._place(what, path, roots)
        header = {"op": op, "root": root, "path": below, **more}
        return await self._helper.ask(header, body, room=room, timeout_s=self._timeout_s, what=what)

    def _skipped(self, path: str) -> Sequence[str]:
        """The denied folders below a folder, as paths below it."""
        full = _folder(posixpath.join(HOME, path))
        return [_below(folder, full) for folder in self._denied if _inside(folder, full)]

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
        return root, _below(full, root)


def _folder(path: str) -> str:
    """An absolute path in normal form."""
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is not an absolute path of the workspace")
    return "/" + posixpath.normpath(path).lstrip("/")


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _below(path: str, folder: str) -> str:
    return path.removeprefix(folder).lstrip("/") or "."


def _whole(item: Mapping[str, Any], name: str) -> int:
    value = item.get(name)
    if not isinstance(value, int) or value < 0:
        raise FileFailed(f"the file tool answered {name} = {value!r}: expected a count")
    return value


def _fields(data: bytes) -> list[str]:
    """The fields of an answer, each of which ends with a NUL."""
    return data.decode("utf-8", "backslashreplace").split("\0")[:-1]


def _entry(row: str) -> Entry:
    kind, size = _KINDS.get(row[:1]), row[2:].partition(" ")[0]
    if kind is None or not _is_count(size):
        raise FileFailed("the file tool answered something that is no entry of a folder")
    return Entry(path=row[3 + len(size) :], kind=kind, size=int(size), executable=row[1] == "x")


def _matches(fields: Sequence[str]) -> tuple[Match, ...]:
    if len(fields) % 3 or not all(map(_is_count, fields[::3])):
        raise FileFailed("the file tool answered something that is no list of matches")
    rows = zip(fields[::3], fields[1::3], fields[2::3], strict=True)
    return tuple(Match(line=int(line), path=path, text=text) for line, path, text in rows)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20
