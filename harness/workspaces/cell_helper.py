"""
The file tool's far end. Its text is sent into a workspace and runs there with the workspace's own python3, as the seat.

It imports nothing of ours and only the standard library (Python 3.8 is enough). Requests come on stdin and answers go
to stdout, each a frame: two big-endian 32-bit lengths, a JSON header, a body of bytes. A path is resolved below its
root by openat2 and no link of any kind is followed, so it has no way to name a file that its root does not hold.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import stat
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is slow to import, and this starts for each call
    from typing import Any, BinaryIO, Dict, Iterator

    Header = Dict[str, Any]

LENGTHS = struct.Struct(">II")
MAX_HEADER = 4 << 20
MAX_BODY = 256 << 20
MAX_FILE = 16 << 20  # what edit and search read of one file
MAX_NAMES = 100_000  # names looked at in one call
MAX_DEPTH = 64
MAX_DROPPED = 1000
MAX_PATH = 1024  # bytes of a path that goes into an archive
CHUNK = 1 << 20

SYS_OPENAT2 = 437  # the same number on every architecture
BENEATH_NO_LINKS = 0x02 | 0x04 | 0x08  # RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH
PR_SET_DUMPABLE = 4
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
FOLDER = os.O_RDONLY | os.O_DIRECTORY
KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}

libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """The path leads somewhere that the file tool does not go."""


class Failed(Exception):
    """The request is right, and what it asks for can't be done."""


class How(ctypes.Structure):
    """`struct open_how` of openat2."""

    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def open_beneath(folder: int, path: str, flags: int) -> int:
    """A descriptor for `path`, which lies below the folder `folder` (a descriptor) and passes no link."""
    how = How(flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0, BENEATH_NO_LINKS)
    for _ in range(20):
        fd: int = libc.syscall(SYS_OPENAT2, folder, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):  # EAGAIN: something on the way was renamed meanwhile
            raise OSError(code, os.strerror(code), path)
    raise Refused("it was being renamed the whole time")


def open_folder_beneath(folder: int, path: str) -> int:
    """A descriptor for a folder below `folder`. The kernel calls a link in its place "not a directory": told apart."""
    try:
        return open_beneath(folder, path, FOLDER)
    except NotADirectoryError:
        fd = open_beneath(folder, path, os.O_PATH)
        try:
            kind = kind_of(os.fstat(fd))
        finally:
            os.close(fd)
        raise Refused("there is a " + kind + " where a folder belongs") from None


def open_root(root: str) -> int:
    """A descriptor for the root folder of a request."""
    return os.open(root, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC)


def open_own_root(root: str) -> int:
    """The same for the harness' own work, which a seat can't stop by taking the rights to its folder away."""
    try:
        return open_root(root)
    except PermissionError:
        os.chmod(root, 0o700)
        return open_root(root)


def kind_of(info: os.stat_result) -> str:
    """What sort of thing a stat result is of."""
    return KINDS.get(stat.S_IFMT(info.st_mode), "device")


def shown(name: str) -> str:
    """A name as text that is always encodable: bytes that are not UTF-8 become backslash escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def read_fd(fd: int, limit: int) -> bytes:
    """At most `limit` bytes of a descriptor."""
    parts = []
    while limit > 0:
        part = os.read(fd, min(limit, CHUNK))
        if not part:
            break
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def write_fd(fd: int, data: bytes) -> None:
    """All of `data` to a descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def open_file(folder: int, path: str) -> tuple[int, os.stat_result]:
    """A descriptor and the stat result of a regular file; anything else is refused before a byte is read."""
    fd = open_beneath(folder, path, READ)
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        os.close(fd)
        raise Refused("it is a " + kind_of(info) + ", not a regular file")
    return fd, info


def load(root: str, path: str, limit: int) -> tuple[bytes, int]:
    """At most `limit` bytes of a file, and its size."""
    folder = open_root(root)
    try:
        fd, info = open_file(folder, path)
    finally:
        os.close(folder)
    try:
        return read_fd(fd, limit), info.st_size
    finally:
        os.close(fd)


def make_folders(root_fd: int, parts: list[str], force: bool) -> int:
    """
    A descriptor for the folder `parts` below `root_fd`, made where it is missing. Takes `root_fd` over.

    With `force`, a link or file that stands where a folder belongs is removed.
    """
    current = root_fd
    for part in parts:
        try:
            below = open_folder_beneath(current, part)
        except (FileNotFoundError, Refused) as error:
            if isinstance(error, Refused):
                if not force:
                    raise
                os.unlink(part, dir_fd=current)
            try:
                os.mkdir(part, 0o755, dir_fd=current)
            except FileExistsError:
                pass
            below = open_folder_beneath(current, part)
        finally:
            os.close(current)
        current = below
    return current


def old_mode(folder: int, name: str, force: bool) -> int | None:
    """
    The permission bits of the file that is about to be replaced, or None; anything but a file is refused.

    With `force`, a folder is moved aside, and anything else is left for the rename to replace.
    """
    try:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(info.st_mode):
        if not force:
            raise Refused("it is a " + kind_of(info) + ", not a regular file")
        if stat.S_ISDIR(info.st_mode):
            os.rename(name, ".aside-" + os.urandom(8).hex(), src_dir_fd=folder, dst_dir_fd=folder)
        return None
    return stat.S_IMODE(info.st_mode)


def store(root: str, path: str, data: bytes, executable: bool | None = None) -> None:
    """
    Put a whole file in place at once: a temporary file beside it, then a rename.

    With `executable` given, whatever stands in its way gives way: that is how the harness itself puts a file down.
    """
    force = executable is not None
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        raise Refused("it leaves its folder")
    folder = -1
    try:
        root_fd = open_own_root(root) if force else open_root(root)
        folder = make_folders(root_fd, parts[:-1], force)
        mode = old_mode(folder, parts[-1], force)
        if force:
            mode = 0o755 if executable else 0o644
        temporary = ".proctor-" + os.urandom(8).hex()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(temporary, flags, 0o600, dir_fd=folder)
        try:
            write_fd(fd, data)
            os.fchmod(fd, 0o644 if mode is None else mode & 0o777)
            os.rename(temporary, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(temporary, dir_fd=folder)
            raise
        finally:
            os.close(fd)
    finally:
        if folder >= 0:
            os.close(folder)


def why_text(error: Exception) -> str:
    """What an error says, without the path that it was raised for."""
    return os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)


class Walk:
    """
    Everything below a folder, in order of names, never through a link. `cut` is set when a limit stopped it, and
    `unread` collects the folders that could not be opened.
    """

    def __init__(self, depth: int) -> None:
        self.depth = min(depth, MAX_DEPTH)
        self.names = MAX_NAMES
        self.cut = False
        self.unread: list[tuple[str, str]] = []

    def below(self, folder: int, prefix: str = "", level: int = 1) -> Iterator[tuple[int, str, str, os.stat_result]]:
        """Yields (descriptor of the folder, name, path, stat result). Takes `folder` over."""
        try:
            names = []
            with os.scandir(folder) as entries:
                for entry in entries:
                    if self.names <= 0:
                        self.cut = True
                        break
                    self.names -= 1
                    names.append(entry.name)
            for name in sorted(names):
                path = prefix + name
                try:
                    info = os.stat(name, dir_fd=folder, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    self.unread.append((path, "it can't be looked at: %s" % error.strerror))
                    continue
                yield folder, name, path, info
                if not stat.S_ISDIR(info.st_mode):
                    continue
                if level >= self.depth:
                    self.unread.append((path, "deeper than %d folders" % self.depth))
                    continue
                try:
                    below = open_beneath(folder, name, FOLDER)
                except (OSError, Refused) as error:
                    self.unread.append((path, "the folder can't be read: %s" % why_text(error)))
                    continue
                yield from self.below(below, path + "/", level + 1)
        finally:
            os.close(folder)


def open_folder(root: str, path: str) -> int:
    """A descriptor for a folder below a root."""
    root_fd = open_root(root)
    try:
        return open_folder_beneath(root_fd, path or ".")
    finally:
        os.close(root_fd)


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
