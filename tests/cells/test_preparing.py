"""What `proctor prepare` builds, and what it leaves to the one who knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cells import preparing
from harness import plugins
from harness.errors import ImageError, UsageError
from harness.experiment import Experiment, load_experiment
from tests.cells.houses import write_experiment
from tests.fake_workspace import FakeBackend

pytestmark = pytest.mark.anyio


class Store(FakeBackend):
    """A backend with the images that were built."""

    def __init__(self) -> None:
        super().__init__()
        self.images: list[str] = []

    async def image_digest(self, image: str) -> str:
        """The digest of one that is there."""
        if image not in self.images:
            raise ImageError(f"no {image}")
        return f"digest-{image}"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    """The one backend, into which building puts an image."""
    made = Store()
    load = plugins.load
    monkeypatch.setattr(
        plugins, "load", lambda kind, name: (lambda: made) if kind == "workspaces" else load(kind, name)
    )
    monkeypatch.setattr(preparing, "build_image", lambda image, _say: made.images.append(image))
    return made


def experiment(folder: Path, **workspace: Any) -> Experiment:
    """An experiment with this image."""
    path = write_experiment(folder)
    found = load_experiment(path)
    return found.model_copy(update={"workspace": found.workspace.model_copy(update=workspace)})


async def test_the_plain_image_is_built(tmp_path: Path, store: Store) -> None:
    """The image that every workspace has unless it says otherwise is made where it is missing."""
    await preparing.prepare(experiment(tmp_path), say=lambda _line: None)
    assert store.images == ["proctor-seat"]


async def test_another_image_is_left_to_its_maker(tmp_path: Path, store: Store) -> None:
    """A plain image under its name would lack what it is for: nothing is built, and the command is said."""
    with pytest.raises(UsageError, match=r"'agent' is not here.*proctor image build --name agent.*--python-package"):
        await preparing.prepare(experiment(tmp_path, image="agent"), say=lambda _line: None)
    assert store.images == []


async def test_an_image_that_is_there_is_left_alone(tmp_path: Path, store: Store) -> None:
    """Whatever its name."""
    store.images.append("agent")
    await preparing.prepare(experiment(tmp_path, image="agent"), say=lambda _line: None)
    assert store.images == ["agent"]
