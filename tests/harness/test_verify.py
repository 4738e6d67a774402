"""Verification: each way of tampering with a chain is reported where it begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.blobs import BlobStore
from harness.canonical import digest_bytes
from harness.errors import IntegrityError
from harness.record import Head, Record, encode_line
from harness.transcript import transcript_path
from harness.tree import Tree
from harness.values import CellKey
from harness.verify import FileCheck, verify_chain

GENESIS = "a" * 64


@pytest.fixture
def chain(tmp_path: Path) -> tuple[Path, Head]:
    """Five entries and a closing one, and the head as somebody outside has kept it."""
    with Record(tmp_path, registration_digest=GENESIS) as record:
        for number in range(5):
            record.append("note", {"number": number})
        record.append("session.closed", {"how": "finished"})
        assert record.head is not None
        return record.path, record.head


def lines(path: Path) -> list[bytes]:
    """The lines with their newlines."""
    return path.read_bytes().splitlines(keepends=True)


def test_the_whole_chain_verifies_and_is_complete(chain: tuple[Path, Head]) -> None:
    """With the head from outside, completeness is known."""
    reading = verify_chain(chain[0], genesis=GENESIS, witness=chain[1])
    assert (reading.problems, reading.complete, reading.closed, reading.entries) == ([], True, True, 6)


def test_what_is_written_beside_a_session_reopens_none(tmp_path: Path) -> None:
    """A rescoring that is kept, a suite that was checked: before the first session, and after the last was closed."""
    with Record(tmp_path, registration_digest=GENESIS) as record:
        record.append("suite.characterised", {})
        before = verify_chain(record.path, genesis=GENESIS)
        record.append("session.started", {})
        record.append("run.rescored", {})
        under_way = verify_chain(record.path, genesis=GENESIS)
        record.append("session.closed", {"how": "finished"})
        record.append("run.rescored", {})
        after = verify_chain(record.path, genesis=GENESIS)
    assert [(reading.sessions, reading.closed) for reading in (before, under_way, after)] == [
        (0, False),
        (1, False),
        (1, True),
    ]


def test_without_a_head_the_prefix_is_intact_and_no_more_is_said(chain: tuple[Path, Head]) -> None:
    """A chain can't vouch for its own end."""
    reading = verify_chain(chain[0], genesis=GENESIS)
    assert (reading.problems, reading.complete) == ([], None)
    assert reading.completeness == "prefix intact, completeness unknown"


@pytest.mark.parametrize(
    ("keep", "where"), [(5, "line 6"), (4, "lines 5 to 6"), (1, "lines 2 to 6"), (0, "lines 1 to 6")]
)
def test_a_cut_tail_is_found_with_the_head(chain: tuple[Path, Head], keep: int, where: str) -> None:
    """The missing range is named; without the head nothing is missing that could be known, but for an empty file."""
    path, head = chain
    path.write_bytes(b"".join(lines(path)[:keep]))
    reading = verify_chain(path, genesis=GENESIS, witness=head)
    assert reading.complete is False
    assert [problem.where for problem in reading.problems] == [where]


def swapped(kept: list[bytes]) -> list[bytes]:
    """Entries 2 and 3 change places."""
    return [kept[0], kept[2], kept[1], *kept[3:]]


def recomputed(kept: list[bytes]) -> list[bytes]:
    """Entry 3 is changed and every later digest made to fit."""
    from harness.record import decode_line

    out, prev = kept[:2], decode_line(kept[1][:-1]).sha256
    for raw in kept[2:]:
        entry = decode_line(raw[:-1])
        body = {"number": 99} if entry.seq == 2 else entry.body
        line, prev = encode_line(seq=entry.seq, at=entry.at, kind=entry.kind, body=body, prev=prev)
        out.append(line + b"\n")
    return out


def appended_after_a_cut(kept: list[bytes]) -> list[bytes]:
    """The last two are dropped and two others written in their place."""
    from harness.record import decode_line

    out, prev = kept[:4], decode_line(kept[3][:-1]).sha256
    for seq in (4, 5):
        line, prev = encode_line(seq=seq, at="now", kind="note", body={"forged": seq}, prev=prev)
        out.append(line + b"\n")
    return out


@pytest.mark.parametrize(
    ("tamper", "where"),
    [
        (lambda kept: [*kept[:2], kept[2].replace(b"2}", b"7}", 1), *kept[3:]], "line 3"),
        (lambda kept: [*kept[:2], *kept[3:]], "line 3"),
        (swapped, "line 2"),
        (recomputed, "line 6"),
        (appended_after_a_cut, "line 6"),
        (lambda kept: [*kept[:3], b"not json\n", *kept[3:]], "line 4"),
        (lambda kept: [b"\n", *kept], "line 1"),
    ],
    ids=["changed", "removed", "swapped", "recomputed", "appended after a cut", "inserted", "blank line"],
)
def test_each_tampering_is_reported_at_its_first_bad_position(
    chain: tuple[Path, Head], tamper: Callable[[list[bytes]], list[bytes]], where: str
) -> None:
    """The position is that of the first line that is not what it was, or of the head that contradicts it."""
    path, head = chain
    path.write_bytes(b"".join(tamper(lines(path))))
    reading = verify_chain(path, genesis=GENESIS, witness=head)
    assert reading.complete is False
    assert reading.problems[0].where == where


def test_another_run_s_record_an_empty_and_a_missing_one_are_told_apart(chain: tuple[Path, Head]) -> None:
    """Three ways of having no record, three answers."""
    path, _ = chain
    other = verify_chain(path, genesis="b" * 64)
    assert "does not belong to this registration" in other.problems[0].what
    path.write_bytes(b"")
    empty = verify_chain(path, genesis=GENESIS)
    assert empty.problems[0].what == "the record is empty"
    path.unlink()
    missing = verify_chain(path, genesis=GENESIS)
    assert missing.problems[0].what == "the file is missing"
    assert (missing.complete, missing.completeness) == (False, "there is no record")


def test_with_a_head_another_run_s_record_an_empty_and_a_missing_one_are_told_apart_too(
    chain: tuple[Path, Head],
) -> None:
    """With the first bad position, or the range that is missing."""
    path, head = chain
    other = verify_chain(path, genesis="b" * 64, witness=head)
    assert (other.problems[0].where, other.complete) == ("line 1", False)
    path.write_bytes(b"")
    empty = verify_chain(path, genesis=GENESIS, witness=head)
    assert (empty.problems[0].where, empty.completeness) == ("lines 1 to 6", "cut: lines 1 to 6 missing")
    path.unlink()
    missing = verify_chain(path, genesis=GENESIS, witness=head)
    assert (missing.problems[0].where, missing.complete) == ("record.jsonl", False)


def test_a_crashed_run_is_told_from_a_cut_one(chain: tuple[Path, Head]) -> None:
    """A crash ends in a torn line, or without a closing entry at its own head; a cut contradicts the head."""
    path, _ = chain
    kept = lines(path)
    crashed_head = Head.parse(f"4:{kept[4].split(b'sha256')[1][3:67].decode()}")
    path.write_bytes(b"".join(kept[:5]) + kept[5][:20])
    crashed = verify_chain(path, genesis=GENESIS, witness=crashed_head)
    assert (crashed.problems, crashed.torn, crashed.closed, crashed.complete) == ([], True, False, True)
    path.write_bytes(b"".join(kept[:3]))
    cut = verify_chain(path, genesis=GENESIS, witness=crashed_head)
    assert (cut.torn, cut.complete) == (False, False)


CELL = {"benchmark": "made", "task": "1", "arm": "A", "extras": "none", "model": "m", "replicate": 1}


def looked_at(folder: Path) -> FileCheck:
    """What a check of the files finds."""
    files = FileCheck(folder)
    verify_chain(folder / "record.jsonl", genesis=GENESIS, saw=files.saw)
    files.ended()
    return files


@pytest.fixture
def outcome(tmp_path: Path) -> tuple[Path, Path]:
    """A record of one outcome with an exhibit and a transcript: the transcript's file, and a blob of the exhibit."""
    tree = BlobStore(tmp_path / "blobs").put_tree(Tree.of({"a.py": "x = 1\n"}))
    transcript = transcript_path(tmp_path, CellKey(**CELL), 1)  # type: ignore[arg-type]  # mixed fields
    transcript.parent.mkdir()
    transcript.write_bytes(b'{"n":0}\n')
    body = {"cell": CELL, "attempt": 1, "exhibit": tree, "transcript": digest_bytes(b'{"n":0}\n')}
    with Record(tmp_path, registration_digest=GENESIS) as record:
        record.append("cell.ended", body)
        record.append("note", {"exhibit": "none of ours"})
    digest = digest_bytes(b"x = 1\n")
    return transcript, tmp_path / "blobs" / digest[:2] / digest[2:]


def test_files_that_are_whole_have_no_problem(tmp_path: Path, outcome: tuple[Path, Path]) -> None:
    """All that an outcome names is counted; other entries name nothing."""
    found = looked_at(tmp_path)
    assert found.problems == []
    assert found.looked_at == {"blobs": 2, "transcripts": 1, "outcomes": 1}


def test_a_damaged_and_a_missing_blob_are_named(tmp_path: Path, outcome: tuple[Path, Path]) -> None:
    """Where it lies, and by the outcome that names it."""
    _transcript, blob = outcome
    digest = blob.parent.name + blob.name
    blob.write_bytes(b"x = 2\n")
    assert {problem.where for problem in looked_at(tmp_path).problems} == {f"blobs/{digest}", "line 1"}
    blob.unlink()
    (missing,) = looked_at(tmp_path).problems
    assert (missing.where, "missing" in missing.what) == ("line 1", True)
    with pytest.raises(IntegrityError, match="missing"):
        BlobStore(tmp_path / "blobs").get(digest)


def test_a_changed_and_a_missing_transcript_are_named(tmp_path: Path, outcome: tuple[Path, Path]) -> None:
    """The one at the try's own place counts, and no other of the same bytes."""
    transcript, _blob = outcome
    transcript.rename(transcript.with_name("elsewhere.jsonl"))
    (missing,) = looked_at(tmp_path).problems
    assert (missing.where, missing.what) == ("line 1", f"its transcript {transcript.name} is missing")
    transcript.write_bytes(b'{"n":1}\n')
    (changed,) = looked_at(tmp_path).problems
    assert "the outcome names" in changed.what


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"cell": CELL},
        {"cell": {**CELL, "arm": ""}, "attempt": 1, "exhibit": None, "transcript": "f" * 64},
        [],
        "text",
    ],
)
def test_an_outcome_that_is_none_is_a_problem(tmp_path: Path, body: object) -> None:
    """A line whose digest is right, and whose content is not."""
    with Record(tmp_path, registration_digest=GENESIS) as record:
        record.append("cell.ended", body)
    (problem,) = looked_at(tmp_path).problems
    assert (problem.where, problem.what.startswith("it is no outcome of a try")) == ("line 1", True)


def test_an_exhibit_that_is_no_tree_is_a_problem(tmp_path: Path) -> None:
    """A blob of its name is there, and is not the manifest of a tree."""
    other = BlobStore(tmp_path / "blobs").put(b'["no", "manifest"]')
    with Record(tmp_path, registration_digest=GENESIS) as record:
        record.append("cell.ended", {"cell": CELL, "attempt": 1, "exhibit": other, "transcript": None})
    (problem,) = looked_at(tmp_path).problems
    assert problem.what.startswith("exhibit:")


def test_what_was_found_whole_is_not_read_for_every_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten outcomes with one exhibit the first has it read; only so many are remembered."""
    trees = [BlobStore(tmp_path / "blobs").put_tree(Tree.of({"a.py": f"x = {number}\n"})) for number in range(3)]
    with Record(tmp_path, registration_digest=GENESIS) as record:
        for tree in [*[trees[0]] * 10, *trees, trees[0]]:
            record.append("cell.ended", {"cell": CELL, "attempt": 1, "exhibit": tree, "transcript": None})
    read: list[str] = []
    real = BlobStore.get_tree

    def watched(store: BlobStore, digest: str) -> Tree:
        read.append(digest)
        return real(store, digest)

    monkeypatch.setattr(BlobStore, "get_tree", watched)
    monkeypatch.setattr("harness.verify._REMEMBERED", 2)
    assert looked_at(tmp_path).problems == []
    assert read == [*trees, trees[0]]
