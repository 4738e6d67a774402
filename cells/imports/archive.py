"""
Members of a ZIP archive as streams, for an archive that may be made to harm its reader.

Nothing is ever extracted, and no name is taken for a path. A member may not be longer than it says, nor inflate beyond
what texts do; its checksum must hold; an archive that is cut off, or whose members lie over each other, is refused.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

from cells.imports.foreign_files import open_regular
from cells.imports.unpacking import PIECE, UNPACKERS
from harness.errors import DeclarationError

__all__ = ["MOST_MEMBER", "Archive"]

MOST_MEMBER: Final = 8 << 30
"""Bytes of one member, unpacked."""
_MOST_RATIO: Final = 1000
_FREE_OF_RATIO: Final = 64 << 20
"""Below so many bytes, no ratio of packed to unpacked is suspicious."""
_MOST_DIRECTORY: Final = 256 << 20
_ENCRYPTED: Final = 1

_END: Final = struct.Struct("<4s4H2LH")
_LARGE_END: Final = struct.Struct("<4sQ2H2L4Q")
_LOCATOR: Final = struct.Struct("<4sLQL")
_LOCAL: Final = struct.Struct("<4s5H3L2H")


class Archive:
    """A ZIP archive that is open for reading: a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open_regular(path)
        try:
            self.members = self._directory()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def fault(self, what: str) -> DeclarationError:
        """An error that names the file."""
        return DeclarationError(f"{self.path}: {what}")

    def _directory(self) -> tuple[zipfile.ZipInfo, ...]:
        """The members in the order written; a name may be there more than once."""
        size = self._file.seek(0, 2)
        _refuse_large_directory(self._file, size, self.fault)
        try:
            with zipfile.ZipFile(self._file) as archive:
                members = tuple(sorted(archive.infolist(), key=lambda member: member.header_offset))
        except (zipfile.BadZipFile, ValueError, struct.error, NotImplementedError, UnicodeDecodeError) as error:
            raise self.fault(f"is no whole ZIP archive ({error}): was it cut off when it was copied?") from None
        end = 0
        for member in members:
            if member.header_offset < end or member.header_offset + member.compress_size > size:
                raise self.fault(f"member {member.filename[:200]!r} lies over another one or beyond the end")
            end = member.header_offset + _LOCAL.size + member.compress_size
        return members

    def read(self, member: zipfile.ZipInfo) -> Iterator[bytes]:
        """The member's bytes as they come. Raises `DeclarationError` for one that is not what the archive says."""
        where = f"member {member.filename[:200]!r}"
        most = min(member.file_size, MOST_MEMBER)
        if member.file_size > max(_FREE_OF_RATIO, _MOST_RATIO * member.compress_size) or member.file_size > MOST_MEMBER:
            raise self.fault(f"{where} would unpack {member.compress_size} bytes to {member.file_size}: no log does")
        if member.flag_bits & _ENCRYPTED:
            raise self.fault(f"{where} is encrypted: expected a log that can be read")
        unpack = UNPACKERS.get(member.compress_type)
        if unpack is None:
            raise self.fault(f"{where} is packed by method {member.compress_type}: known {sorted(UNPACKERS)}")
        total, checksum = 0, 0
        try:
            for piece in unpack(self._packed(member)):
                total += len(piece)
                if total > most:
                    raise self.fault(f"{where} is longer than the {most} bytes that it says it has")
                checksum = zlib.crc32(piece, checksum)
                yield piece
        except (zlib.error, EOFError, OSError) as error:
            raise self.fault(f"{where} can't be unpacked: {error}") from None
        if total != member.file_size or checksum != member.CRC:
            raise self.fault(f"{where} is damaged: {total} bytes with checksum {checksum:08x}, not {member.CRC:08x}")

    def _packed(self, member: zipfile.ZipInfo) -> Iterator[bytes]:
        """The member as it is stored, from its own header on."""
        self._file.seek(member.header_offset)
        header = self._file.read(_LOCAL.size)
        if len(header) < _LOCAL.size or header[:4] != b"PK\x03\x04":
            raise self.fault(f"member {member.filename[:200]!r} does not begin where the archive says")
        name, extra = _LOCAL.unpack(header)[-2:]
        at, left = member.header_offset + _LOCAL.size + name + extra, member.compress_size
        while left:
            # Others may be read between two pieces of this one.
            self._file.seek(at)
            piece = self._file.read(min(PIECE, left))
            if not piece:
                raise self.fault(f"member {member.filename[:200]!r} is cut off")
            at, left = at + len(piece), left - len(piece)
            yield piece


def _refuse_large_directory(file: BinaryIO, size: int, fault: Callable[[str], DeclarationError]) -> None:
    """The list of members is read at once, so that its length has to be known first."""
    tail = min(size, _END.size + 0xFFFF)
    file.seek(size - tail)
    data = file.read(tail)
    at = data.rfind(b"PK\x05\x06")
    if at < 0 or len(data) - at < _END.size:
        return  # not an archive at all: told by who opens it
    length = int(_END.unpack_from(data, at)[5])
    # An archive in the large form says it in a record of its own, which this one points to.
    if at >= _LOCATOR.size and data[at - _LOCATOR.size : at].startswith(b"PK\x06\x07"):
        file.seek(min(size, int(_LOCATOR.unpack_from(data, at - _LOCATOR.size)[2])))
        record = file.read(_LARGE_END.size)
        length = int(_LARGE_END.unpack(record)[8]) if len(record) == _LARGE_END.size else size
    if length > _MOST_DIRECTORY:
        raise fault(f"its list of members takes {length} bytes: expected at most {_MOST_DIRECTORY}")
