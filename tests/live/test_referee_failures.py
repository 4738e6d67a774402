"""
A referee that is killed, starved of memory, without its image, or on a full disk, in real rooms on each backend: the try
is VOID with its cause, the cell is tried again and judged rightly, and nobody is charged with a FAIL.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from anyio.abc import ByteStream

from cells.freeze import freeze
from cells.run import run
from harness import plugins
from harness.clock import SystemClock
from harness.values import Void
from harness.walls import Walls
from tests.cells.houses import FakeBackend, Quiet, fakes, outcomes, write_experiment
from tests.live.images import seat_image

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(300)]

SYSTEMS = Path(__file__).parents[2] / "examples" / "systems"
Failure = str | None


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here: the fast tests run the same referees on both."""
    return "asyncio"


class KilledStream:
    """
    A stream whose room is killed, with signal 9 and everything in it, as soon as it has answered: its second word.
    """

    def __init__(self, stream: ByteStream, kill: Callable[[], Any]) -> None:
        self.stream, self.kill = stream, kill
        self.words = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """What it says; the second time is its last."""
        data = await self.stream.receive(max_bytes)
        self.words += 1
        if self.words == 2:
            await self.kill()
        return data


class KilledRoom:
    """A room in which every program is killed while it is at work."""

    def __init__(self, room: Any) -> None:
        self.room = room

    def __getattr__(self, name: str) -> Any:
        return getattr(self.room, name)

    @asynccontextmanager
    async def stream(self, *given: Any, **named: Any) -> AsyncIterator[KilledStream]:
        """As the room's own, up to its second word."""
        async with self.room.stream(*given, **named) as stream:
            yield KilledStream(stream, self.room.kill)


SMALL = {"starved": {"memory_bytes": 8 << 20}, "disk": {"workspace_bytes": 16 << 10, "workspace_inodes": 8}}


class Failing(FakeBackend):
    """Seats sit in fakes; the referee's rooms are a real backend's, and fail as `failure` says while it says so."""

    def __init__(self, real: Any, image: str) -> None:
        super().__init__(name="docker")
        self.real, self.image = real, image
        self.failure: Failure = None

    @asynccontextmanager
    async def open(self, walls: Walls, *, run: str) -> AsyncIterator[Any]:
        """A fake for the seat, a real room for the referee."""
        if walls.image != self.image:
            async with super().open(walls, run=run) as fake:
                yield fake
            return
        if self.failure == "image":
            walls = replace(walls, image="an-image-that-nobody-has")
        walls = replace(walls, caps=replace(walls.caps, **SMALL.get(self.failure or "", {})))
        async with self.real.open(walls, run=run) as room:
            yield KilledRoom(room) if self.failure == "killed" else room


class Saboteur(Quiet):
    """Has the referee of each cell fail in the next way while its first try is played, and in no way after that."""

    def __init__(self, backend: Failing, failures: Iterator[str]) -> None:
        super().__init__()
        self.backend, self.failures = backend, failures

    def saw(self, kind: str, body: Any, progress: Any) -> None:
        """A try begins: the first of its cell, or another."""
        super().saw(kind, body, progress)
        if kind == "cell.started":
            self.backend.failure = next(self.failures, None) if body["attempt"] == 1 else None


def experiment(folder: Path, referee: str, image: str) -> Path:
    """One task, two arms, and as many replicates as make a cell for each failure."""
    task = SYSTEMS / "crc32"
    reply = "def task_0(x):\n    return x\n" if referee == "evalplus" else (task / "solution/solution.py").read_text()
    model = "[models.options]\nreplies = [" + json.dumps(f"```python\n{reply}\n```") + "]"
    path = write_experiment(folder, replicates=2, concurrency=1, model=model)
    text = path.read_text().replace('name = "null"', f'name = "{referee}"\nimage = "{image}"')
    source = "evalplus:tasks.jsonl" if referee == "evalplus" else f"folder:{task}"
    text = text.replace('backend = "docker"', 'backend = "docker"\nimage = "an-image-of-fakes"')
    text = text.replace('source = "evalplus:tasks.jsonl"', f'source = "{source}"\ncap = 1')
    path.write_text(text)
    return path


@pytest.mark.parametrize("backend", ["docker", "bubblewrap"])
@pytest.mark.parametrize("referee", ["evalplus", "pytest"])
async def test_a_referee_that_fails_is_nobodys_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, referee: str
) -> None:
    """Each way to fail is a VOID with a cause, and the next try of that cell is judged; evalplus needs no disk."""
    image = seat_image()
    failing = Failing(plugins.load("workspaces", backend)(), image)
    ways = ["killed", "starved", "image", "disk"]
    with fakes(monkeypatch, failing):
        frozen = await freeze(experiment(tmp_path, referee, image), tmp_path / "runs", clock=SystemClock())
        assert await run(frozen.folder, watcher=Saboteur(failing, iter(ways))) == "finished"
        tries = outcomes(frozen.folder)
    voids = [one.end for one in tries if isinstance(one.end, Void)]
    assert Counter(one.outcome_class for one in tries) == {"PASS": 4, "VOID": 4 - (referee == "evalplus")}
    assert {void.cause for void in voids} <= {"referee", "workspace"}
    assert [void.cause for void in voids if "an-image-that-nobody-has" in void.detail] == ["workspace"]
    assert all(len(void.detail) > 20 for void in voids), voids
