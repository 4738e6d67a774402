"""
The file tool's far end. Its text is sent into a workspace and runs there with the workspace's own python3, as the seat.

It imports nothing but the standard library (Python 3.8 is enough), `cell_paths.py` and `cell_archive.py`, which are
sent along. Requests come on stdin and answers go to stdout, each a frame: two big-endian 32-bit lengths, a JSON header,
a body of bytes. An answer repeats the `id` of its request.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import signal
import stat
import struct
import sys

from harness.workspaces.cell_archive import archived
from harness.workspaces.cell_paths import (
    MAX_DEPTH,
    Failed,
    Refused,
    Walk,
    kind_of,
    load,
    open_beneath,
    open_file,
    open_folder,
    open_root,
    read_fd,
    shown,
    store,
    why_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is slow to import, and a cell waits for this to start
    from types import FrameType
    from typing import Any, BinaryIO, Callable, Dict

    Header = Dict[str, Any]

LENGTHS = struct.Struct(">II")
MAX_HEADER = 4 << 20
MAX_BODY = 256 << 20
MAX_FILE = 16 << 20  # what edit and search read of one file
MAX_LINES = 4 << 20  # what `lines` looks at of one file
LETTERS = {"file": "f", "folder": "d", "link": "l", "FIFO": "p", "socket": "s", "device": "b"}


def row_of(path: str, info: os.stat_result) -> bytes:
    """What a listing says of one thing: a letter for its kind, whether it is executable, its size, its path."""
    mark = "x" if info.st_mode & 0o100 else "-"
    return ("%s%s%d %s\0" % (LETTERS[kind_of(info)], mark, info.st_size, shown(path))).encode("utf-8")


class Rows:
    """The rows of an answer, at most `count` of them and at most `room` bytes; `full` once one more did not fit."""

    def __init__(self, count: int, room: int) -> None:
        self.count = count
        self.room = room
        self.full = False
        self.kept: list[bytes] = []

    def take(self, row: bytes) -> bool:
        """Keep the row if there is room for it, and say whether there was."""
        if len(self.kept) >= self.count or len(row) > self.room:
            self.full = True
        else:
            self.kept.append(row)
            self.room -= len(row)
        return not self.full


def do_ping(_ask: Header, _body: bytes) -> tuple[Header, bytes]:
    """Nothing, which shows that somebody is there."""
    return {}, b""


def do_read(ask: Header, _body: bytes) -> tuple[Header, bytes]:
    """At most `max_bytes` of a file, and its whole size."""
    data, size = load(ask["root"], ask["path"], ask["max_bytes"])
    return {"size": size}, data


def do_lines(ask: Header, _body: bytes) -> tuple[Header, bytes]:
    """The lines from number `start` on, `count` of them, at most `max_bytes` in all; and how many there are."""
    data, size = load(ask["root"], ask["path"], MAX_LINES)
    begin = place_of(data, ask["start"], 0)
    end = None if begin is None else place_of(data, ask["count"] + 1, begin)
    wanted = b"" if begin is None else data[begin : None if end is None else end - 1]
    part = wanted[: ask["max_bytes"]]
    total = data.count(b"\n") + 1
    return {"size": size, "looked": len(data), "total": total, "cut": len(part) < len(wanted)}, part


def place_of(data: bytes, line: int, at: int) -> int | None:
    """Where the line with this number begins, if the one that begins at `at` has number 1; None if there is none."""
    for _ in range(line - 1):
        at = data.find(b"\n", at) + 1
        if at == 0:
            return None
    return at


def do_write(ask: Header, body: bytes) -> tuple[Header, bytes]:
    """The body becomes the file."""
    store(ask["root"], ask["path"], body)
    return {}, b""


def do_edit(ask: Header, body: bytes) -> tuple[Header, bytes]:
    """The old text, which must be there exactly once, becomes the new."""
    old, new = body[: ask["old"]], body[ask["old"] :]
    data, size = load(ask["root"], ask["path"], MAX_FILE)
    if size > len(data):
        raise Failed("the file is over %d bytes, too large to edit" % MAX_FILE)
    at = data.find(old)
    if at < 0:
        raise Failed("the old text is not in the file: expected exactly one match")
    if data.find(old, at + 1) >= 0:
        raise Failed("the old text is in the file more than once: expected exactly one match, give more context")
    store(ask["root"], ask["path"], data[:at] + new + data[at + len(old) :])
    return {"line": data.count(b"\n", 0, at) + 1}, b""


def do_list(ask: Header, _body: bytes) -> tuple[Header, bytes]:
    """What is in a folder, `depth` levels down."""
    walk = Walk(ask["depth"], ask["skip"])
    rows = Rows(ask["max_entries"], ask["max_bytes"])
    for _, _, path, info in walk.below(open_folder(ask["root"], ask["path"])):
        if not rows.take(row_of(path, info)):
            break
    return {"cut": walk.cut or rows.full}, b"".join(rows.kept)


def do_search(ask: Header, _body: bytes) -> tuple[Header, bytes]:
    """Lines of text files that a regular expression matches: for each its number, its path and its text."""
    expression = re.compile(ask["pattern"])
    rows = Rows(ask["max_matches"], ask["max_bytes"])
    walk = Walk(MAX_DEPTH, ask["skip"])
    for folder, name, path, info in walk.below(open_folder(ask["root"], ask["path"])):
        if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_FILE:
            continue
        data = text_of(folder, name)
        if data and not search_text(expression, data, shown(path), rows):
            break
    return {"cut": walk.cut or rows.full}, b"".join(rows.kept)


def text_of(folder: int, name: str) -> bytes:
    """A file's bytes, or none if it can't be read or has a NUL near its start."""
    try:
        fd, _ = open_file(folder, name)
    except (OSError, Refused):
        return b""
    try:
        data = read_fd(fd, MAX_FILE)
    finally:
        os.close(fd)
    return b"" if b"\0" in data[:8192] else data


def search_text(expression: re.Pattern[str], data: bytes, path: str, rows: Rows) -> bool:
    """Keep the matching lines; False when there is no room for more."""
    for number, line in enumerate(io.BytesIO(data), 1):
        text = line.decode("utf-8", "replace").rstrip("\n")
        if expression.search(text):
            row = "%d\0%s\0%s\0" % (number, path, text[:500].replace("\0", "\ufffd"))
            if not rows.take(row.encode("utf-8", "replace")):
                return False
    return True


def do_stat(ask: Header, _body: bytes) -> tuple[Header, bytes]:
    """What is at a path; a link is told as a link."""
    root_fd = open_root(ask["root"])
    try:
        fd = open_beneath(root_fd, ask["path"] or ".", os.O_PATH)
    finally:
        os.close(root_fd)
    try:
        return {}, row_of(ask["path"], os.fstat(fd))
    finally:
        os.close(fd)


def do_put(ask: Header, body: bytes) -> tuple[Header, bytes]:
    """Many files at once: their bytes follow each other in the body."""
    at = 0
    for item in ask["files"]:
        store(ask["root"], item["path"], body[at : at + item["size"]], item["executable"])
        at += item["size"]
    return {}, b""


ACTIONS = {
    "ping": do_ping,
    "read": do_read,
    "lines": do_lines,
    "write": do_write,
    "edit": do_edit,
    "list": do_list,
    "search": do_search,
    "stat": do_stat,
    "put": do_put,
}


def reply(out: BinaryIO, header: Header, body: bytes = b"") -> None:
    """Write one frame."""
    text = json.dumps(header).encode("ascii")
    out.write(LENGTHS.pack(len(text), len(body)) + text)
    out.write(body)
    out.flush()


def error_reply(error: Exception) -> Header:
    """The header that tells what went wrong, by sort."""
    sort, said = "failed", str(error) or type(error).__name__
    if isinstance(error, Refused):
        sort = "refused"
    elif isinstance(error, OSError):
        said = why_text(error)
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            sort = "absent"
        elif error.errno == errno.ELOOP:
            sort, said = "refused", "there is a link on the way, and links are not followed"
        elif error.errno == errno.EXDEV:
            sort, said = "refused", "it leads out of its root"
        elif error.errno == errno.ENXIO:
            sort, said = "refused", "it is a socket, FIFO or device, not a regular file"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            sort = "refused"
        elif error.errno == errno.ENOSYS:
            said = "openat2 is not there: the file tool needs Linux 5.6 or later"
    elif isinstance(error, re.error):
        said = "not a regular expression: %s" % error
    return {"ok": False, "sort": sort, "said": said}


def answer_to(ask: Header, body: bytes, limit: Callable[[float], None]) -> tuple[Header, bytes]:
    """What became of one request. Nothing that a request or a file holds ends the helper."""
    try:
        limit(ask.get("seconds", 0))
        header, data = ACTIONS[ask["op"]](ask, body)
        limit(0)
    except Exception as error:  # noqa: BLE001 - whatever went wrong is this request's own, and is told
        limit(0)
        return error_reply(error), b""
    header["ok"] = True
    return header, data


def read_frame(source: BinaryIO) -> tuple[Header, bytes] | None:
    """The next request, or None at the end of the stream."""
    head = source.read(LENGTHS.size)
    if len(head) < LENGTHS.size:
        return None
    header, body = LENGTHS.unpack(head)
    if header > MAX_HEADER or body > MAX_BODY:
        raise ValueError("a frame over the cap")
    return json.loads(source.read(header)), source.read(body)


def serve(source: BinaryIO, out: BinaryIO, limit: Callable[[float], None] = lambda _seconds: None) -> None:
    """Answer requests until the stream ends. `limit` is told how many seconds one may take, and 0 when it is over."""
    while True:
        frame = read_frame(source)
        if frame is None:
            return
        ask, body = frame
        if ask["op"] == "archive":
            for item, data in archived(ask["root"], ask):
                reply(out, item, data)
            continue
        header, data = answer_to(ask, body, limit)
        header["id"] = ask.get("id")
        reply(out, header, data)


def alarm(seconds: float) -> None:
    """Set the alarm clock, or with 0 stop it."""
    signal.setitimer(signal.ITIMER_REAL, seconds)


def out_of_time(_number: int, _frame: FrameType | None) -> None:
    """The answer to the alarm clock: the request that is being worked on fails."""
    raise Failed("it took too long and was given up")


if __name__ == "__main__":
    os.umask(0o022)
    signal.signal(signal.SIGALRM, out_of_time)
    serve(sys.stdin.buffer, sys.stdout.buffer, alarm)
