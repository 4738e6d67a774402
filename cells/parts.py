"""The parts of an experiment, put together by registered name: what a freeze pins and a run works with."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from cells.arm_making import ArmOrigin, made_arm, read_corpus
from cells.mirrors import mirror_sources
from cells.pools.candidates import pool_bytes
from cells.population import Population, settle_population
from cells.price_lists import read_cards
from fences.policy import FencePolicy
from fences.rendering import render
from harness import plugins
from harness.arm_acceptance import check_placebo
from harness.arm_check import check_arm
from harness.arm_entries import ArmEntry, ArmFolderEntry, ArmOptionsEntry
from harness.arm_folder import read_arm_folder
from harness.blobs import BlobStore
from harness.casebook import recall_tasks
from harness.errors import ExperimentError, unknown_name
from harness.experiment import Experiment, ModelEntry, SeatEntry
from harness.messages import Decoding, ModelSpec
from harness.ports import Arm, ModelProvider, Referee, Seat, WorkspaceBackend
from harness.rate_cards import RateCard, card_bytes
from harness.tasks.sources import load_tasks
from harness.tasks.task import Task
from harness.text_arm import load_text_arm
from harness.views import Fence

__all__ = ["Origin", "Parts", "SourceOrigin", "StoreOrigin", "assemble", "model_spec"]


class Origin(ArmOrigin, Protocol):
    """Where an experiment's tasks and arm texts are read from."""

    def tasks(self, experiment: Experiment) -> dict[str, Task]:
        """The tasks by key (`benchmark/name`), in the order of the experiment."""
        ...

    def rate_card(self, file: str) -> bytes:
        """The bytes of a rate card."""
        ...

    def pool(self, file: str) -> bytes:
        """The bytes of a pool."""
        ...


@dataclass(frozen=True)
class SourceOrigin:
    """The files that the experiment file names, relative to its folder."""

    folder: Path

    def tasks(self, experiment: Experiment) -> dict[str, Task]:
        """Load every source. Raises `TaskError` for a bad one, `ExperimentError` when two give the same task."""
        found: dict[str, Task] = {}
        for entry in experiment.tasks:
            for task in load_tasks(entry, self.folder):
                if task.key in found:
                    raise ExperimentError(f"tasks: {task.key} comes from two entries: expected each task once")
                found[task.key] = task
        return found

    def arm_text(self, entry: ArmEntry) -> bytes:
        """Read the file. Raises `PluginError` when it is missing or no text."""
        return load_text_arm(entry.name, self.folder / entry.file).content

    def arm_files(self, entry: ArmFolderEntry) -> Mapping[str, bytes]:
        """Read the folder. Raises `PluginError` when it is missing or has what no arm may have."""
        return read_arm_folder(self.folder / entry.folder)

    def arm_corpus(self, entry: ArmOptionsEntry) -> bytes:
        """Read the file. Raises `PluginError` when it can't be."""
        return read_corpus(entry, self.folder)

    def rate_card(self, file: str) -> bytes:
        """Read the file. Raises `RateCardError` when it can't be."""
        return card_bytes(self.folder / file)

    def pool(self, file: str) -> bytes:
        """Read the file. Raises `UsageError` when it can't be."""
        return pool_bytes(self.folder / file)


@dataclass(frozen=True)
class StoreOrigin:
    """The blobs of a run folder: what was frozen, on any machine."""

    store: BlobStore
    pins: Mapping[str, Any]

    def tasks(self, experiment: Experiment) -> dict[str, Task]:
        """The frozen tasks; the experiment's sources are not looked at."""
        del experiment
        keys = [name.removeprefix("task ") for name in self.pins if name.startswith("task ")]
        return recall_tasks(self.store, self.pins, keys)

    def arm_text(self, entry: ArmEntry) -> bytes:
        """The frozen bytes."""
        return self.store.get(self.pins[f"arm {entry.name}"]["sha256"])

    def arm_files(self, entry: ArmFolderEntry) -> Mapping[str, bytes]:
        """The frozen bytes; the folder is not looked at."""
        pinned = self.pins[f"arm {entry.name}"]["files"]
        return {path: self.store.get(digest) for path, digest in pinned.items()}

    def arm_corpus(self, entry: ArmOptionsEntry) -> bytes:
        """The frozen bytes."""
        return self.store.get(self.pins[f"arm {entry.name}"]["corpus"])

    def rate_card(self, file: str) -> bytes:
        """The frozen bytes."""
        return self.store.get(self.pins[f"rate card {file}"]["sha256"])

    def pool(self, file: str) -> bytes:
        """The frozen bytes."""
        return self.store.get(self.pins[f"pool {file}"]["sha256"])


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Everything an experiment names, made."""

    experiment: Experiment
    tasks: Mapping[str, Task]
    arms: Mapping[str, Arm]
    seat: Seat
    referee: Referee
    backend: WorkspaceBackend
    providers: Mapping[str, ModelProvider]
    policy: FencePolicy
    fence: Fence
    decoding: Decoding
    cards: Mapping[str, RateCard]
    corpora: Mapping[str, bytes] = field(default_factory=dict)
    population: Population | None = None

    def judging_image(self, task: Task) -> str:
        """The image that a task is judged in: its card's, else the referee's, else the seat's."""
        return task.sealed.image or self.experiment.referee.image or self.experiment.workspace.image


def assemble(experiment: Experiment, origin: Origin) -> Parts:
    """
    Make every part that the experiment names; the backend and each model must be settled (no `auto`, no `choices`).

    Raises `UsageError`s that name the part. Nothing is started and no server is asked.
    """
    arms = {entry if isinstance(entry, str) else entry.name: made_arm(entry, origin) for entry in experiment.arms}
    for name, arm in arms.items():
        # Words are the experimenter's own: `proctor arm check` speaks of them, a freeze does not refuse them.
        findings = [*check_arm(arm), *check_placebo(arm, arms)]
        found = [finding for finding in findings if finding.level == "error" and finding.rule != "words"]
        bad = [f"{finding.rule}: {finding.detail}" for finding in found]
        if bad:
            raise ExperimentError(f"arm {name!r} can't be used: {'; '.join(bad)}")
        if experiment.seat.kind not in arm.seats:
            seats = ", ".join(sorted(arm.seats))
            raise ExperimentError(f"arm {name!r} can't run in seat {experiment.seat.kind!r}: expected one of {seats}")
    mirror_sources(arms)
    policy = FencePolicy.from_mapping(experiment.fence, experiment.workspace.limits.model_dump())
    seat = _seat(experiment.seat)
    _check_gateway(seat, policy)
    tasks = origin.tasks(experiment)
    return Parts(
        experiment=experiment,
        tasks=tasks,
        population=_population(experiment, tasks, origin),
        arms=arms,
        corpora=_corpora(experiment, origin),
        seat=seat,
        referee=plugins.load("referees", experiment.referee.name)(experiment.referee.options),
        backend=plugins.load("workspaces", experiment.workspace.backend)(),
        providers={entry.name: plugins.load("models", entry.ways()[0].provider)() for entry in experiment.models},
        policy=policy,
        fence=render(policy, experiment.workspace.image),
        decoding=Decoding(**{**experiment.seat.decoding.model_dump(), "stop": tuple(experiment.seat.decoding.stop)}),
        cards=read_cards(experiment, origin.rate_card),
    )


def _corpora(experiment: Experiment, origin: Origin) -> dict[str, bytes]:
    """The files that registered arms work with, by the arm's name."""
    given = (entry for entry in experiment.arms if isinstance(entry, ArmOptionsEntry))
    return {entry.name: origin.arm_corpus(entry) for entry in given if entry.corpus is not None}


def _population(experiment: Experiment, tasks: Mapping[str, Task], origin: Origin) -> Population | None:
    """The units of the experiment's pool, if it names one."""
    entry = experiment.population
    if entry is None:
        return None
    models = [model.name for model in experiment.models]
    return settle_population(entry, origin.pool(entry.pool), tasks=tasks, models=models)


def _check_gateway(seat: Seat, policy: FencePolicy) -> None:
    """A seat that serves the gateway needs one that speaks its wire; for any other the way out leads nowhere."""
    if not getattr(seat, "needs_gateway", False):
        if policy.network == "gateway":
            raise ExperimentError(
                f"fence.network is 'gateway', and seat {seat.name!r} runs no foreign agent that would need one: "
                "expected 'none'. Take the key out of [fence], or choose the seat 'command'"
            )
        return
    if policy.network != "gateway":
        raise ExperimentError(
            f"seat {seat.name!r} reaches its model through the gateway, and fence.network is {policy.network!r}: write "
            'network = "gateway" into [fence]. The workspace has no other network then either'
        )
    wire = getattr(seat, "wire", None)
    if wire is not None and wire not in policy.gateway.wires:
        raise ExperimentError(
            f"seat {seat.name!r} speaks the wire {wire!r}, and fence.gateway.wires is {list(policy.gateway.wires)}: "
            "add it there"
        )


def _seat(entry: SeatEntry) -> Seat:
    """Make a seat with its options as keyword arguments, naming an option that it does not have."""
    maker = plugins.load("seats", entry.kind)
    known = inspect.signature(maker).parameters
    for name in entry.options:
        if name not in known:
            raise ExperimentError(f"seat.options: {unknown_name('option', name, known)}")
    seat: Seat = maker(**entry.options)
    return seat


def model_spec(entry: ModelEntry) -> ModelSpec:
    """The settled model of an entry, as its provider takes it."""
    (way, *_rest) = entry.ways()
    return ModelSpec(name=entry.name, **way.model_dump())
