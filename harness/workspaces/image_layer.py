"""A root file system as one layer: a tar whose bytes depend on nothing but the files, their modes and their names."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from harness.errors import ImageError

__all__ = ["pack", "unpack"]

_CHUNK = 1 << 20
_EMPTIED = frozenset({"dev", "proc", "run", "sys"})
_LEFT_OUT = frozenset({".dockerenv"})
_STICKY = frozenset({"tmp", "var/tmp"})
_PRIVATE = frozenset({"workspace"})


class _Hashed:
    """A binary sink that knows the SHA-256 of what went through it."""

    def __init__(self, sink: IO[bytes] | None) -> None:
        self._sink = sink
        self._sum = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self._sum.update(data)
        if self._sink is not None:
            self._sink.write(data)
        return len(data)

    def digest(self) -> str:
        return self._sum.hexdigest()


def pack(folder: Path, sink: IO[bytes] | None) -> str:
    """
    Write the root file system in `folder` into `sink` (None: nowhere) as a tar and return that tar's SHA-256.

    Entries are sorted, owned by root and dated 1970; devices, sockets and FIFOs are left out, and so is whatever lies
    in /dev, /proc, /run and /sys. Every file is readable by everybody and nothing is setuid or setgid, so that an
    unprivileged sandbox sees the same image as a container; `/workspace` is 0700, since an engine gives a memory file
    system the mode of the folder it covers. Hard links become files of their own.
    """
    hashed = _Hashed(sink)
    with tarfile.open(fileobj=cast("IO[bytes]", hashed), mode="w|", format=tarfile.GNU_FORMAT, bufsize=_CHUNK) as tar:
        for name, entry in _walk(folder, PurePosixPath()):
            _add(tar, name, entry)
    return hashed.digest()


def _walk(folder: Path, below: PurePosixPath) -> Iterator[tuple[str, os.DirEntry[str]]]:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
    for entry in entries:
        name = str(below / entry.name)
        if name in _LEFT_OUT:
            continue
        yield name, entry
        if entry.is_dir(follow_symlinks=False) and name not in _EMPTIED:
            yield from _walk(Path(entry.path), below / entry.name)


def _add(tar: tarfile.TarFile, name: str, entry: os.DirEntry[str]) -> None:
    facts = entry.stat(follow_symlinks=False)
    info = tarfile.TarInfo(name)
    info.mode = _mode(name, facts.st_mode)
    if stat.S_ISDIR(facts.st_mode):
        info.type = tarfile.DIRTYPE
        tar.addfile(info)
    elif stat.S_ISLNK(facts.st_mode):
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, str(Path(entry.path).readlink()), 0o777
        tar.addfile(info)
    elif stat.S_ISREG(facts.st_mode):
        info.size = facts.st_size
        with Path(entry.path).open("rb") as source:
            tar.addfile(info, source)


def _mode(name: str, mode: int) -> int:
    if name in _PRIVATE:
        return 0o700
    if name in _STICKY:
        return 0o1777
    return 0o755 if stat.S_ISDIR(mode) or mode & 0o111 else 0o644


def unpack(source: IO[bytes], folder: Path) -> None:
    """
    Unpack a root file system's tar stream into the empty `folder`.

    Raises `ImageError` for an entry that would leave it, be it by `..` or through a link that an earlier entry made.
    Devices, sockets and FIFOs are left out. Files belong to whoever unpacks them.
    """
    with tarfile.open(fileobj=source, mode="r|*") as tar:
        for member in tar:
            _extract(tar, member, folder)


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    target = _inside(folder, member.name)
    if target == folder:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if member.isdir():
        target.mkdir(exist_ok=True)
        target.chmod(member.mode & 0o1777 | 0o700)
    elif member.issym():
        target.symlink_to(member.linkname)
    elif member.islnk():
        shutil.copy2(_inside(folder, member.linkname), target, follow_symlinks=False)
    elif member.isreg():
        data = tar.extractfile(member)
        assert data is not None
        with target.open("xb") as sink:
            shutil.copyfileobj(data, sink, _CHUNK)
        target.chmod(member.mode & 0o777 | 0o400)


def _inside(folder: Path, name: str) -> Path:
    parts = [part for part in PurePosixPath(name.lstrip("/")).parts if part != "."]
    target = folder
    for number, part in enumerate(parts, start=1):
        target = target / part
        if part == ".." or (number < len(parts) and target.is_symlink()):
            raise ImageError(f"entry {name!r} of the image leaves its folder: the image is refused")
    return target
