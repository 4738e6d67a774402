"""A whole run behind a fence that was weakened on purpose: it refuses to start, names the probe, and plays no cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.freeze import freeze
from cells.run import run
from harness import plugins
from harness.clock import SystemClock
from harness.errors import GateRefused
from harness.record import read_entries
from harness.walls import Mount, Walls
from tests.cells.houses import Quiet, write_experiment
from tests.live.images import seat_image

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]

SOCKET = "/var/run/docker.sock"


def bridge(walls: Walls) -> Walls:
    """The engine's default network."""
    return replace(walls, network="bridge")


def socket(walls: Walls) -> Walls:
    """The engine's socket inside."""
    return replace(walls, mounts=(*walls.mounts, Mount(source=SOCKET, target=SOCKET, read_only=False)))


def host_path(walls: Walls) -> Walls:
    """A folder of the host inside."""
    return replace(walls, mounts=(*walls.mounts, Mount(source="/etc", target="/mnt", read_only=True)))


def secret(walls: Walls) -> Walls:
    """A variable of the host's inside."""
    return replace(walls, environment={**walls.environment, "API_KEY": "sk-decoy"})


class Weakened:
    """A backend that opens every workspace behind weaker walls than it was asked for, and says nothing."""

    def __init__(self, inner: Any, weaken: Callable[[Walls], Walls]) -> None:
        self._inner, self._weaken, self.name = inner, weaken, inner.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open(self, walls: Walls, *, run: str) -> Any:
        """A workspace with a hole."""
        return self._inner.open(self._weaken(walls), run=run)


@pytest.mark.parametrize(
    ("weaken", "named"),
    [(bridge, "network"), (socket, "mounts"), (host_path, "mounts"), (secret, "environment")],
    ids=["default bridge network", "engine socket", "host path", "environment secret"],
)
def test_a_weakened_run_refuses_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weaken: Callable[[Walls], Walls], named: str
) -> None:
    """The refusal names what does not hold; it is in the record, and no cell was started."""
    seat_image()
    backend = Weakened(plugins.load("workspaces", "docker")(), weaken)
    real = plugins.load
    monkeypatch.setattr(
        plugins, "load", lambda kind, name: (lambda: backend) if kind == "workspaces" else real(kind, name)
    )

    async def main() -> Path:
        source = write_experiment(tmp_path)
        frozen = await freeze(source, tmp_path / "runs", clock=SystemClock())
        with pytest.raises(GateRefused) as caught:
            await run(frozen.folder, watcher=Quiet())
        assert named in caught.value.detail, caught.value.detail
        print(caught.value)  # noqa: T201 - shown by `pytest -rP`, for whoever wants to read it
        return frozen.folder

    folder = anyio.run(main)
    kinds = [entry.kind for entry in read_entries(folder / "record.jsonl")]
    assert "cell.started" not in kinds
    assert kinds[-1] == "session.closed"
