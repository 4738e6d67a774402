"""Files that spare a later run some work."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.kept_file import read_kept, write_kept


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """Any bytes, in a folder that is made; nothing else lies there."""
    path = tmp_path / "new" / "file"
    write_kept(path, b"one\ntwo\0")
    assert read_kept(path) == b"one\ntwo\0"
    write_kept(path, b"")
    assert read_kept(path) == b""
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("at", [0, 40, 64, 65, -1])
def test_a_changed_byte_is_no_answer(tmp_path: Path, at: int) -> None:
    """In the digest, behind it, or in the data."""
    path = tmp_path / "file"
    write_kept(path, b"the data")
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    assert read_kept(path) is None


def test_what_is_not_there_is_no_answer(tmp_path: Path) -> None:
    """No file, an empty one, a folder, and one that was cut off."""
    path = tmp_path / "file"
    assert read_kept(path) is None
    path.touch()
    assert read_kept(path) is None
    assert read_kept(tmp_path) is None
    write_kept(path, b"the data")
    path.write_bytes(path.read_bytes()[:-1])
    assert read_kept(path) is None


def test_a_folder_that_can_not_be_made_costs_nothing(tmp_path: Path) -> None:
    """A file stands where the folder should be: nothing is written, nothing raised, no draft left."""
    (tmp_path / "taken").touch()
    write_kept(tmp_path / "taken" / "file", b"the data")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
