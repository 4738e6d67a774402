"""An image that is gone in the middle of a run, whoever asks for a room of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cells.run import run
from harness.errors import ImageError
from harness.tree import Exhibit
from harness.values import Verdict, Void
from harness.walls import Walls
from referees.null import NullReferee
from tests.cells.houses import FakeBackend, Quiet, fakes, frozen_run, outcomes

pytestmark = pytest.mark.anyio


class Imageless(FakeBackend):
    """A backend whose image will be gone: so many rooms of it can still be opened."""

    there = 1000

    @asynccontextmanager
    async def open(self, walls: Walls, *, run: str) -> AsyncIterator[Any]:
        """A room, or none."""
        self.there -= 1
        if self.there < 0:
            raise ImageError(f"there is no image {walls.image!r}")
        async with super().open(walls, run=run) as room:
            yield room


class InARoom(NullReferee):
    """Opens a room for each judgement."""

    async def judge(self, exhibit: Exhibit, task: Any, sealed: Any, rooms: Any) -> Verdict:
        """The verdict, once there is a room."""
        async with rooms():
            return await super().judge(exhibit, task, sealed, rooms)


class InARoomFirst(InARoom):
    """Opens one for a seat's rounds too."""

    @asynccontextmanager
    async def public_check(self, task: Any, sealed: Any, rooms: Any) -> AsyncIterator[None]:
        """No check, once there is a room."""
        async with rooms():
            yield None


@pytest.mark.parametrize(("asks", "there"), [(InARoom, 0), (InARoom, 1), (InARoomFirst, 1)])
async def test_an_image_that_is_gone_is_the_workspace_s_failure(tmp_path, monkeypatch, asks, there):
    """Whether the seat, its public check or the referee asks for the room: VOID for that cause."""
    backend = Imageless(name="docker")
    with fakes(monkeypatch, backend, referees_null=asks):
        frozen = await frozen_run(tmp_path, concurrency=1, retries=0)

        class Vanishing(Quiet):
            def saw(self, kind: str, body: Any, progress: Any) -> None:
                if kind == "cell.started":
                    backend.there = there

        await run(frozen.folder, watcher=Vanishing())
        first = outcomes(frozen.folder)[0]
    assert isinstance(first.end, Void)
    assert first.end.cause == "workspace"
    assert "there is no image" in first.end.detail
