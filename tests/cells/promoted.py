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
from cells.promotion.effect import Effect, effect_of
from cells.promotion.links import KIND
from cells.promotion.promoted import Audited, Figures, Promotion, Target, experiment_digest
from cells.promotion.promoting import Made, promote
from cells.run import run
from harness.blobs import BlobStore
from harness.clock import SystemClock
from harness.record import encode_line
from harness.registration import load_registration
from tests.cells.audited import reregistered
from tests.cells.houses import Quiet, fake_backend, fakes, write_experiment

LONG_AGO = "2000-01-01T00:00:00.000Z"

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


def confirming_a_made_up_effect(folder: Path, *, discovery: str) -> Path:
    """Write another registration in the place of a run's: it confirms an effect of a run that isn't at hand, and fits."""
    registration = load_registration(folder)
    row = {"discovery": discovery, "effect": "P over B", "contrast": "P over B", "promotion": "p.json"}
    experiment = {**registration.experiment, "confirms": [{**row, "disjoint": False, "direction": None}]}
    seen = {"groups": None, "pairs": {"treatment_only": 1, "control_only": 0}}
    content = Promotion(
        number=1,
        dated=LONG_AGO,
        discovery=discovery,
        registration="0" * 64,
        seed_namespace="elsewhere",
        head=f"0:{'0' * 64}",
        audit=Audited(verdict="CLEAN", head=f"0:{'0' * 64}", kept=()),
        effect=effect_of(registration, "P over B"),
        figures=Figures(label="discovery", note="made up", reading=seen, amended=None),
        confirmation=Target(
            name="fake",
            seed_namespace="fake",
            contrast="P over B",
            alternative="greater",
            direction=None,
            disjoint=False,
            shared_units=3,
            experiment=experiment_digest(experiment),
            file="0" * 64,
        ),
        repository=None,
    )
    line, sha256 = encode_line(seq=1, at=LONG_AGO, kind=KIND, body=content.model_dump(mode="json"), prev="0" * 64)
    pin = {"sha256": BlobStore(folder / "blobs").put(line + b"\n"), "discovery": discovery, "line": f"1:{sha256}"}
    return reregistered(folder, experiment=experiment, pins={**registration.pins, "promotion p.json": pin})
