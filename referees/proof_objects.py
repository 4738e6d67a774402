"""
The form of Rocq's compiled files, as far as the referee must know it: which segments there are, and their MD5.

    magic number, version      4 bytes each
    where the summary is       8 bytes
    segments                   each followed by its MD5, 16 bytes
    summary                    how many (4), and for each: length of its name (4), name, where (8), length (8), MD5 (16)

A compiled file names each module it needs by the MD5 of that module's segment `library`. `repointed` exchanges one of
these, in a file that the judge compiled itself, which makes it a check of another file than it was compiled against.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

__all__ = ["Segment", "library_digest", "repointed", "segments", "verify"]

_MAGIC = b"Coq!"
_LIBRARY = "library"
_MOST_SEGMENTS = 64


@dataclass(frozen=True, slots=True)
class Segment:
    """Where a segment starts, how many bytes it has, its MD5 by the summary, and where in the file that stands."""

    start: int
    size: int
    digest: bytes
    digest_at: int


def segments(data: bytes) -> dict[str, Segment]:
    """The segments of a compiled file by name. Raises `ValueError` for bytes that are not one."""
    if data[:4] != _MAGIC:
        raise ValueError("it does not start as a compiled file does")
    try:
        return dict(_summary(data))
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"its table of segments is broken: {error}") from None


def _summary(data: bytes) -> list[tuple[str, Segment]]:
    (at,) = struct.unpack_from(">Q", data, 8)
    (count,) = struct.unpack_from(">I", data, at)
    if count > _MOST_SEGMENTS:
        raise ValueError(f"it says that it has {count} segments: expected {_MOST_SEGMENTS} at most")
    at += 4
    found = []
    for _ in range(count):
        (length,) = struct.unpack_from(">I", data, at)
        name = data[at + 4 : at + 4 + length].decode("ascii")
        at += 4 + length
        start, size, digest = struct.unpack_from(">QQ16s", data, at)
        if start + size + 16 > len(data):
            raise ValueError(f"its segment {name[:40]!r} lies outside of it")
        found.append((name, Segment(start, size, digest, at + 16)))
        at += 32
    return found


def verify(data: bytes) -> None:
    """Raise `ValueError` unless `data` is a module's file with the checksums of its bytes, which coqchk believes."""
    library_digest(data)
    for name, segment in segments(data).items():
        end = segment.start + segment.size
        if not segment.digest == data[end : end + 16] == _md5(data[segment.start : end]):
            raise ValueError(f"a checksum of its segment {name[:40]!r} is wrong")


def _md5(data: bytes | bytearray) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def library_digest(data: bytes) -> bytes:
    """The MD5 by which others name this module. Raises `ValueError` for bytes that are no compiled file."""
    found = segments(data)
    if _LIBRARY not in found:
        raise ValueError("it has no segment 'library'")
    return found[_LIBRARY].digest


def repointed(check: bytes, *, compiled_against: bytes, at: bytes) -> bytes:
    """
    `check`, which names the module `compiled_against`, made to name the module in `at` instead.

    Raises `ValueError` where `at` is no compiled file, or where `check` does not name `compiled_against`.
    """
    old, new = library_digest(compiled_against), library_digest(at)
    if old not in check:
        raise ValueError("the check does not name the module that it was compiled against")
    changed = bytearray(check.replace(old, new))
    for segment in segments(check).values():
        digest = _md5(changed[segment.start : segment.start + segment.size])
        changed[segment.digest_at : segment.digest_at + 16] = digest
        changed[segment.start + segment.size : segment.start + segment.size + 16] = digest
    return bytes(changed)
