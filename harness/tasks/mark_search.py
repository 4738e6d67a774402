"""
Looking for sealed text in files, archives and archives in archives, by hashes alone.

Like the file tool's far end, this text is also sent into a room and runs there: standard library, Python 3.8 or later.
What it is given are keyed hashes of windows of lines, so a room in which it runs learns nothing of what is sealed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import sys
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is slow to import, and this starts once for each image
    from collections.abc import Iterator
    from typing import Any

WINDOW = 3  # lines that must stand together
MIN_LINE = 8  # characters of a line that says anything
MAX_FILE = 64 << 20  # bytes of one file, or of one member of an archive
MAX_UNPACKED = 1 << 30  # bytes taken out of all archives together
MAX_NESTED = 3  # archives in archives
MAX_NOTES = 200
PLAIN_STARTS = ("import ", "from ", "#", "//", "/*", "* ", "*/", '"""', "'''", "@", "using ", "use ", "package ")
LEADING = re.compile(
    r"[-+<>|\"', ]*(?:\d{1,6}[:|\t ] *)?[\"', ]*"
)  # marks of a patch, a reply, a list; a line's number
ESCAPE = re.compile(r"\\(?:u00([0-9a-fA-F]{2})|(.))")
ESCAPED = {"n": "\n", "r": "\n", "t": "\t"}
RUN = re.compile(rb"[\t\r\n\x20-\x7e\x80-\xff]{64,}")  # what of a binary file may be text
SEALED_KINDS = {
    b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf": "7z", b"Rar!": "rar", b"\x04\x22\x4d\x18": "lz4", b"LZIP": "lzip",
    b"\x1f\x9d": "compress", b"# v2 git bundle": "a git bundle", b"# v3 git bundle": "a git bundle",
    b"PACK\0\0\0": "a pack of git's",
}  # fmt: skip
SKIPPED = ("/proc", "/sys", "/dev")


def said(line: str) -> str:
    """A line as it is compared, or nothing if it is one of those that any file may have."""
    whole = " ".join(line.split())
    plain = whole[LEADING.match(whole).end() :]  # type: ignore[union-attr]  # it matches nothing, too
    if len(plain) < MIN_LINE or whole.startswith(PLAIN_STARTS) or plain.startswith(PLAIN_STARTS):
        return ""
    return plain


def lines_of(data: bytes) -> list[str]:
    """The lines of a text that say anything, in order."""
    return lines_in(data.decode("utf-8", "replace"))


def lines_in(text: str) -> list[str]:
    """The same of a text that is decoded already."""
    return [plain for plain in map(said, text.splitlines()) if plain]


def readings(data: bytes) -> Iterator[str]:
    """A file as the texts that it can be read as: as it stands, and as what is in its strings (a notebook's cells)."""
    text = decoded(data)
    yield text
    if "\\n" in text:
        yield ESCAPE.sub(unescaped, text)


def decoded(data: bytes) -> str:
    """A text in UTF-8 or UTF-16; of a binary file the runs that may be text."""
    head = data[:4096]
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    if b"\0" not in data[:8192]:
        return data.decode("utf-8", "replace")
    for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        if 2.2 * head[first::2].count(0) > len(head) * 0.95 and not head[1 - first :: 2].count(0):
            return data.decode(name, "replace")
    return b"\n".join(run for run in RUN.findall(data) if b"\n" in run).decode("utf-8", "replace")


def unescaped(found: re.Match[str]) -> str:
    """What an escape in a string stands for."""
    code, letter = found.groups()
    return chr(int(code, 16)) if code else ESCAPED.get(letter, letter)


def hashed(key: bytes, text: str) -> str:
    """A keyed hash, short enough to have many and long enough that no two of a machine's lines share one."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), key=key, digest_size=10).hexdigest()


def windows_of(key: bytes, hashes: list[str]) -> list[str]:
    """Each run of `WINDOW` lines as one hash; a shorter text is one window."""
    if len(hashes) < WINDOW:
        return [hashed(key, "".join(hashes))] if hashes else []
    return [hashed(key, "".join(hashes[at : at + WINDOW])) for at in range(len(hashes) - WINDOW + 1)]


class Marks:
    """
    What is looked for, by task. `starts` maps a line's hash to the tasks that have a window beginning with it. Each of
    `groups` is a task: its `quiet` lines are shown on purpose and pass unseen on both sides, its `windows` map a hash
    to the numbers of its sealed files. `sizes` counts the windows of each file.
    """

    def __init__(self, key: str, starts: dict[str, list[int]], groups: list[dict[str, Any]], sizes: list[int]) -> None:
        self.key = bytes.fromhex(key)
        self.starts = starts
        self.groups = [(set(group["quiet"]), group["windows"]) for group in groups]
        self.sizes = sizes

    def found_in(self, data: bytes) -> dict[int, int]:
        """By sealed file: how many of its windows stand in `data`, however it can be read."""
        found: dict[int, set[str]] = {}
        for text in readings(data):
            self._find_in(text, found)
        return {file: len(seen) for file, seen in found.items()}

    def _find_in(self, text: str, found: dict[int, set[str]]) -> None:
        lines = [hashed(self.key, line) for line in lines_in(text)]
        for number in {group for line in lines for group in self.starts.get(line, ())}:
            quiet, windows = self.groups[number]
            heard = [line for line in lines if line not in quiet]
            for window in self._windows(heard):
                for file in windows.get(window, ()):
                    found.setdefault(file, set()).add(window)

    def _windows(self, lines: list[str]) -> Iterator[str]:
        for at, line in enumerate(lines):
            if line in self.starts:
                for length in range(1, WINDOW + 1):
                    yield hashed(self.key, "".join(lines[at : at + length]))


class Search:
    """One search: what was found, what could not be looked into, and how much was looked at."""

    def __init__(self, marks: Marks) -> None:
        self.marks = marks
        self.hits: list[dict[str, Any]] = []
        self.unread: list[dict[str, str]] = []
        self.files = 0
        self.git: list[str] = []
        self._room = MAX_UNPACKED

    def look(self, name: str, data: bytes, nested: int = 0) -> None:
        """Look into a file, and into what is packed in it."""
        self.files += 1
        inner = self._members(name, data, nested)
        if inner is not None:
            for member, body in inner:
                self.look(name + "!" + member, body, nested + 1)
            return
        for start, kind in SEALED_KINDS.items():
            if data.startswith(start):
                self.note(name, "it is packed as %s, which is not looked into: unpack it, or take it out" % kind)
        self._weigh(name, self.marks.found_in(data))

    def _weigh(self, name: str, found: dict[int, int]) -> None:
        for number, count in found.items():
            size = self.marks.sizes[number]
            if count >= 3 or 2 * count >= size:
                if len(self.hits) < MAX_NOTES:
                    self.hits.append({"where": name, "sealed": number, "windows": count, "of": size})

    def note(self, name: str, why: str) -> None:
        """Something that can't be looked into; where there is too much of it, that is told last."""
        if len(self.unread) == MAX_NOTES:
            name, why = "elsewhere", "there is more that was not looked into than is named"
        if len(self.unread) <= MAX_NOTES:
            self.unread.append({"where": name, "why": why})

    def _members(self, name: str, data: bytes, nested: int) -> Iterator[tuple[str, bytes]] | None:
        """The members of an archive, or None where `data` is none."""
        opener = kind_of(data)
        if opener is None:
            return None
        if nested >= MAX_NESTED:
            self.note(name, "archives in archives, deeper than %d" % MAX_NESTED)
            return iter(())
        return self._guarded(name, opener(data))

    def _guarded(self, name: str, members: Iterator[tuple[str, int, Any]]) -> Iterator[tuple[str, bytes]]:
        try:
            for member, size, read in members:
                if size > MAX_FILE or size > self._room:
                    self.note(name + "!" + member, "%d bytes, over the cap" % size)
                    continue
                body = read()
                if len(body) > MAX_FILE:
                    self.note(name + "!" + member, "over %d bytes once unpacked" % MAX_FILE)
                    continue
                self._room -= len(body)
                yield member, body
        except Exception as error:  # a damaged, encrypted or unknown archive is told and not passed over in silence
            self.note(name, "it can't be unpacked: %s: %s" % (type(error).__name__, error))


def kind_of(data: bytes) -> Any:
    """What opens `data` as an archive, or None."""
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return open_zip
    if data[:2] == b"\x1f\x8b":
        return open_gzip
    if data[:3] == b"BZh":
        return open_bzip
    if data[:6] == b"\xfd7zXZ\x00":
        return open_xz
    if data[:5] == b"\x5d\0\0\x80\0":
        return open_xz  # its older format
    if data[:2] in (b"\x78\x01", b"\x78\x9c", b"\x78\xda"):
        return open_zlib
    if data[257:262] == b"ustar":
        return open_tar
    return None


def open_zip(data: bytes) -> Iterator[tuple[str, int, Any]]:
    """The members of a zip, whatever it is called (a wheel, a jar)."""
    import zipfile

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                yield info.filename, info.file_size, lambda info=info: archive.open(info).read(MAX_FILE + 1)


def open_tar(data: bytes) -> Iterator[tuple[str, int, Any]]:
    """The regular files of a tar, read as a stream of members and never put on a disk."""
    import tarfile

    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for info in archive:
            if info.isreg():
                body = archive.extractfile(info)
                yield info.name, info.size, lambda body=body: body.read(MAX_FILE + 1) if body else b""


def open_gzip(data: bytes) -> Iterator[tuple[str, int, Any]]:
    """What a gzip holds."""

    def read() -> bytes:
        return zlib.decompressobj(31).decompress(data, MAX_FILE + 1)

    yield "gz", 0, read


def open_zlib(data: bytes) -> Iterator[tuple[str, int, Any]]:
    """What is packed without a name of its own, as a git object outside of any repository is."""

    def read() -> bytes:
        return zlib.decompressobj().decompress(data, MAX_FILE + 1)

    yield "zlib", 0, read


def open_bzip(data: bytes) -> Iterator[tuple[str, int, Any]]:
    """What a bzip2 holds."""
    import bz2

    yield "bz2", 0, lambda: bz2.BZ2Decompressor().decompress(data, MAX_FILE + 1)


def open_xz(data: bytes) -> Iterator[tuple[str, int, Any]]:
    """What an xz holds."""
    import lzma

    yield "xz", 0, lambda: lzma.LZMADecompressor().decompress(data, MAX_FILE + 1)


def is_git(folder: str, names: list[str]) -> bool:
    """Whether a folder is a git repository's own: it is looked into by what knows how."""
    return "HEAD" in names and os.path.isdir(os.path.join(folder, "objects"))


def look_below(search: Search, top: str, inodes: set[tuple[int, int]]) -> None:
    """Look into every regular file below `top`, through no link and once for each inode."""

    def shut(error: OSError) -> None:
        search.note(str(error.filename), "the folder can't be read: %s" % error.strerror)

    for folder, names, files in os.walk(top, onerror=shut, followlinks=False):
        names[:] = sorted(name for name in names if os.path.join(folder, name) not in SKIPPED)
        if is_git(folder, names + files):
            search.git.append(folder)
            names[:] = []
            continue
        for name in sorted(files):
            path = os.path.join(folder, name)
            try:
                info = os.stat(path, follow_symlinks=False)
                if not stat.S_ISREG(info.st_mode) or (info.st_dev, info.st_ino) in inodes:
                    continue
                inodes.add((info.st_dev, info.st_ino))
                if info.st_size > MAX_FILE:
                    search.note(path, "%d bytes, over the cap" % info.st_size)
                    continue
                with open(path, "rb") as file:
                    data = file.read(MAX_FILE)
            except OSError as error:
                search.note(path, "it can't be read: %s" % error.strerror)
                continue
            search.look(path, data)


def main() -> None:
    """Search this room: what to look for comes on stdin, what was found goes to stdout."""
    asked = json.load(sys.stdin)
    search = Search(Marks(**asked["marks"]))
    for top in asked["tops"]:
        look_below(search, top, set())
    report = {"hits": search.hits, "unread": search.unread, "files": search.files, "git": search.git}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
