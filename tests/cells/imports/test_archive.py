"""An archive that may be made to harm its reader is read as a stream, or refused by name."""

import struct
import sys
import zipfile

import pytest

from cells.imports import archive as archives
from cells.imports.archive import Archive
from harness.errors import DeclarationError
from tests.cells.imports.foreign_writers import ZSTD, archive


def contents(path):
    """Every member's name and bytes."""
    with Archive(path) as found:
        return [(member.filename, b"".join(found.read(member))) for member in found.members]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTD])
def test_members_come_back_in_the_order_written(tmp_path, method):
    """By each way of packing, of several frames too; a name may be there twice."""
    members = [("b", b"first" * 100_000), ("a", b"x"), ("b", b"second"), ("empty", b"")]
    assert members == contents(archive(tmp_path / "log.eval", members, method=method))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTD])
def test_a_flipped_byte_is_found(tmp_path, method):
    """Wherever it is in the member's own bytes."""
    path = archive(tmp_path / "log.eval", [("a", b"some text of a member" * 50)], method=method)
    data = bytearray(path.read_bytes())
    for at in (37, 41, 45):
        broken = data[:]
        broken[at] ^= 0x41
        path.write_bytes(broken)
        with pytest.raises(DeclarationError, match=r"member 'a' (is damaged|can't be unpacked|is longer)"):
            contents(path)


@pytest.mark.parametrize("left", [0, 3, 10, 60, 100])
def test_an_archive_that_is_cut_off_is_refused(tmp_path, left):
    """At any length: the list of its members stands at its end."""
    path = archive(tmp_path / "log.eval", [("a", b"text" * 10), ("b", b"more")])
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(DeclarationError, match="no whole ZIP archive"):
        contents(path)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    """By what it says of itself; and by what it does, where it says little."""
    path = archive(tmp_path / "log.eval", [("a", bytes(3_000_000))])
    monkeypatch.setattr(archives, "_FREE_OF_RATIO", 1 << 20)
    monkeypatch.setattr(archives, "_MOST_RATIO", 100)
    with pytest.raises(DeclarationError, match="bytes to 3000000: no log does"):
        contents(path)
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<L", 3_000_000), struct.pack("<L", 1000)))
    with pytest.raises(DeclarationError, match="member 'a' is longer than the 1000 bytes"):
        contents(path)


def test_members_that_lie_over_each_other_are_refused(tmp_path):
    """So that one block of bytes can't be a thousand members."""
    path = archive(tmp_path / "log.eval", [("a", b"text"), ("b", b"more")], method=zipfile.ZIP_STORED)
    data = path.read_bytes()
    where = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1)
    path.write_bytes(data[: where + 42] + struct.pack("<L", 0) + data[where + 46 :])
    with pytest.raises(DeclarationError, match="lies over another one"):
        contents(path)


def test_a_long_list_of_members_is_refused_unread(tmp_path, monkeypatch):
    """It would have to be held as a whole."""
    path = archive(tmp_path / "log.eval", [(f"name{number}", b"") for number in range(50)])
    monkeypatch.setattr(archives, "_MOST_DIRECTORY", 1000)
    with pytest.raises(DeclarationError, match="list of members takes"):
        contents(path)


def test_an_unknown_way_of_packing_is_named(tmp_path):
    """With the ways that are known."""
    path = archive(tmp_path / "log.eval", [("a", b"text")], method=zipfile.ZIP_BZIP2)
    with pytest.raises(DeclarationError, match=r"packed by method 12: known \[0, 8, 93\]"):
        contents(path)


def test_an_encrypted_member_is_refused(tmp_path):
    """Its flag says so, and nothing is asked for a password."""
    path = archive(tmp_path / "log.eval", [("a", b"text")], method=zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(DeclarationError, match="encrypted"):
        contents(path)


def test_without_zstandard_the_error_says_what_to_install(tmp_path, monkeypatch):
    """The package is asked for by what needs it alone."""
    path = archive(tmp_path / "log.eval", [("a", b"text")], method=ZSTD)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(DeclarationError, match=r"pip install 'proctor\[inspect\]'"):
        contents(path)


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_only_a_plain_file_is_opened(tmp_path, kind):
    """A link may lead anywhere, and a pipe would wait for ever."""
    import os

    path = tmp_path / "log.eval"
    match kind:
        case "link":
            path.symlink_to(archive(tmp_path / "real", [("a", b"")]))
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
    with pytest.raises(DeclarationError, match=r"log.eval (can't be read|is no plain file)"):
        contents(path)
