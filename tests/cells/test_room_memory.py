"""A referee whose rooms are smaller than it needs is refused before anything is frozen, run or judged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from cells.cli import app
from harness.errors import ExperimentError
from harness.tasks.task import SealedHalf
from referees.null import NullReferee
from tests.cells.houses import fakes, frozen_run, write_experiment
from tests.fake_workspace import FakeBackend

DEFAULT = 3 << 30


class Hungry(NullReferee):
    """Needs as much as the default gives, and a byte more for one task."""

    def room_bytes(self, sealed: SealedHalf) -> int:
        """By the task."""
        return DEFAULT + any(
            b"x + 1" in file.data for file in (*sealed.tests.files.values(), *sealed.solution.files.values())
        )


@pytest.fixture
def hungry(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A house whose referee says what it needs."""
    with fakes(monkeypatch, FakeBackend(name="docker"), referees_null=Hungry):
        yield


def test_a_freeze_refuses_and_names_the_task(hungry: Any, tmp_path: Path) -> None:
    """Both figures, who needs it for which task, and the key to change; `task check` of the file refuses alike."""
    said = rf"referee.limits.memory_bytes is {DEFAULT}: referee 'null' needs rooms of {DEFAULT + 1} .* for \S*Fake/1\. "
    place = write_experiment(tmp_path)
    with pytest.raises(ExperimentError, match=said):
        anyio.run(frozen_run, tmp_path)
    assert not list(tmp_path.glob("**/registration.json"))
    refused = CliRunner().invoke(app, ["task", "check", str(place)]).exception
    assert isinstance(refused, ExperimentError)
    assert re.search(said, str(refused))


def test_an_ample_room_is_frozen(hungry: Any, tmp_path: Path) -> None:
    """A byte more of the same key, and the same experiment is frozen."""
    more = f"1\n[referee.limits]\nmemory_bytes = {DEFAULT + 1}\n"

    async def play() -> Any:
        return await frozen_run(tmp_path, retries=more)

    assert anyio.run(play).registration.cells
