"""Reports and scores of whole runs: what a registration lacks, a record that is still written, a folder that refuses."""

from __future__ import annotations

import errno
import io
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from cells.cli import app
from cells.cli.door import ExitCode, guarded
from harness.registration import load_registration
from tests.cells.audited import clean_run, copied, entries_of, rechained_from, reregistered


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean run; every test works on a copy."""
    return clean_run(tmp_path_factory.mktemp("reported"))


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of the clean run."""
    return copied(original, tmp_path)


def asked(*said: str | Path) -> tuple[int, str, str]:
    """The exit code of a command, and what it wrote, through the door where errors become messages."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        guarded(lambda: app([str(word) for word in said]))
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


def test_a_registration_without_an_outlook_is_reported(folder: Path) -> None:
    """What was not said beforehand is undefined, and the rest of the report is there."""
    assert "cells declared: 6" in reported(folder)
    reregistered(folder, outlook={})
    text = reported(folder)
    assert "cells that can be built: undefined" in text
    assert "cells declared: undefined" in text
    assert "## Conditions" in text


def test_a_registration_without_its_pins_is_reported(folder: Path) -> None:
    """Nor is an image or a model's digest made up that was not pinned."""
    pins = load_registration(folder).pins
    kept = {name: pin for name, pin in pins.items() if name not in {"image", "model m"}}
    reregistered(folder, pins=kept)
    text = reported(folder)
    assert "workspace: docker, image undefined" in text
    assert "m: scripted script, digest none given" in text


def reported(folder: Path) -> str:
    """The Markdown of a run's report."""
    code, _out, err = asked("report", folder)
    assert code == 0, err
    return (folder / "report.md").read_text("utf-8")


def half_written(folder: Path) -> Path:
    """The record as another process has it while it appends its next line."""
    path = folder / "record.jsonl"
    path.write_bytes(path.read_bytes() + b'{"at":"2026-12-01T00:00:00.000Z","body":{"cell":')
    return folder


def unfinished(folder: Path) -> Path:
    """A run whose last two cells are still to be played, in the middle of a line."""
    entries = entries_of(folder)
    ended = [at for at, entry in enumerate(entries) if entry.kind == "cell.ended"]
    rechained_from(folder, load_registration(folder), entries[: ended[-3]])
    return half_written(folder)


def test_a_run_that_is_still_written_is_scored_as_far_as_it_is(folder: Path) -> None:
    """The torn line is not there yet: verdicts are withheld, the exit code says incomplete, and nothing is repaired."""
    data = (unfinished(folder) / "record.jsonl").read_bytes()
    code, out, err = asked("score", folder)
    assert (code, err) == (ExitCode.INCOMPLETE, "")
    assert "missing cell" in out
    assert "not supported" not in out
    assert "missing cell" in reported(folder)
    assert (folder / "record.jsonl").read_bytes() == data


def test_a_torn_line_after_the_last_cell_changes_no_reading(folder: Path) -> None:
    """All cells have their outcome: the scoreboard is final, line or no line."""
    whole = asked("score", folder, "--json")
    assert whole[0] == ExitCode.DONE
    assert asked("score", half_written(folder), "--json") == whole


def test_a_torn_line_in_the_middle_is_an_error(folder: Path) -> None:
    """It is no line that is still written, whatever follows: the line is named."""
    path = half_written(folder) / "record.jsonl"
    path.write_bytes(path.read_bytes() + b"\n" + path.read_bytes().splitlines()[0] + b"\n")
    code, _out, err = asked("score", folder)
    assert code == ExitCode.VERIFICATION_FAILED
    assert re.search(r"record\.jsonl, line \d+: ", err)


def test_a_report_into_a_full_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    """The earlier report stays whole, no half of a new one is left, and the message says what to do."""
    out = tmp_path / "out"
    asked("report", folder, "--out", out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert before
    (out / "report.html.new").symlink_to("/dev/full")
    code, printed, err = asked("report", folder, "--out", out)
    assert (code, printed) == (ExitCode.INCOMPLETE, "")
    assert "No space left on device" in err
    assert "Make room, or name another folder by --out" in err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_report_into_a_folder_that_is_read_only_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a medium that takes no write: the reason and the next step, and no path is printed."""
    monkeypatch.setattr(Path, "write_text", _read_only)
    code, printed, err = asked("report", folder, "--out", tmp_path / "out")
    assert (code, printed) == (ExitCode.INCOMPLETE, "")
    assert "Read-only file system" in err
    assert "name another folder by --out" in err


def _read_only(path: Path, *_text: object, **_how: object) -> int:
    raise OSError(errno.EROFS, "Read-only file system", str(path))


def test_a_report_into_what_is_no_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    """It was asked for something that can't be: another exit code."""
    (tmp_path / "a file").write_text("")
    code, printed, err = asked("report", folder, "--out", tmp_path / "a file")
    assert (code, printed) == (ExitCode.USAGE, "")
    assert "can't take the report" in err
