"""
How the file tool's far end gets at a path: below its root, by openat2, and through no link of any kind.

Like `cell_helper.py`, its text is sent into a workspace and runs there: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is slow to import, and a cell waits for this to start
    from typing import Collection, Iterator

MAX_NAMES = 100_000  # names looked at in one call
MAX_DEPTH = 64
CHUNK = 1 << 20

SYS_OPENAT2 = 437  # the same number on every architecture
BENEATH_NO_LINKS = 0x01 | 0x02 | 0x04 | 0x08  # RESOLVE_NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH
TEMPORARY = ".proctor-"  # what a file is called while it is being written
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
        temporary = TEMPORARY + os.urandom(8).hex()
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
    `unread` collects the folders that could not be opened. The paths `skip` are left out, with all below them.
    """

    def __init__(self, depth: int, skip: Collection[str] = ()) -> None:
        self.depth = min(depth, MAX_DEPTH)
        self.skip = frozenset(skip)
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
                if path in self.skip:
                    continue
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
