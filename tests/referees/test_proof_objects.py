"""Rocq's compiled files: their segments, and a check that is made to name another module."""

from __future__ import annotations

import hashlib
import struct

import pytest

from referees.proof_objects import library_digest, repointed, segments, verify
from tests.referees.proof_rooms import vo

STAND_IN = vo(b"the stand-in")
EXHIBIT = vo(b"the exhibit", ("opaques", b"proofs"))
CHECK = vo(b"needs " + library_digest(STAND_IN), ("summary", library_digest(STAND_IN) + b" too"), ("tasks", b"none"))


def test_segments_by_name() -> None:
    """Each with its bytes and their MD5."""
    found = segments(EXHIBIT)
    assert list(found) == ["library", "opaques"]
    part = found["opaques"]
    assert EXHIBIT[part.start : part.start + part.size] == b"proofs"
    assert part.digest == hashlib.md5(b"proofs", usedforsecurity=False).digest()


def test_a_check_that_names_another_module_is_whole_again() -> None:
    """Every place that named the stand-in names the exhibit, and all checksums are right."""
    made = repointed(CHECK, compiled_against=STAND_IN, at=EXHIBIT)
    assert library_digest(STAND_IN) not in made
    for name, part in segments(made).items():
        body = made[part.start : part.start + part.size]
        assert part.digest == made[part.start + part.size : part.start + part.size + 16], name
        assert part.digest == hashlib.md5(body, usedforsecurity=False).digest(), name
    assert library_digest(EXHIBIT) in made


@pytest.mark.parametrize("old", [b"proofs", hashlib.md5(b"the exhibit", usedforsecurity=False).digest()])
def test_a_wrong_checksum_is_found(old: bytes) -> None:
    """Of bytes that were changed, and one that was changed itself, in either of its places."""
    verify(EXHIBIT)
    for count in 1, -1:
        with pytest.raises(ValueError, match="a checksum of its segment"):
            verify(EXHIBIT.replace(old, old[::-1], count))


def test_a_check_of_something_else_is_refused() -> None:
    """It would be judged against the stand-in, whose theorems are axioms."""
    with pytest.raises(ValueError, match="does not name the module"):
        repointed(vo(b"needs nothing"), compiled_against=STAND_IN, at=EXHIBIT)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "does not start"),
        (b"Coq!", "table of segments is broken"),
        (EXHIBIT[:40], "table of segments is broken"),
        (b"Coq!" + struct.pack(">IQ", 0, 1 << 62), "table of segments is broken"),
        (b"Coq!" + struct.pack(">IQ", 0, 16) + struct.pack(">I", 1 << 30), "1073741824 segments"),
        (vo(b"", ("x", b"")).replace(struct.pack(">Q", 16), struct.pack(">Q", 1 << 40)), "outside of it"),
        (vo(b"").replace(b"library", b"liberty"), "no segment 'library'"),
    ],
)
def test_bytes_that_are_no_compiled_file(data: bytes, said: str) -> None:
    """Whatever was left in its place is said to be none."""
    with pytest.raises(ValueError, match=said):
        library_digest(data)
