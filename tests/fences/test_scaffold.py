"""A probe that was just scaffolded passes its own tests, is listed once it is installed, and holds behind a real fence."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fences.receipt import registered_probes
from fences.scaffold import LANGUAGES, new_probe
from harness.errors import UsageError

ROOT = Path(__file__).parents[2]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A Python of this machine with the package in `folder` importable."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def installed(folder: Path) -> dict[str, str]:
    """Do what an editable installation does: say the package's entry points. Returns them."""
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    points: dict[str, str] = project["entry-points"]["proctor.probes"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", "utf-8"
    )
    lines = [f"{name} = {target}" for name, target in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[proctor.probes]", *lines, ""]), "utf-8")
    return points


@pytest.mark.live
@pytest.mark.timeout(120)
@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_a_scaffolded_probe_passes_its_own_tests_and_is_listed(tmp_path: Path, language: str) -> None:
    """The tests show all four findings; the package is typed and formatted as ours is."""
    written = new_probe("spare-door", language, tmp_path)
    folder = tmp_path / "proctor-probe-spare-door"
    assert {path.relative_to(folder).as_posix() for path in written} == {
        "pyproject.toml",
        "README.md",
        "proctor_probe_spare_door.py",
        "tests/test_proctor_probe_spare_door.py",
    }
    tested = run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "5 passed" in tested.stdout
    for words in (["format", "--check"], ["check"]):
        looked = run(folder, "-m", "ruff", *words, "--isolated", "--line-length", "120", ".")
        assert looked.returncode == 0, looked.stdout + looked.stderr
    assert installed(folder) == {"spare-door": "proctor_probe_spare_door:SpareDoorProbe"}
    listed = run(folder, "-c", "from cells.cli import main; main()", "plugins", "probes")
    assert "spare-door" in listed.stdout, listed.stderr


@pytest.mark.live
@pytest.mark.timeout(120)
def test_its_tests_can_fail(tmp_path: Path) -> None:
    """A probe that takes any bytes for its canary does not pass them."""
    new_probe("spare-door", "python", tmp_path)
    folder = tmp_path / "proctor-probe-spare-door"
    module = folder / "proctor_probe_spare_door.py"
    module.write_text(module.read_text("utf-8").replace('    canary = "host-file"\n', ""), "utf-8")
    assert run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests").returncode == 1


@pytest.mark.parametrize(
    "name", ["", "Door", "spare door", "-door", "door-", "a--b", "1door", "../door", "door_x", "x" * 41]
)
def test_a_bad_name_is_refused(tmp_path: Path, name: str) -> None:
    """The message says what a name looks like, and nothing is written."""
    with pytest.raises(UsageError, match="small letters"):
        new_probe(name, "python", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_taken_name_is_refused(tmp_path: Path) -> None:
    """Every registered probe's."""
    taken = registered_probes()[0].name
    with pytest.raises(UsageError, match="is taken by"):
        new_probe(taken, "python", tmp_path)


def test_an_unknown_language_and_a_folder_that_is_there_are_refused(tmp_path: Path) -> None:
    """Nothing is overwritten."""
    with pytest.raises(UsageError, match="Did you mean 'python'"):
        new_probe("spare-door", "pyton", tmp_path)
    new_probe("spare-door", "shell", tmp_path)
    with pytest.raises(UsageError, match="exists"):
        new_probe("spare-door", "python", tmp_path)
