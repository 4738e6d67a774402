"""A finished discovery, an experiment that confirms an effect of it, and promotions made up without either."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.freeze import freeze
from cells.promotion.effect import Effect
from cells.promotion.promoting import Made, promote
from cells.run import run
from harness.clock import SystemClock
from tests.cells.houses import Quiet, fake_backend, fakes, write_experiment

SWAPPED = """
[[analysis.contrasts]]
name = "B under P"
treatment = "B"
control = "P"
alternative = "less"
[[analysis.contrasts]]
name = "unpaired"
treatment = "P"
control = "B"
test = "fisher"
"""

CONFIRMS = """
[[confirms]]
discovery = "{discovery}"
effect = "{effect}"
contrast = "P over B"
promotion = "{file}"
{more}
"""


@contextmanager
def workshop(folder: Path) -> Iterator[None]:
    """Fakes whose probe table holds, so that an audit is clean."""
    with pytest.MonkeyPatch.context() as patch, fakes(patch, fake_backend(folder), probed=True):
        yield


def played(path: Path, runs: Path) -> Path:
    """Freeze an experiment file, play it to its end, and return the run's folder."""

    async def work() -> Path:
        frozen = await freeze(path, runs, clock=SystemClock())
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
        return frozen.folder

    return anyio.run(work)


def frozen_at(path: Path, runs: Path) -> Path:
    """Freeze an experiment file, and return the run's folder."""
    return anyio.run(partial(freeze, path, runs, clock=SystemClock())).folder


def discovery_in(folder: Path) -> Path:
    """A finished discovery of three tasks and two arms, with one effect under two names, and another by another test."""
    path = write_experiment(folder / "discovery")
    path.write_text(path.read_text("utf-8") + SWAPPED, "utf-8")
    return played(path, folder / "runs")


def confirmation_of(
    discovery: str,
    folder: Path,
    *,
    name: str = "again",
    effect: str = "P over B",
    namespace: str = "again",
    file: str = "effect.promotion.json",
    more: str = "",
    change: Callable[[str], str] = lambda text: text,
) -> Path:
    """Write an experiment of the same tasks and arms that confirms an effect of the run `discovery`."""
    path = write_experiment(folder / name)
    text = path.read_text("utf-8").replace('name = "fake"', f'name = "{name}"', 1)
    text = text.replace('seed_namespace = "fake"', f'seed_namespace = "{namespace}"')
    told = CONFIRMS.format(discovery=discovery, effect=effect, file=file, more=more)
    path.write_text(change(text + told), "utf-8")
    return path


def promoted(discovery: Path, target: Path, *, contrast: str = "P over B", dry_run: bool = False) -> Made:
    """Promote an effect."""
    return anyio.run(partial(promote, discovery, contrast, target, clock=SystemClock(), dry_run=dry_run))


def effect(**changes: Any) -> Effect:
    """An effect of P over B on two units."""
    values: dict[str, Any] = {
        "contrast": "P over B",
        "treatment": "P",
        "control": "B",
        "treatment_sha256": "1" * 64,
        "control_sha256": "2" * 64,
        "test": "mcnemar",
        "cluster": None,
        "separation": None,
        "alternative": "greater",
        "extras": "none",
        "model": None,
        "family": "primary",
        "qualifiers": (),
        "setting": {},
        "units": ("b|m|1", "b|m|2"),
    }
    return Effect(**{**values, **changes})
