"""
The file tool's far end. Its text is sent into a workspace and runs there with the workspace's own python3, as the seat.

It imports nothing but the standard library (Python 3.8 is enough) and `cell_paths.py`, which is sent along. Requests
come on stdin and answers go to stdout, each a frame: two big-endian 32-bit lengths, a JSON header, a body of bytes.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import struct
import sys

from harness.workspaces.cell_paths import (
    MAX_DEPTH,
    MAX_NAMES,
    Failed,
    Refused,
    Walk,
    kind_of,
    libc,
    load,
    open_beneath,
    open_file,
    open_folder,
    open_own_root,
    open_root,
    read_fd,
    shown,
    store,
    why_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is slow to import, and this starts for each call
    from typing import Any, BinaryIO, Dict

    Header = Dict[str, Any]

LENGTHS = struct.Struct(">II")
MAX_HEADER = 4 << 20
MAX_BODY = 256 << 20
MAX_FILE = 16 << 20  # what edit and search read of one file
MAX_DROPPED = 1000
MAX_PATH = 1024  # bytes of a path that goes into an archive
PR_SET_DUMPABLE = 4


def entry_of(path: str, info: os.stat_result) -> Header:
    """What a listing says of one thing."""
    return {
        "path": shown(path),
        "kind": kind_of(info),
        "size": info.st_size,
        "executable": bool(info.st_mode & 0o100),
    }


def do_read(ask: Header, _body: bytes) -> tuple[Header, bytes]:
    """At most `max_bytes` of a file, and its whole size."""
    data, size = load(ask["root"], ask["path"], ask["max_bytes"])
    return {"size": size}, data


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
    walk = Walk(ask["depth"])
    found: list[Header] = []
    for _, _, path, info in walk.below(open_folder(ask["root"], ask["path"])):
        if len(found) >= ask["max_entries"]:
            walk.cut = True
            break
        found.append(entry_of(path, info))
    return {"entries": found, "cut": walk.cut}, b""


def search_file(expression: re.Pattern[str], data: bytes, path: str, room: int) -> list[Header]:
    """At most `room` matching lines of one file."""
    found = []
    for number, line in enumerate(data.split(b"\n"), 1):
        text = line.decode("utf-8", "replace")
        if expression.search(text):
            found.append({"path": shown(path), "line": number, "text": text[:500]})
            if len(found) >= room:
                break
    return found


def do_search(ask: Header, _body: bytes) -> tuple[Header, bytes]:
    """Lines of text files that a regular expression matches."""
    expression = re.compile(ask["pattern"])
    found: list[Header] = []
    walk = Walk(MAX_DEPTH)
    for folder, name, path, info in walk.below(open_folder(ask["root"], ask["path"])):
        if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_FILE:
            continue
        try:
            fd, _ = open_file(folder, name)
        except (OSError, Refused):
            continue
        try:
            data = read_fd(fd, MAX_FILE)
        finally:
            os.close(fd)
        if b"\0" in data[:8192]:
            continue
        found += search_file(expression, data, path, ask["max_matches"] + 1 - len(found))
        if len(found) > ask["max_matches"]:
            walk.cut = True
            break
    return {"matches": found[: ask["max_matches"]], "cut": walk.cut}, b""


def do_stat(ask: Header, _body: bytes) -> tuple[Header, bytes]:
    """What is at a path; a link is told as a link."""
    root_fd = open_root(ask["root"])
    try:
        fd = open_beneath(root_fd, ask["path"] or ".", os.O_PATH)
    finally:
        os.close(root_fd)
    try:
        return {"entry": entry_of(ask["path"], os.fstat(fd))}, b""
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
    "read": do_read,
    "write": do_write,
    "edit": do_edit,
    "list": do_list,
    "search": do_search,
    "stat": do_stat,
    "put": do_put,
}


def why_left_out(path: str, info: os.stat_result, kept: int, total: int, caps: Header) -> str | None:
    """Why an entry does not go into the archive, or None."""
    if not stat.S_ISREG(info.st_mode):
        return kind_of(info)
    try:
        if len(path.encode("utf-8")) > MAX_PATH:
            return "its path is over %d bytes" % MAX_PATH
    except UnicodeEncodeError:
        return "the name is not UTF-8"
    if kept >= caps["entries"]:
        return "more than %d files" % caps["entries"]
    if info.st_size > caps["file_bytes"]:
        return "%d bytes, over the cap of %d for one file" % (info.st_size, caps["file_bytes"])
    if total + info.st_size > caps["total_bytes"]:
        return "the tree would hold over %d bytes" % caps["total_bytes"]
    return None


def can_be_read(folder: int, name: str) -> str | None:
    """Why a file can't be read, or None. Looked at beforehand, so that no file can spoil the archive midway."""
    try:
        fd, _ = open_file(folder, name)
    except (OSError, Refused) as error:
        return "it can't be read: " + why_text(error)
    os.close(fd)
    return None


def plan_archive(root: str, caps: Header) -> tuple[list[tuple[str, os.stat_result]], list[tuple[str, str]]]:
    """
    Which files go into the archive, and what is left out with its reason. The ones nearest to the root come first, so
    that no heap of files in some folder can crowd them out.
    """
    walk = Walk(caps["depth"])
    found = [(path, info) for _, _, path, info in walk.below(open_own_root(root)) if not stat.S_ISDIR(info.st_mode)]
    found.sort(key=lambda item: (item[0].count("/"), item[0]))
    files: list[tuple[str, os.stat_result]] = []
    dropped: list[tuple[str, str]] = list(walk.unread)
    total = 0
    root_fd = open_own_root(root)
    for path, info in found:
        why = why_left_out(path, info, len(files), total, caps) or can_be_read(root_fd, path)
        if why is None:
            files.append((path, info))
            total += info.st_size
        else:
            dropped.append((path, why))
    os.close(root_fd)
    if walk.cut:
        dropped.insert(0, ("*", "more than %d names; the rest was not looked at" % MAX_NAMES))
    return files, dropped


def send_archive(ask: Header, out: BinaryIO) -> None:
    """Answer with what is left out, then write the archive itself until the end of the stream."""
    files, dropped = plan_archive(ask["root"], ask)
    listed = [{"path": shown(path)[:300], "why": why} for path, why in dropped[:MAX_DROPPED]]
    if len(dropped) > MAX_DROPPED:
        listed.append({"path": "*", "why": "%d more entries were left out" % (len(dropped) - MAX_DROPPED)})
    reply(out, {"ok": True, "dropped": listed, "files": len(files)})
    if not files:
        return
    import tarfile

    root_fd = open_own_root(ask["root"])
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for path, planned in files:
            fd, info = open_file(root_fd, path)
            with os.fdopen(fd, "rb") as body:
                if info.st_size != planned.st_size:
                    raise Failed(shown(path) + " changed while it was read")
                item = tarfile.TarInfo(path)
                item.size = info.st_size
                item.mode = 0o755 if info.st_mode & 0o100 else 0o644
                archive.addfile(item, body)
    os.close(root_fd)


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


def read_frame(source: BinaryIO) -> tuple[Header, bytes] | None:
    """The next request, or None at the end of the stream."""
    head = source.read(LENGTHS.size)
    if not head:
        return None
    header, body = LENGTHS.unpack(head)
    if header > MAX_HEADER or body > MAX_BODY:
        raise ValueError("a frame over the cap")
    return json.loads(source.read(header)), source.read(body)


def serve(source: BinaryIO, out: BinaryIO) -> None:
    """Answer requests until the stream ends. An archive is the last answer of a stream."""
    while True:
        frame = read_frame(source)
        if frame is None:
            return
        ask, body = frame
        if ask["op"] == "archive":
            send_archive(ask, out)
            out.flush()
            return
        try:
            header, data = ACTIONS[ask["op"]](ask, body)
        except (OSError, Refused, Failed, re.error, MemoryError, RecursionError, ValueError) as error:
            reply(out, error_reply(error))
        else:
            header["ok"] = True
            reply(out, header, data)


if __name__ == "__main__":
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # so that no process of the same user can write into this one's streams
    os.umask(0o022)
    serve(sys.stdin.buffer, sys.stdout.buffer)
