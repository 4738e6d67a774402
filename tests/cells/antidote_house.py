"""The example of the feedback study on fakes: its own files, a few made-up tasks, a scripted model and a fake referee."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cells.freeze import Frozen, freeze
from cells.pools.making import make_pool
from harness.clock import SystemClock
from harness.messages import Request
from harness.models.scripted import ScriptedProvider
from tests.cells.houses import TASKS, fakes
from tests.cells.mirrored_house import Checking
from tests.fake_workspace import FakeBackend

__all__ = ["ARMS", "EXAMPLE", "antidote", "environment", "frozen_example", "written"]

EXAMPLE = Path(__file__).parents[2] / "examples" / "antidote"
ARMS = ("B", "BI", "P", "TC", "CF-SF", "GR-SHAPE")
UNPINNED = f'sha256 = "{"0" * 64}"'


def written(folder: Path, name: str, tasks: Sequence[Mapping[str, Any]] = TASKS) -> Path:
    """
    One of the example's files beside data sets of our own, of the same `tasks`, for `environment` to name. A profile is
    of the real data set alone, so it is taken out; nothing else is changed.
    """
    for stem, first in (("HumanEval", 0), ("Mbpp", 3)):
        rows = [{**task, "task_id": f"{stem}/{first + number}"} for number, task in enumerate(tasks)]
        (folder / f"{stem}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    text = (EXAMPLE / name).read_text("utf-8")
    kept = [line for line in text.splitlines() if not line.startswith("profile = ")]
    path = folder / name
    path.write_text("\n".join(kept), "utf-8")
    return path


def environment(folder: Path) -> dict[str, str]:
    """The variables that name the data sets which were written into `folder`."""
    files = {"HUMANEVAL_OVERRIDE_PATH": "HumanEval.jsonl", "MBPP_OVERRIDE_PATH": "Mbpp.jsonl"}
    return {name: str(folder / file) for name, file in files.items()}


@contextmanager
def antidote(
    monkeypatch: pytest.MonkeyPatch, folder: Path, answer: Callable[[Request], str], **others: Any
) -> Iterator[None]:
    """What the example's files name, faked: workspaces, models, the referee, both data sets, the probe table."""
    for variable, value in environment(folder).items():
        monkeypatch.setenv(variable, value)

    def model() -> ScriptedProvider:
        return ScriptedProvider(lambda request: f"```python\n{answer(request)}\n```")

    given = {
        "referees_evalplus": lambda _options: Checking({}),
        "models_local": model,
        "models_ollama": model,
        **others,
    }
    with fakes(monkeypatch, FakeBackend(name="bubblewrap"), probed=True, **given):
        yield


async def frozen_example(folder: Path, name: str = "small.toml") -> Frozen:
    """Make the pool that the file names, put its digest into it, as its reader does, and freeze it."""
    path = written(folder, name)
    pool = {"small.toml": "small-pool.jsonl", "experiment.toml": "pool.jsonl"}[name]
    made = await make_pool(path, n=2, out=folder / pool, arm="B", clock=SystemClock(), say=lambda _text: None)
    text = path.read_text("utf-8")
    assert text.count(UNPINNED) == 1
    path.write_text(text.replace(UNPINNED, f'sha256 = "{made.digest}"'), "utf-8")
    return await freeze(path, folder / "runs", clock=SystemClock())
