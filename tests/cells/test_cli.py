"""The command line: exit codes, messages, and JSON that a script can read."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
import typer

from cells import cli
from cells.cli.door import guarded, run_async
from cells.run import run
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run


class Ended:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.out)


@pytest.fixture
def proctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command line in this process."""

    def call(*words: object) -> Ended:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["proctor", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0 if code is None else 1, said.out, said.err)

    return call


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run on fakes."""

    async def make() -> Path:
        with fakes(monkeypatch, fake_backend(tmp_path)):
            frozen = await frozen_run(tmp_path)
            await run(frozen.folder, watcher=Quiet())
        return frozen.folder

    return anyio.run(make)


def test_reading_commands_agree_on_a_finished_run(proctor: Any, finished: Path) -> None:
    """status, score, verify and report say the same head and counts, and end with 0."""
    status = proctor("status", finished, "--json")
    score = proctor("score", finished, "--json")
    verify = proctor("verify", finished, "--json")
    report = proctor("report", finished)
    assert [ended.code for ended in (status, score, verify, report)] == [0, 0, 0, 0]
    assert status.json["head"] == score.json["head"] == verify.json["head"]
    assert (status.json["done"], status.json["total"], status.json["classes"]) == (6, 6, {"PASS": 6})
    text = Path(report.out.splitlines()[0]).read_text("utf-8")
    assert "- tries whose end was looked at from outside: 6 of 6; left alive: 0 in all" in text
    assert status.json["head"] in text
    assert status.json["id"] in text
    assert proctor("verify", finished, "--head", status.json["head"], "--json").json["complete"] is True


def test_a_run_is_named_by_folder_id_or_experiment_file(proctor: Any, finished: Path, tmp_path: Path) -> None:
    """All three name the same one; what is none of them is told with what there is."""
    ids = {
        proctor("status", place, "--runs", tmp_path / "runs", "--json").json["id"]
        for place in (finished, finished.name, tmp_path / "experiment.toml", tmp_path)
    }
    assert ids == {finished.name}
    wrong = proctor("status", "nothing", "--runs", tmp_path / "runs")
    assert wrong.code == 2
    assert f"nothing is no run: expected a run folder or one of {finished.name}" in wrong.err
    empty = proctor("status", "nothing", "--runs", tmp_path / "none")
    assert empty.code == 2
    assert f"expected a run folder or a registration's id, and {tmp_path / 'none'} holds no run yet" in empty.err


def test_verification_that_fails_ends_with_4(proctor: Any, finished: Path) -> None:
    """A flipped byte of the record, and a cut tail, each with where."""
    path = finished / "record.jsonl"
    whole = path.read_bytes()
    head = proctor("status", finished, "--json").json["head"]
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    path.write_bytes(bytes(flipped))
    found = proctor("verify", finished)
    assert found.code == 4
    assert "problem at line" in found.out
    assert proctor("status", finished).code == 4
    path.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
    cut = proctor("verify", finished, "--head", head)
    assert cut.code == 4
    assert "missing: the head names a later line" in cut.out
    for wrong in ("nonsense", ""):  # an empty one is a variable that a script never set: nothing would be looked at
        for command in ("verify", "audit"):
            assert proctor(command, finished, "--head", wrong).code == 2


def test_a_frozen_task_or_arm_that_is_gone_is_found(proctor: Any, finished: Path) -> None:
    """Without them nobody could judge again: each missing blob is named by its pin."""
    pins = json.loads((finished / "registration.json").read_text("utf-8"))["pins"]
    for name, digest in (
        ("task tasks/Fake/1", pins["task tasks/Fake/1"]["sealed_blob"]),
        ("arm P", pins["arm P"]["sha256"]),
    ):
        blob = finished / "blobs" / digest[:2] / digest[2:]
        kept = blob.read_bytes()
        blob.unlink()
        found = proctor("verify", finished, "--json")
        assert found.code == 4
        assert [problem["where"] for problem in found.json["problems"]] == [f"registration, {name}"]
        blob.write_bytes(kept)
    assert proctor("verify", finished).code == 0


def test_an_incomplete_run_ends_with_1(proctor: Any, finished: Path) -> None:
    """A script can tell that something is left."""
    path = finished / "record.jsonl"
    kept = [line for line in path.read_bytes().splitlines(keepends=True) if b'"kind":"cell.ended"' not in line][:4]
    path.write_bytes(b"".join(kept[:2]))
    (finished / "head").unlink()
    assert proctor("status", finished).code == 1
    score = proctor("score", finished, "--json")
    assert (score.code, score.json["status"]) == (1, "incomplete")


def test_init_writes_an_experiment_that_parses_and_never_overwrites(proctor: Any, tmp_path: Path) -> None:
    """A new folder gets a commented experiment; a folder with something in it is left alone."""
    from harness.experiment import load_experiment

    assert proctor("init", tmp_path / "new").code == 0
    assert load_experiment(tmp_path / "new").question
    again = proctor("init", tmp_path / "new")
    assert again.code == 2
    assert "not empty" in again.err


def test_usage_errors_are_one_message_and_2(proctor: Any, tmp_path: Path) -> None:
    """No traceback for what a person got wrong."""
    for words in (["freeze", tmp_path / "none.toml"], ["plugins", "armz"], ["image", "build", "--from", "magic"]):
        ended = proctor(*words)
        assert ended.code == 2
        assert ended.err.startswith("proctor: error: ")
        assert "Traceback" not in ended.err
    assert "Did you mean 'arms'?" in proctor("plugins", "armz").err


def test_plugins_are_listed_with_where_they_come_from(proctor: Any) -> None:
    """Every kind has its built-ins, from the distribution proctor."""
    listed = proctor("plugins", "--json").json
    assert {info["kind"] for info in listed} == {"arms", "referees", "probes", "seats", "models", "workspaces"}
    assert {info["distribution"] for info in listed if info["name"] in {"B", "P", "evalplus", "docker"}} == {"proctor"}
    assert {info["name"] for info in proctor("plugins", "arms", "--json").json} >= {"B", "P", "plain", "placebo"}


def test_ctrl_c_says_so_and_ends_with_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever command it cuts off: one line on standard error, nothing on standard output, and code 1."""
    cut = typer.Typer()

    @cut.command()
    def command() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        guarded(lambda: cut([]))
    told = capsys.readouterr()
    assert (ended.value.code, told.out, told.err) == (1, "", "proctor: interrupted\n")


def test_an_output_that_nobody_reads_any_more_ends_a_command_quietly(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From within task groups too, as when lines of a rescoring go to `head`: code 1, and no traceback."""
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # typer puts another in its place
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    piped = typer.Typer()

    async def show() -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    async def work() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(show)

    piped.command()(lambda: run_async(work))
    with pytest.raises(SystemExit) as ended:
        guarded(lambda: piped([]))
    told = capsys.readouterr()
    assert (ended.value.code, told.out, told.err) == (1, "", "")


def test_what_the_disk_refuses_is_told_out_of_task_groups_too(capsys: pytest.CaptureFixture[str]) -> None:
    """As of a command that is not in one: by the file's name, and without a traceback. What is a fault of ours stays."""

    async def work(error: Exception) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(raising, error)

    async def raising(error: Exception) -> None:
        raise error

    with pytest.raises(SystemExit) as ended:
        guarded(lambda: anyio.run(work, OSError(errno.ENAMETOOLONG, "File name too long", "xxx")))
    assert (ended.value.code, capsys.readouterr().err) == (
        1,
        "proctor: stopped: xxx: File name too long: expected files that can be read and written\n",
    )
    with pytest.raises(ExceptionGroup):
        guarded(lambda: anyio.run(work, ValueError("ours")))


@pytest.mark.parametrize("command", ["score", "audit", "verify", "report", "export", "query"])
def test_what_the_disk_refuses_is_said_by_name_and_is_no_traceback(
    tmp_path: Path, proctor: Any, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that is a folder, say: one message that names it."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        folder = anyio.run(frozen_run, tmp_path).folder
    record = folder.resolve() / "record.jsonl"
    record.mkdir()
    more = {"export": ("--to", tmp_path / "out"), "query": ("SELECT 1",)}.get(command, ())
    told = proctor(command, folder, *more)
    assert told.code != 0
    assert f"{record}: Is a directory" in told.err
