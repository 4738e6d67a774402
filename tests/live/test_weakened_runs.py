"""
Whole runs behind a fence that was weakened on purpose, in twelve ways: each refuses, names the probe, fact or pin, and
seats nobody. Ten are in the walls: they are found by the qualification, and where a good one is kept from before, by the
gate of the first cell. Two are drifts from what was frozen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.freeze import freeze
from cells.run import run
from fences.policy import FencePolicy
from fences.qualification import qualify
from fences.receipt import registered_probes
from harness import plugins
from harness.clock import SystemClock, fresh_token
from harness.errors import DriftError, GateRefused
from harness.record import read_entries
from tests.cells.houses import Quiet, write_experiment
from tests.live.images import seat_image
from tests.live.weakened import WEAKENINGS, Weakened

pytestmark = [pytest.mark.live, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def qualified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder that keeps a good qualification of the very fence that the runs have."""
    seat_image()
    folder = tmp_path_factory.mktemp("qualified")

    async def main() -> Any:
        backend = plugins.load("workspaces", "docker")()
        return await qualify(backend, FencePolicy(), "proctor-seat", run="test-qualified", clock=SystemClock())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fences.qualification.state_home", lambda: folder)
        found = anyio.run(main)
    assert found.faults == ()
    return folder


def use_backend(monkeypatch: pytest.MonkeyPatch, backend: Weakened, state: Path) -> None:
    """Every workspace comes from `backend`, and qualifications are kept in `state`."""
    real = plugins.load
    monkeypatch.setattr(
        plugins, "load", lambda kind, name: (lambda: backend) if kind == "workspaces" else real(kind, name)
    )
    monkeypatch.setattr("fences.qualification.state_home", lambda: state)


def the_few(monkeypatch: pytest.MonkeyPatch, named: tuple[str, ...]) -> None:
    """
    A table of the probes that are `named`, of those that the policy requires, of one in each language, and of all the
    facts of what is running. The whole table against one open wall is in test_fence_gate.
    """
    every = registered_probes()
    languages: dict[str, str] = {}
    for probe in every:
        if not (getattr(probe, "quiet", False) or getattr(probe, "alone", False)):
            languages.setdefault(probe.language, probe.name)
    required = [name.removeprefix("probe:") for name in FencePolicy().requires]
    looking = {*named, *languages.values(), *required}
    kept = tuple(probe for probe in every if probe.name in looking)
    assert 6 < len(kept) < 20
    for module in ("qualification", "table"):
        monkeypatch.setattr(f"fences.{module}.registered_probes", lambda: kept)


def refused_run(folder: Path) -> tuple[str, list[Any]]:
    """The refusal of a run of the experiment in `folder`, and its record."""

    async def main() -> tuple[str, Path]:
        frozen = await freeze(write_experiment(folder, concurrency=1), folder / "runs", clock=SystemClock())
        with pytest.raises(GateRefused) as caught:
            await run(frozen.folder, watcher=Quiet())
        return str(caught.value), frozen.folder

    said, run_folder = anyio.run(main)
    print(said)  # noqa: T201 - shown by `pytest -rP`, for whoever wants to read it
    return said, list(read_entries(run_folder / "record.jsonl"))


@pytest.mark.parametrize("name", list(WEAKENINGS))
def test_a_weakened_run_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Nothing was qualified before: the probe table names what is open, it is recorded, and no cell is started."""
    seat_image()
    weaken, named = WEAKENINGS[name]
    use_backend(monkeypatch, Weakened(plugins.load("workspaces", "docker")(), weaken), tmp_path / "state")
    the_few(monkeypatch, named)
    said, record = refused_run(tmp_path)
    assert any(f"  {word}:" in said or f"running-{word}:" in said for word in named), said
    assert [entry.kind for entry in record] == ["run.opened", "session.started", "fence.probed", "session.closed"]
    assert record[-1].body["how"] == "refused"
    assert record[-1].body["detail"] in said
    assert record[-2].body["reused"] is False
    assert not (tmp_path / "state").exists(), "a table that does not hold must not be kept"


@pytest.mark.parametrize("name", list(WEAKENINGS))
def test_a_kept_qualification_does_not_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qualified: Path, name: str
) -> None:
    """The fence was good when it was qualified: the first cell's own gate finds what is open, and no seat sits down."""
    weaken, named = WEAKENINGS[name]
    use_backend(monkeypatch, Weakened(plugins.load("workspaces", "docker")(), weaken), qualified)
    said, record = refused_run(tmp_path)
    assert any(f"probe '{word}'" in said or f"{word}: asked for" in said for word in named), said
    probed = next(entry for entry in record if entry.kind == "fence.probed")
    assert probed.body["reused"] is True
    (ended,) = [entry for entry in record if entry.kind == "cell.ended"]
    assert (ended.body["end"]["kind"], ended.body["end"]["cause"]) == ("VOID", "fence")
    assert ended.body["spend"]["calls"] == 0
    assert "before" not in ended.body["room"].get("gate", {})
    assert (record[-1].body["how"], record[-1].body["gate"]) == ("refused", "cell")


@pytest.fixture
def swapped() -> Iterator[tuple[str, Any]]:
    """The name of an image of the engine's own, and what gives the name to another image."""
    import docker

    seat_image()
    api: Any = docker.from_env(timeout=60).api
    name = f"proctor-swap-{fresh_token(4)}"

    async def digest() -> str:
        backend = plugins.load("workspaces", "docker")()
        await backend.image_digest("proctor-seat")
        return str(api.inspect_image("proctor-seat")["Id"])

    seat = anyio.run(digest)
    api.tag(seat, name)
    made = api.create_container(seat, ["true"])["Id"]

    def swap() -> None:
        api.commit(made, repository=name, changes=["ENV SWAPPED=yes"])

    try:
        yield name, swap
    finally:
        api.remove_container(made, force=True)
        api.remove_image(name)
        api.close()


def test_an_image_that_was_swapped_after_the_freeze_is_named(tmp_path: Path, swapped: tuple[str, Any]) -> None:
    """The name leads to another image than was frozen: the pin is named, and no session is opened."""
    name, swap = swapped

    async def main() -> Path:
        source = write_experiment(tmp_path)
        text = source.read_text("utf-8")
        source.write_text(text.replace('backend = "docker"', f'backend = "docker"\nimage = "{name}"'), "utf-8")
        frozen = await freeze(source, tmp_path / "runs", clock=SystemClock())
        swap()
        with pytest.raises(DriftError, match=r"image: frozen as .*, is now"):
            await run(frozen.folder, watcher=Quiet())
        return frozen.folder

    assert not (anyio.run(main) / "record.jsonl").exists()


PROBE = """
from harness.views import Attempt, Finding

class ThrowawayProbe:
    name, language, threat, holds = "throwaway", "python", "a test's", frozenset({Finding.DENIED})

    def weaken(self, fence, site):
        return fence

    async def attempt(self, workspace, fence, site):
        return Attempt(finding=Finding.DENIED, evidence="never looked")
"""


def proctor(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command with the packages in `folder` among those that are installed."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-c", "from cells.cli import main; main()", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_probe_plugin_that_was_edited_after_the_freeze_is_named(tmp_path: Path) -> None:
    """A third party's probe is pinned like ours: one changed byte and the run does not open a session."""
    seat_image()
    info = tmp_path / "throwaway-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: throwaway\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[proctor.probes]\nthrowaway = throwaway_probe:ThrowawayProbe\n", "utf-8")
    module = tmp_path / "throwaway_probe.py"
    module.write_text(PROBE, "utf-8")
    write_experiment(tmp_path / "experiment")
    frozen = proctor(tmp_path, "freeze", "experiment", "--json")
    assert frozen.returncode == 0, frozen.stderr
    assert "plugin probes/throwaway" in json.loads(frozen.stdout)["pins"]
    module.write_text(PROBE.replace("never looked", "never looked!"), "utf-8")
    ran = proctor(tmp_path, "run", json.loads(frozen.stdout)["id"])
    assert ran.returncode == 2, ran.stderr
    assert "plugin probes/throwaway: frozen as" in ran.stderr
    assert not (Path(json.loads(frozen.stdout)["folder"]) / "record.jsonl").exists()
