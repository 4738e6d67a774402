"""An experiment's arm folders: pinned file by file, refused when they drift, and taken from the blobs without a source."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cells.freeze import reopen, reopen_for_judging
from harness.canonical import digest_bytes
from harness.clock import SystemClock
from harness.errors import DriftError, ExperimentError, PluginError
from harness.views import RoundView
from tests.arms.folders import LOOKALIKE, packet_files, text_files, write_folder
from tests.cells.houses import fake_backend, fakes, frozen_run

pytestmark = pytest.mark.anyio

ARMS = {"arms": '[{ folder = "arms/diet" }, { folder = "arms/rounds" }]', "treatment": "diet", "control": "rounds"}
VIEW = RoundView(instruction="Add.", round=2, rounds=2)


def written(folder: Path) -> None:
    """A text and a packet beside the experiment."""
    write_folder(folder / "arms", "diet", text_files("diet"))
    write_folder(folder / "arms", "rounds", packet_files("rounds"))


async def test_every_file_is_pinned_and_a_changed_one_is_drift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest of the content, and of each file beside it; a byte of any is named."""
    written(tmp_path)
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path, **ARMS)
        pin = frozen.registration.pins["arm rounds"]
        given = packet_files("rounds")
        assert pin["sha256"] == digest_bytes(given["words.json"])
        assert pin["files"] == {path: digest_bytes(data) for path, data in given.items()}
        assert (await reopen(frozen.folder, clock=SystemClock())).registration.id == frozen.registration.id
        (tmp_path / "arms/rounds/packet.py").write_bytes(given["packet.py"] + b"# another byte\n")
        with pytest.raises(DriftError, match=r"arm rounds: frozen as files .*packet.py"):
            await reopen(frozen.folder, clock=SystemClock())


async def test_without_its_source_a_run_has_its_arms_from_the_frozen_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text and packet, for going on and for judging; a blob that is not what it says is never run."""
    written(tmp_path)
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path, **ARMS)
        (tmp_path / "experiment.toml").unlink()
        shutil.rmtree(tmp_path / "arms")
        again = await reopen(frozen.folder, clock=SystemClock())
        assert again.parts.arms["rounds"].render(VIEW) == "Round 2\n\nAdd."
        assert again.parts.arms["diet"].render(VIEW) == frozen.parts.arms["diet"].render(VIEW)
        _parts, changed = await reopen_for_judging(frozen.folder, clock=SystemClock())
        assert changed == []


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        ("diet", text_files("diet", b"caf\xe9"), "byte 3 of the text is 0xe9, which is not UTF-8"),
        ("B", text_files("B"), "arm 'B': the name is taken by a registered arm; choose another"),
        (
            "diet",
            text_files("diet", more='forbidden = ["check"]'),
            "line 3 says 'check', which its own arm.toml forbids",
        ),
        ("diet", text_files("diet", LOOKALIKE[:60], 'placebo_for = "placebo"'), "60 characters, the treatment has"),
        ("diet", text_files("diet", more='placebo_for = "dyet"'), "unknown treatment 'dyet'"),
        ("diet", text_files("diet", more='seats = ["loop"]'), "can't run in seat 'oneshot'"),
        (
            "diet",
            packet_files(
                "diet", packet_files("x")["packet.py"].decode().replace("(self, view)", "(self, view, sealed)")
            ),
            "`render` asks for `sealed` beside its view",
        ),
    ],
)
async def test_a_broken_arm_is_refused_at_the_freeze(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, files: dict[str, bytes], said: str
) -> None:
    """One broken arm a refusal, each with what is wrong and where; nothing is written."""
    write_folder(tmp_path / "arms", name, files)
    arms = {"arms": f'["plain", {{ folder = "arms/{name}" }}]', "treatment": name, "control": "plain"}
    with fakes(monkeypatch, fake_backend(tmp_path)), pytest.raises((ExperimentError, PluginError)) as refused:
        await frozen_run(tmp_path, **arms)
    assert said in str(refused.value)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('{ folder = "arms/di et" }', "arms.0.folder: String should match pattern"),
        ('{ folder = "arms/diet", name = "diet" }', "arms.0.name: unknown key 'name'"),
        ("{ folder = 3 }", "arms.0.folder: Input should be a valid string, got 3"),
        ('{ foldr = "arms/diet" }', "arms.0.foldr: unknown key 'foldr'. Did you mean 'folder'? Known: folder."),
        (
            '{ name = "INVERT", corpsu = "c" }',
            "unknown key 'corpsu'. Did you mean 'corpus'? Known: corpus, name, options.",
        ),
        (
            '{ name = "diet", fiel = "d.md" }',
            "arms.0.fiel: unknown key 'fiel'. Did you mean 'file'? Known: file, name.",
        ),
        (
            '{ name = "diet" }',
            "arm 'diet' is not registered and names no text: one of your own is { name = \"diet\", file",
        ),
        ("3", "arms.0: Input should be a valid string, got 3"),
    ],
)
async def test_an_entry_that_is_none_is_said_once(tmp_path: Path, entry: str, said: str) -> None:
    """A fault is told of the kind of entry that was meant, and not of the two others."""
    with pytest.raises(ExperimentError) as refused:
        await frozen_run(tmp_path, arms=f'[{entry}, "B"]', treatment="diet", control="B")
    assert said in str(refused.value)
    assert str(refused.value).count("valid string") <= 1
