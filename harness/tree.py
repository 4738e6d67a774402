"""
A folder as a value: what goes into a workspace and what comes out of it.

A tree holds regular files only, under relative POSIX paths. Whatever else a seat leaves (links, devices, sockets,
FIFOs, files over a cap) is dropped and named, never followed and never written to the host.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from harness.canonical import digest_bytes, digest_json
from harness.errors import TaskError

__all__ = ["FOLDER_BYTES", "Dropped", "Exhibit", "ExhibitFilter", "File", "Tree", "TreeCaps", "clean_path"]


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """One regular file."""

    data: bytes
    executable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeCaps:
    """How much a tree may hold: bytes in all, bytes in one file, files, and folders above a file."""

    total_bytes: int = 64 << 20
    file_bytes: int = 16 << 20
    entries: int = 10_000
    depth: int = 32


FOLDER_BYTES = 256 << 20
"""What a folder on this host may hold in all: it is read whole, kept more than once, and laid into every workspace."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dropped:
    """An entry that was left out of a tree, and why."""

    path: str
    why: str


def clean_path(path: str) -> str:
    """
    `path` in normal form, or `ValueError`: relative, no `..`, no empty part, no NUL, encodable as UTF-8.

    >>> clean_path("src/./a.py")
    'src/a.py'
    """
    if not path or "\0" in path or path.startswith("/"):
        raise ValueError(f"{path!r} is not a relative path")
    path.encode("utf-8")
    parts = [part for part in PurePosixPath(path).parts if part != "."]
    if not parts or ".." in parts:
        raise ValueError(f"{path!r} leaves its folder")
    return "/".join(parts)


@dataclass(frozen=True, slots=True)
class Tree:
    """An immutable set of regular files by relative path."""

    files: Mapping[str, File] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in self.files:
            if clean_path(path) != path:
                raise ValueError(f"{path!r} is not in normal form")

    @classmethod
    def of(cls, files: Mapping[str, str | bytes]) -> Tree:
        """A tree of plain files from text (UTF-8) or bytes."""
        raw = {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}
        return cls({path: File(data=data) for path, data in raw.items()})

    @classmethod
    def from_folder(cls, folder: Path) -> Tree:
        """
        The files below `folder` on this host. Raises `TaskError` for links and special files: a task folder is
        trusted only for what it declares, and a link would bring in something that no digest of it covers. So it does
        for a name that is no text, and for more than `FOLDER_BYTES` in all, before the file that is too much is read.
        """
        files: dict[str, File] = {}
        left = FOLDER_BYTES
        for root, folders, names in os.walk(folder, followlinks=False):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in [*folders, *sorted(names)]:
                path = Path(root) / name
                found = path.lstat()
                mode = found.st_mode
                if stat.S_ISDIR(mode):
                    continue
                if not stat.S_ISREG(mode):
                    raise TaskError(f"{path} is a link or a special file: expected regular files and folders only")
                left -= found.st_size
                if left < 0:
                    raise TaskError(_too_much(folder, path, found.st_size))
                files[path.relative_to(folder).as_posix()] = File(data=path.read_bytes(), executable=bool(mode & 0o100))
        try:
            return cls(files)
        except UnicodeEncodeError as error:
            raise TaskError(f"{folder} has a file whose name is not UTF-8: {error.object!r}") from None

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.files))

    def __getitem__(self, path: str) -> bytes:
        return self.files[path].data

    def __contains__(self, path: object) -> bool:
        return path in self.files

    def text(self, path: str) -> str:
        """The file at `path` as UTF-8 text, undecodable bytes replaced."""
        return self.files[path].data.decode("utf-8", "replace")

    def under(self, prefix: str) -> Tree:
        """The part of the tree below the folder `prefix`, with `prefix` taken off its paths."""
        head = prefix.rstrip("/") + "/"
        return Tree({path[len(head) :]: file for path, file in self.files.items() if path.startswith(head)})

    def placed(self, prefix: str) -> Tree:
        """The same files below the folder `prefix`."""
        return Tree({f"{prefix.rstrip('/')}/{path}": file for path, file in self.files.items()})

    def merged(self, other: Tree) -> Tree:
        """Both trees in one; where both have a path, `other` wins."""
        return Tree({**self.files, **other.files})

    @property
    def size(self) -> int:
        """Bytes in all files together."""
        return sum(len(file.data) for file in self.files.values())

    def manifest(self) -> dict[str, dict[str, object]]:
        """By path: SHA-256, size in bytes, and whether it is executable."""
        return {
            path: {
                "sha256": digest_bytes(self.files[path].data),
                "bytes": len(self.files[path].data),
                "executable": self.files[path].executable,
            }
            for path in sorted(self.files)
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical manifest: equal for equal paths, bytes and executable bits, whatever the order."""
        return digest_json(self.manifest())

    def to_tar(self) -> bytes:
        """The tree as an uncompressed tar with fixed times and owners, so that equal trees give equal bytes."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path in sorted(self.files):
                file = self.files[path]
                info = tarfile.TarInfo(path)
                info.size = len(file.data)
                info.mode = 0o755 if file.executable else 0o644
                archive.addfile(info, io.BytesIO(file.data))
        return buffer.getvalue()


def _too_much(folder: Path, path: Path, size: int) -> str:
    return (
        f"{folder} holds more than {FOLDER_BYTES} bytes, and {path.relative_to(folder)} alone has {size}: a folder is "
        "laid into a workspace whole. Put large files into the image, or take them out"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Exhibit:
    """What the harness itself took out of a workspace at the end: a tree, and what it left out and why."""

    tree: Tree
    dropped: tuple[Dropped, ...] = ()

    @property
    def digest(self) -> str:
        """The digest of the tree."""
        return self.tree.digest


class ExhibitFilter:
    """
    Lets regular files into an exhibit one by one, whatever is handed to it: within `caps`, and under clean paths only.
    What does not come in is dropped and named.
    """

    def __init__(self, caps: TreeCaps) -> None:
        self._caps = caps
        self._files: dict[str, File] = {}
        self._dropped: list[Dropped] = []
        self._total = self._unnamed = 0

    def take(self, path: object, data: bytes, *, executable: bool) -> None:
        """One file that came out of a workspace."""
        why = self._why_dropped(path, len(data))
        if why is None:
            self._files[str(path)] = File(data=data, executable=executable)
            self._total += len(data)
        elif len(self._dropped) < self._caps.entries:
            self._dropped.append(Dropped(path=repr(path)[1:-1][:512], why=why))
        else:
            self._unnamed += 1

    def exhibit(self, *, left_out: tuple[Dropped, ...] = ()) -> Exhibit:
        """What came in, and what didn't: `left_out` where the files came from, and here."""
        rest = (Dropped(path="*", why=f"{self._unnamed} more entries were left out"),) if self._unnamed else ()
        return Exhibit(tree=Tree(self._files), dropped=(*left_out, *self._dropped, *rest))

    def _why_dropped(self, path: object, size: int) -> str | None:
        caps = self._caps
        if not isinstance(path, str):
            return "a path that is no text"
        try:
            if clean_path(path) != path:
                return "the path is not in normal form"
        except ValueError as error:
            return str(error)
        if path in self._files:
            return "the path is there twice"
        if len(self._files) >= caps.entries:
            return f"more than {caps.entries} files"
        if path.count("/") > caps.depth:
            return f"deeper than {caps.depth} folders"
        if size > caps.file_bytes:
            return f"over the cap of {caps.file_bytes} bytes for one file"
        if self._total + size > caps.total_bytes:
            return f"the tree would hold over {caps.total_bytes} bytes"
        return None
