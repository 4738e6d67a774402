"""The record: chain, repair, lock, and a state machine that drives it against a plain list."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from harness.canonical import canonical_bytes, digest_bytes
from harness.errors import BusyError, IntegrityError, StorageError
from harness.record import Head, Record, decode_line, encode_line, read_entries

GENESIS = "a" * 64

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(1 - 2**53, 2**53 - 1) | st.floats(-1e15, 1e15) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def record(folder: Path) -> Record:
    """A record of a made-up registration."""
    return Record(folder, registration_digest=GENESIS)


@given(body=json_values, kind=st.text(max_size=8), seq=st.integers(0, 2**40))
def test_a_line_is_canonical_json_that_decodes_to_what_was_encoded(body: object, kind: str, seq: int) -> None:
    """The whole line, digest included, is RFC 8785 JSON, so any other program can check it."""
    line, sha256 = encode_line(seq=seq, at="now", kind=kind, body=body, prev=GENESIS)
    assert canonical_bytes(json.loads(line)) == line
    entry = decode_line(line)
    assert (entry.seq, entry.kind, entry.sha256) == (seq, kind, sha256)
    assert canonical_bytes(entry.body) == canonical_bytes(body)


@given(data=st.data(), body=json_values)
@settings(max_examples=100)
def test_a_flipped_bit_anywhere_in_a_line_is_found(data: st.DataObject, body: object) -> None:
    """No single bit of a line may change without its reader noticing."""
    line, _ = encode_line(seq=3, at="now", kind="cell.ended", body=body, prev=GENESIS)
    position = data.draw(st.integers(0, len(line) - 1))
    flipped = bytearray(line)
    flipped[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ValueError):  # noqa: PT011 - the message depends on where the bit was
        decode_line(bytes(flipped))


@pytest.mark.parametrize("body", [float("nan"), float("inf"), {"a": float("-inf")}, 2**60, "\ud800", {1: 2}, b"x"])
def test_what_json_can_not_say_is_refused_at_the_door(tmp_path: Path, body: object) -> None:
    """NaN, infinities, huge integers, lone surrogates and foreign types never reach the disk."""
    with record(tmp_path) as open_record:
        with pytest.raises((ValueError, TypeError)):
            open_record.append("x", body)
        open_record.append("x", 1)
    assert [entry.body for entry in read_entries(tmp_path / "record.jsonl")] == [1]


def test_two_writers_can_not_open_one_record(tmp_path: Path) -> None:
    """The second is told at once, and by whom it is held; when the first is gone it may."""
    with record(tmp_path), pytest.raises(BusyError, match=f"process {os.getpid()}"), record(tmp_path):
        pass
    with record(tmp_path) as again:
        assert again.append("x", 1).seq == 0


@pytest.mark.parametrize("cut", [1, 10, 100])
def test_a_torn_last_line_is_cut_off_and_said(tmp_path: Path, cut: int) -> None:
    """A process killed as it wrote leaves half a line: the next writer removes it, records that, and goes on."""
    with record(tmp_path) as first:
        first.append("x", "whole")
        first.append("x", "torn" * 40)
        (tmp_path / "head").write_text(f"0:{next(iter(read_entries(first.path))).sha256}\n")
    path = tmp_path / "record.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    with record(tmp_path) as second:
        second.append("x", "after")
    kinds = [(entry.kind, entry.body) for entry in read_entries(path)]
    assert kinds[0] == ("x", "whole")
    assert kinds[1][0] == "record.repaired"
    assert kinds[1][1]["torn_bytes"] > 0
    assert kinds[2] == ("x", "after")


def test_a_damaged_middle_is_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    """A writer never appends to a chain that does not hold: the damage would be buried."""
    with record(tmp_path) as first:
        for number in range(5):
            first.append("x", number)
    path = tmp_path / "record.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"body":2', b'"body":7')
    path.write_bytes(b"".join(lines))
    before = path.read_bytes()
    with pytest.raises(IntegrityError, match="line 3"), record(tmp_path):
        pass
    assert path.read_bytes() == before


def test_a_cut_tail_is_not_appended_to(tmp_path: Path) -> None:
    """Whole lines that are gone are not a torn line: the head file says how long the record was."""
    with record(tmp_path) as first:
        for number in range(5):
            first.append("x", number)
    path = tmp_path / "record.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    with pytest.raises(IntegrityError, match="lines 4 to 5 are missing"), record(tmp_path):
        pass


def test_another_run_s_record_is_refused(tmp_path: Path) -> None:
    """The first line hangs on the registration's digest."""
    with record(tmp_path) as first:
        first.append("x", 1)
    with pytest.raises(IntegrityError, match="registration"), Record(tmp_path, registration_digest="b" * 64):
        pass


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk takes no more, the error says so, and the record is as it was."""
    with record(tmp_path) as open_record:
        open_record.append("x", 1)
        size = open_record.path.stat().st_size

        def full(_fd: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match="No space left"):
            open_record.append("x", 2)
        monkeypatch.undo()
        assert open_record.path.stat().st_size == size
        open_record.append("x", 3)
    assert [entry.body for entry in read_entries(tmp_path / "record.jsonl")] == [1, 3]


@pytest.mark.parametrize("text", ["", "5", "5:", "x:" + "a" * 64, "5:" + "A" * 64, "-1:" + "a" * 64, "5:" + "a" * 63])
def test_a_head_that_is_none_is_refused(text: str) -> None:
    """A head is SEQ:SHA256 and nothing else."""
    with pytest.raises(ValueError, match="expected SEQ:SHA256"):
        Head.parse(text)


class RecordMachine(RuleBasedStateMachine):
    """The record against a plain list: appends, reopenings, kills in the middle of a line."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.path = Path(self._folder.name)
        self.model: list[object] = []

    def teardown(self) -> None:
        """Leave nothing."""
        self._folder.cleanup()

    @rule(bodies=st.lists(json_values, max_size=3))
    def session(self, bodies: list[object]) -> None:
        """A process that writes and ends."""
        with record(self.path) as open_record:
            self._note_repair(open_record)
            for body in bodies:
                open_record.append("x", body)
                self.model.append(body)

    @rule(body=json_values, keep=st.integers(1, 40))
    def killed_while_writing(self, body: object, keep: int) -> None:
        """A process that dies with a part of a line on the disk: the head file still names the line before."""
        with record(self.path) as open_record:
            self._note_repair(open_record)
            before = open_record.head
            line, _ = encode_line(seq=len(self.model), at="now", kind="x", body=body, prev=GENESIS)
        del before
        with (self.path / "record.jsonl").open("ab") as file:
            file.write(line[: min(keep, len(line) - 1)])

    def _note_repair(self, open_record: Record) -> None:
        entries = list(read_entries(open_record.path))
        if len(entries) > len(self.model):
            assert entries[-1].kind == "record.repaired"
            self.model.append(entries[-1].body)

    @invariant()
    def agrees(self) -> None:
        """What can be read is what was written, in order, chained."""
        path = self.path / "record.jsonl"
        entries = list(read_entries(path)) if path.exists() else []
        assert [canonical_bytes(entry.body) for entry in entries] == [canonical_bytes(body) for body in self.model]
        assert [entry.prev for entry in entries] == [GENESIS, *(entry.sha256 for entry in entries)][: len(entries)]


TestRecordMachine = RecordMachine.TestCase
TestRecordMachine.settings = settings(max_examples=15, stateful_step_count=10, deadline=None)


def test_digest_is_over_the_line_without_its_digest(tmp_path: Path) -> None:
    """The documented rule, done by hand: cut the sha256 member, close the brace, hash."""
    with record(tmp_path) as open_record:
        entry = open_record.append("x", {"a": 1})
    line = (tmp_path / "record.jsonl").read_bytes().rstrip(b"\n")
    core = line[: line.index(b',"sha256":')] + b"}"
    assert digest_bytes(core) == entry.sha256
