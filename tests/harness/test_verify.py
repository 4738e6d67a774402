"""Verification: each way of tampering with a chain is reported where it begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.blobs import BlobStore
from harness.errors import IntegrityError
from harness.record import Head, Record, encode_line
from harness.tree import Tree
from harness.verify import verify_chain, verify_files

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
    reading, _ = verify_chain(chain[0], genesis=GENESIS, witness=chain[1])
    assert (reading.problems, reading.complete, reading.closed, reading.entries) == ([], True, True, 6)


def test_what_is_written_beside_a_session_reopens_none(tmp_path: Path) -> None:
    """A rescoring that is kept, a suite that was checked: before the first session, and after the last was closed."""
    with Record(tmp_path, registration_digest=GENESIS) as record:
        record.append("suite.characterised", {})
        before, _ = verify_chain(record.path, genesis=GENESIS)
        record.append("session.started", {})
        record.append("run.rescored", {})
        under_way, _ = verify_chain(record.path, genesis=GENESIS)
        record.append("session.closed", {"how": "finished"})
        record.append("run.rescored", {})
        after, _ = verify_chain(record.path, genesis=GENESIS)
    assert [(reading.sessions, reading.closed) for reading in (before, under_way, after)] == [
        (0, False),
        (1, False),
        (1, True),
    ]


def test_without_a_head_the_prefix_is_intact_and_no_more_is_said(chain: tuple[Path, Head]) -> None:
    """A chain can't vouch for its own end."""
    reading, _ = verify_chain(chain[0], genesis=GENESIS)
    assert (reading.problems, reading.complete) == ([], None)
    assert reading.completeness == "prefix intact, completeness unknown"


@pytest.mark.parametrize(
    ("keep", "where"), [(5, "line 6"), (4, "lines 5 to 6"), (1, "lines 2 to 6"), (0, "lines 1 to 6")]
)
def test_a_cut_tail_is_found_with_the_head(chain: tuple[Path, Head], keep: int, where: str) -> None:
    """The missing range is named; without the head nothing is missing that could be known, but for an empty file."""
    path, head = chain
    path.write_bytes(b"".join(lines(path)[:keep]))
    reading, _ = verify_chain(path, genesis=GENESIS, witness=head)
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
    reading, _ = verify_chain(path, genesis=GENESIS, witness=head)
    assert reading.complete is False
    assert reading.problems[0].where == where


def test_another_run_s_record_an_empty_and_a_missing_one_are_told_apart(chain: tuple[Path, Head]) -> None:
    """Three ways of having no record, three answers."""
    path, _ = chain
    other, _ = verify_chain(path, genesis="b" * 64)
    assert "does not belong to this registration" in other.problems[0].what
    path.write_bytes(b"")
    empty, _ = verify_chain(path, genesis=GENESIS)
    assert empty.problems[0].what == "the record is empty"
    path.unlink()
    missing, _ = verify_chain(path, genesis=GENESIS)
    assert missing.problems[0].what == "the file is missing"


def test_a_crashed_run_is_told_from_a_cut_one(chain: tuple[Path, Head]) -> None:
    """A crash ends in a torn line, or without a closing entry at its own head; a cut contradicts the head."""
    path, _ = chain
    kept = lines(path)
    crashed_head = Head.parse(f"4:{kept[4].split(b'sha256')[1][3:67].decode()}")
    path.write_bytes(b"".join(kept[:5]) + kept[5][:20])
    crashed, _ = verify_chain(path, genesis=GENESIS, witness=crashed_head)
    assert (crashed.problems, crashed.torn, crashed.closed, crashed.complete) == ([], True, False, True)
    path.write_bytes(b"".join(kept[:3]))
    cut, _ = verify_chain(path, genesis=GENESIS, witness=crashed_head)
    assert (cut.torn, cut.complete) == (False, False)


def test_blobs_exhibits_and_transcripts_are_checked(tmp_path: Path) -> None:
    """A damaged blob, a missing exhibit and a changed transcript are each named; untouched ones are not."""
    store = BlobStore(tmp_path / "blobs")
    tree = store.put_tree(Tree.of({"a.py": "x = 1\n"}))
    transcript = tmp_path / "transcripts" / "t.jsonl"
    transcript.parent.mkdir()
    transcript.write_bytes(b'{"n":0}\n')
    with Record(tmp_path, registration_digest=GENESIS) as record:
        from harness.canonical import digest_bytes

        good = digest_bytes(transcript.read_bytes())
        entries = [record.append("cell.ended", {"exhibit": tree, "transcript": good})]
    assert verify_files(tmp_path, entries)[0] == []
    transcript.write_bytes(b'{"n":1}\n')
    digest = digest_bytes(b"x = 1\n")
    blob = tmp_path / "blobs" / digest[:2] / digest[2:]
    blob.write_bytes(b"x = 2\n")
    problems, looked_at = verify_files(tmp_path, entries)
    assert {problem.where for problem in problems} == {f"blobs/{digest}", "line 1"}
    assert len(problems) == 3
    assert looked_at == {"blobs": 2, "transcripts": 1, "outcomes": 1}
    blob.unlink()
    with pytest.raises(IntegrityError, match="missing"):
        store.get(digest)
