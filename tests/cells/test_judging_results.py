"""The file of results, when the disk is full, and with the referee's own options."""

from __future__ import annotations

import errno
import json
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cells import cli
from cells.judging_results import Basis, Result, ResultFile
from harness.errors import StorageError, UsageError
from harness.values import TierReading
from tests.cells.judges import Bench


def result(number: int) -> Result:
    """One result."""
    names = ("task_id", "source", "suite", "referee", "image", "walls", "backend")
    return Result(
        task_id="Fake/0",
        sample=number,
        where=f"line {number}",
        reading="PASS",
        standing="accepted",
        tiers=(TierReading(tier="public", reading="PASS", passed=1, total=1),),
        detail="é\ud800\x1b",
        seconds=None,
        cpu_s=0.5,
        copy_of=None,
        basis=Basis(**{**dict.fromkeys(names, str(number)), "task_id": "Fake/0"}),
    )


@contextmanager
def full_at(size: int) -> Iterator[None]:
    """No file grows beyond `size` bytes meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """Equal to the last field, but for a text that no file can hold."""
    path = tmp_path / "r.jsonl"
    with ResultFile(path) as file:
        assert file.begin([]) is None
        file.add([result(1), result(2)])
    with ResultFile(path) as file:
        assert [(item.sample, item.seconds, item.cpu_s, item.basis) for item in file.earlier] == [
            (n, None, 0.5, result(n).basis) for n in (1, 2)
        ]
        assert file.earlier[0].detail == "é\\ud800\x1b"
        assert file.begin(file.earlier) is None


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    """What does not fit is told, and no part of it stays; with room it goes on."""
    path = tmp_path / "r.jsonl"
    with ResultFile(path) as file:
        file.begin([])
        file.add([result(1)])
        size = path.stat().st_size
        with full_at(size + 10), pytest.raises(StorageError, match="Make room, then judge again"):
            file.add([result(2)])
        assert path.stat().st_size == size
        file.add([result(2)])
    with ResultFile(path) as file:
        assert len(file.earlier) == 2


def test_a_full_disk_harms_no_file_that_is_to_be_replaced(tmp_path: Path) -> None:
    """The old one stays where it was."""
    path = tmp_path / "r.jsonl"
    with ResultFile(path) as file:
        file.begin([])
        file.add([result(1), result(2)])
    whole = path.read_bytes()
    with ResultFile(path) as file, full_at(10), pytest.raises(StorageError):
        file.begin([file.earlier[0]])
    assert path.read_bytes() == whole
    with ResultFile(path) as file:
        assert file.begin([file.earlier[0]]) == tmp_path / "r.jsonl.before-1"
    with ResultFile(path) as file:
        assert [item.sample for item in file.earlier] == [1]


@pytest.mark.parametrize("linked", [True, False])
def test_a_file_of_somebody_elses_at_the_new_ones_place_is_left_alone(tmp_path: Path, *, linked: bool) -> None:
    """Whoever gives away a folder of samples could have put a link to any file of the user's there."""
    notes, path, made = tmp_path / "notes", tmp_path / "results.jsonl", result(1)
    notes.write_text("precious\n")
    new = path.with_name("results.jsonl.new")
    new.symlink_to(notes) if linked else notes.rename(new)
    with ResultFile(path) as file:
        file.begin([])
        file.add([made])
    with ResultFile(path) as file, pytest.raises(UsageError, match=r"results\.jsonl\.new"):
        file.begin([])
    assert new.read_text() == "precious\n"
    with ResultFile(path) as file:
        assert file.earlier != []


def test_a_folder_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    """With the option that names another place."""
    with pytest.raises(UsageError, match=r"none/r.jsonl can't be written: No such file or directory.*--out"):
        ResultFile(tmp_path / "none" / "r.jsonl").__enter__()


def test_a_disk_that_does_not_open_a_file_is_not_the_askers_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the disk's owner who has to act."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(StorageError, match="No space left on device"):
        ResultFile(tmp_path / "r.jsonl").__enter__()


@pytest.mark.parametrize(
    ("option", "value"),
    [("--memory-bytes", "1"), ("--min-time-s", "0"), ("--time-factor", "nan")],
)
def test_what_the_referee_does_not_take_is_refused(
    option: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the real one, before any room is opened."""
    bench = Bench(tmp_path, None, {})  # type: ignore[arg-type]
    command = ["proctor", "judge", bench.give("x"), "--benchmark", "fake", "--data", bench.data, option, value]
    monkeypatch.setattr(sys, "argv", list(map(str, command)))
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert f"options of referee 'evalplus': {option[2:].replace('-', '_')}" in capsys.readouterr().err
    assert not bench.out.exists()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"reading": "FAIL"}, "'FAIL' is said to be accepted"),
        ({"standing": "rejected"}, "'PASS' is said to be rejected"),
        ({"reading": "NONSENSE"}, "'NONSENSE' is said to be accepted"),
        ({"tiers": []}, "tiers do not bear out"),
        ({"tiers": [{"tier": "public", "reading": "FAIL", "passed": 0, "total": 1}]}, "tiers do not bear out"),
        ({"tiers": [{"tier": "public", "reading": "PASS", "passed": 5, "total": 1}]}, "5 of 1 tests"),
        ({"seconds": -1.0}, "below 0"),
        ({"sample": -1}, "below 0"),
        ({"task_id": "Fake/9"}, "its basis of 'Fake/0'"),
    ],
)
def test_a_line_that_no_judge_writes_is_refused(tmp_path: Path, changed: dict[str, object], said: str) -> None:
    """It is named, and nothing of the file counts."""
    path = tmp_path / "results.jsonl"
    line = json.loads(result(0).line())
    path.write_text(json.dumps({**line, **changed}, sort_keys=True) + "\n")
    with pytest.raises(UsageError, match=f"line 1 is no result.*{said}"), ResultFile(path):
        pass


def test_a_last_line_of_somebody_elses_is_not_cut_off(tmp_path: Path) -> None:
    """Only the beginning of a result's line is taken for one that was not finished."""
    path = tmp_path / "results.jsonl"
    path.write_bytes(result(0).line() + b"notes of mine")
    with pytest.raises(UsageError, match=r"line 2 is no result.*no end"), ResultFile(path):
        pass
    path.write_bytes(result(0).line() + result(1).line()[:40])
    with ResultFile(path) as file:
        assert (len(file.earlier), file.torn) == (1, 40)


@pytest.mark.parametrize("name", ["nul\0in it", "long" * 80, "no/such/folder"])
def test_a_name_that_no_file_can_have_is_told(tmp_path: Path, name: str) -> None:
    """With the next step."""
    with pytest.raises(UsageError, match="Name another file with --out"), ResultFile(tmp_path / name):
        pass


def test_a_link_to_nothing_makes_no_file(tmp_path: Path) -> None:
    """What it leads to is left alone."""
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="no regular file"), ResultFile(tmp_path / "link"):
        pass
    assert not (tmp_path / "elsewhere").exists()
