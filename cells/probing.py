"""Probe tables outside of a run: for somebody who looks at a fence, and for an auditor who replays one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cells.backends import AUTO, usable_backend
from fences.gate import refusals
from fences.policy import FencePolicy
from fences.receipt import Receipt, receipt_from_json, registered_probes, take_receipt
from fences.rendering import check_requires, render
from fences.replay import FINDINGS, compare_receipts, compare_rows, explained
from fences.rows import ProbeRow, row_line, rows_from_json
from fences.table import probe_all
from harness import plugins
from harness.clock import fresh_token
from harness.errors import GateRefused, ImageError, UsageError
from harness.experiment import Experiment, load_experiment
from harness.ports import WorkspaceBackend
from harness.record import Entry, read_entries
from harness.registration import load_registration
from harness.views import Fence

__all__ = ["Probing", "fence_of", "probing", "replay_table", "take_table"]

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Probing:
    """What is probed."""

    policy: FencePolicy
    fence: Fence
    backend: WorkspaceBackend
    image: str


async def probing(experiment: Path | None, *, backend: str, image: str) -> Probing:
    """The fence of an experiment file, or the default one; `auto` takes the first backend that can be used."""
    if experiment is not None and backend == AUTO:
        backend = load_experiment(experiment).workspace.backend
    policy, image = fence_of(experiment, image)
    chosen = await usable_backend(backend, image)
    return Probing(policy=policy, fence=render(policy, image), backend=chosen, image=image)


def fence_of(experiment: Path | None, image: str) -> tuple[FencePolicy, str]:
    """The policy and image of an experiment file; the default policy and `image` where there is none."""
    if experiment is None:
        return FencePolicy(), image
    file = load_experiment(experiment)
    return _policy(file), file.workspace.image


def _policy(experiment: Experiment) -> FencePolicy:
    return FencePolicy.from_mapping(experiment.fence, experiment.workspace.limits.model_dump())


async def take_table(what: Probing, *, say: Say) -> tuple[tuple[ProbeRow, ...], tuple[str, ...], Receipt]:
    """The whole table, every reason why a gate would refuse it, and the receipt it was taken for."""
    faults: tuple[str, ...] = ()
    try:
        check_requires(what.policy, await what.backend.guarantees())
    except GateRefused as refusal:
        faults = (refusal.detail,)
    receipt = await take_receipt(what.backend, what.policy, what.image)

    def show(row: ProbeRow) -> None:
        say(row_line(row))

    rows = await probe_all(what.backend, what.policy, what.image, run=f"probe-{fresh_token(6)}", progress=show)
    names = [probe.name for probe in registered_probes()]
    now = await take_receipt(what.backend, what.policy, what.image)
    return rows, (*faults, *refusals(rows, what.policy, probes=names, taken_for=receipt, now=now)), receipt


async def replay_table(folder: Path, *, image: str | None = None, other_node: bool = False, say: Say) -> dict[str, Any]:
    """
    Take the table of a run's own fence again, here, and compare it with the last recorded one.

    `image` is another image to take it in. With `other_node` the auditor says that this is another machine: then the
    findings are compared, and the conditions are only named. Raises `ImageError` when the image is not here.
    """
    experiment = Experiment.model_validate(dict(load_registration(folder).experiment))
    recorded = _recorded(folder)
    before = receipt_from_json(recorded.body["receipt"])
    chosen = image or experiment.workspace.image
    policy = _policy(experiment)
    backend = await _backend_with(before.backend, chosen, taken_in=experiment.workspace.image)
    what = Probing(policy=policy, fence=render(policy, chosen), backend=backend, image=chosen)
    rows, _faults, now = await take_table(what, say=say)
    conditions = compare_receipts(before, now)
    differences = explained(compare_rows(rows_from_json(recorded.body["rows"]), rows), conditions)
    if other_node:
        differences = tuple(item for item in differences if item.field in FINDINGS)
    return {
        "entry": recorded.seq + 1,
        "rows": len(rows),
        "image": chosen,
        "compared": "findings" if other_node else "all",
        "receipt_differences": [asdict(item) for item in conditions],
        "differences": [item.to_json() for item in differences],
        "identical": not differences and (other_node or not conditions),
    }


async def _backend_with(name: str, image: str, *, taken_in: str) -> WorkspaceBackend:
    """The backend of the recorded table, with the image in it."""
    backend: WorkspaceBackend = plugins.load("workspaces", name)()
    await backend.engine()
    try:
        await backend.image_digest(image)
    except ImageError as error:
        raise ImageError(
            f"{str(error).removesuffix('.')}. The run's table was taken in image {taken_in!r} on {name}: get that "
            "image here, or replay in another with --image NAME, and the differences are named"
        ) from error
    return backend


def _recorded(folder: Path) -> Entry:
    found = None
    path = folder / "record.jsonl"
    for entry in read_entries(path) if path.exists() else ():
        if entry.kind == "fence.probed":
            found = entry
    if found is None:
        raise UsageError(f"{folder} has no recorded probe table: it was never run")
    return found
