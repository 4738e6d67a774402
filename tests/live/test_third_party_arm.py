"""
A third party's arms: packages that are built, installed into a folder of their own and found by entry point, and an
experiment that compares them, run in real rooms. Nothing of this repository is touched.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.registration import load_registration
from tests.arms.folders import DIET
from tests.cells.houses import outcomes, write_experiment

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]


def called(folder: Path, site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A Python program in `folder` that finds what is installed in `site`."""
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *words]
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


def proctor(folder: Path, site: Path, *words: str, code: int = 0) -> str:
    """What the command line said; it must end with `code`."""
    ended = called(folder, site, "-c", "from cells.cli import main; main()", *words)
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def installed(folder: Path, site: Path, name: str, *words: str, text: str | None = None) -> Path:
    """Start a package with `proctor arm new`, put another text in, build its wheel and install that."""
    proctor(folder, site, "arm", "new", name, "--package", *words)
    package = folder / f"proctor-arm-{name}"
    if text is not None:
        (path,) = package.rglob("text.md")
        path.write_text(text, "utf-8")
    options = ["-q", "--no-build-isolation", "--no-deps", "--no-index", "--no-cache-dir"]
    wheels = folder / "wheels"
    built = called(folder, site, "-m", "pip", "wheel", *options, "--wheel-dir", str(wheels), str(package))
    assert built.returncode == 0, built.stderr
    (wheel,) = wheels.glob(f"proctor_arm_{name.replace('-', '_')}-*.whl")
    put = called(folder, site, "-m", "pip", "install", *options, "--target", str(site), str(wheel))
    assert put.returncode == 0, put.stderr
    return package


def test_arms_of_separate_packages_run(tmp_path: Path) -> None:
    """A text, its placebo and a packet: listed, checked, frozen with where they come from, and run to outcomes."""
    site = tmp_path / "site"
    installed(tmp_path, site, "diet", text=DIET)
    alike = installed(tmp_path, site, "grey-wall", "--placebo-for", "diet")
    installed(tmp_path, site, "rounds", "--kind", "packet")
    listed = {row["name"]: row for row in json.loads(proctor(tmp_path, site, "arm", "list", "--json"))}
    assert listed["grey-wall"]["distribution"] == "proctor-arm-grey-wall 0.1.0"
    assert listed["grey-wall"]["placebo_for"] == "diet"
    for name in ("diet", "grey-wall", "rounds"):
        assert "note: bytes: pinned: " in proctor(tmp_path, site, "arm", "check", name)
    tests = called(tmp_path, site, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(alike / "tests"))
    assert tests.returncode == 0, tests.stdout
    assert "'diet' is taken by proctor_arm_diet:diet of proctor-arm-diet" in proctor(
        tmp_path, site, "arm", "new", "diet", code=2
    )

    path = write_experiment(
        tmp_path / "study", arms='["diet", "grey-wall", "rounds"]', treatment="diet", control="grey-wall"
    )
    path.write_text(path.read_text("utf-8").replace('backend = "docker"', 'backend = "bubblewrap"'), "utf-8")
    proctor(path.parent, site, "run", str(path), "--runs", str(tmp_path / "runs"))
    (folder,) = (tmp_path / "runs").iterdir()
    played = outcomes(folder)
    assert {(outcome.cell.arm, outcome.outcome_class) for outcome in played} == {
        ("diet", "PASS"), ("grey-wall", "PASS"), ("rounds", "PASS"),
    }  # fmt: skip
    pins = load_registration(folder).pins
    assert pins["plugin arms/diet"]["target"] == "proctor_arm_diet:diet"
    assert set(pins["arm rounds"]["files"]) == {"arm.toml", "packet.py", "words.json"}
    sent = "".join(path.read_text("utf-8") for path in (folder / "transcripts").glob("*-diet-*.jsonl"))
    assert "Write one check first, then the code that makes it pass." in sent

    (text,) = (site / "proctor_arm_diet/diet").glob("text.md")
    text.write_text(DIET + "\n", "utf-8")
    refused = proctor(path.parent, site, "run", str(folder), code=2)
    assert "arm diet: frozen as" in refused
