"""
What the file tool's far end sends when a workspace is collected: each regular file, then what it left out and why.

Like `cell_helper.py`, its text is sent into a workspace and runs there: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import os
import stat

from harness.workspaces.cell_paths import (
    MAX_NAMES,
    TEMPORARY,
    Refused,
    Walk,
    kind_of,
    open_file,
    open_root,
    read_fd,
    shown,
    why_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is slow to import, and a cell waits for this to start
    from typing import Any, Dict, Iterator

    Header = Dict[str, Any]

MAX_DROPPED = 1000
MAX_PATH = 1024  # bytes of a path that goes into an exhibit


class Dropped:
    """What is left out, by path and reason: the first ones by name, the rest as a number."""

    def __init__(self) -> None:
        self.rows: list[Header] = []
        self.more = 0

    def add(self, path: str, why: str) -> None:
        """One more is left out."""
        if len(self.rows) < MAX_DROPPED:
            self.rows.append({"path": shown(path)[:300], "why": why})
        else:
            self.more += 1

    def listed(self) -> list[Header]:
        """All of it, as an answer holds it."""
        rest = [{"path": "*", "why": "%d more entries were left out" % self.more}] if self.more else []
        return self.rows + rest


def why_not_taken(path: str, info: os.stat_result, caps: Header) -> str | None:
    """Why something in a folder can't be part of an exhibit, or None."""
    if not stat.S_ISREG(info.st_mode):
        return kind_of(info)
    try:
        if len(path.encode("utf-8")) > MAX_PATH:
            return "its path is over %d bytes" % MAX_PATH
    except UnicodeEncodeError:
        return "the name is not UTF-8"
    if os.path.basename(path).startswith(TEMPORARY):
        return "the file tool was writing it when it was ended"
    if info.st_size > caps["file_bytes"]:
        return "%d bytes, over the cap of %d for one file" % (info.st_size, caps["file_bytes"])
    return None


def candidates(root_fd: int, caps: Header, dropped: Dropped) -> list[tuple[int, str, int]]:
    """
    The files that may be taken, as (folders above it, path, size). The ones nearest to the root come first, so that no
    heap of files in some folder can crowd them out.
    """
    walk = Walk(caps["depth"])
    found = []
    for _, _, path, info in walk.below(root_fd):
        if stat.S_ISDIR(info.st_mode):
            continue
        why = why_not_taken(path, info, caps)
        if why is None:
            found.append((path.count("/"), path, info.st_size))
        else:
            dropped.add(path, why)
    if walk.cut:
        dropped.rows.insert(0, {"path": "*", "why": "more than %d names; the rest was not looked at" % MAX_NAMES})
    for path, why in walk.unread:
        dropped.add(path, why)
    return sorted(found)


def content(root_fd: int, path: str, limit: int) -> tuple[Header, bytes]:
    """A file as an exhibit has it: at most `limit` bytes and one more, which tells that there are more."""
    fd, info = open_file(root_fd, path)
    try:
        return {"path": path, "executable": bool(info.st_mode & 0o100)}, read_fd(fd, limit + 1)
    finally:
        os.close(fd)


def archived(root: str, caps: Header) -> Iterator[tuple[Header, bytes]]:
    """
    Yields each file with its bytes, and at last a header with what was left out.

    Nothing that is in the folder stops it. What a seat has closed is closed to this too, which runs as the seat in a
    room that can't be changed: a root that can't be opened gives no file and says so.
    """
    dropped = Dropped()
    try:
        listing, root_fd = open_root(root), open_root(root)
    except OSError as error:
        dropped.add(".", "the folder can't be read: " + why_text(error))
        yield {"ok": True, "dropped": dropped.listed()}, b""
        return
    taken = total = 0
    for _, path, size in candidates(listing, caps, dropped):
        if taken >= caps["entries"]:
            dropped.add(path, "more than %d files" % caps["entries"])
            continue
        if total + size > caps["total_bytes"]:
            dropped.add(path, "the tree would hold over %d bytes" % caps["total_bytes"])
            continue
        try:
            header, data = content(root_fd, path, min(caps["file_bytes"], caps["total_bytes"] - total))
        except (OSError, Refused) as error:
            dropped.add(path, "it can't be read: " + why_text(error))
            continue
        taken += 1
        total += len(data)
        yield header, data
    os.close(root_fd)
    yield {"ok": True, "dropped": dropped.listed()}, b""
