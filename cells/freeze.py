"""
Freezing: an experiment file becomes a registration, with a digest of everything that its result depends on.

The same code looks again before a run, so that what drifted since is found by comparing two registrations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio

from cells.backends import AUTO, usable_backend
from cells.claim_checks import refuse_idle_claims
from cells.fire_rates import fire_rates
from cells.leak_gate import refuse_leaking_tasks
from cells.outlook import outlook
from cells.parts import Origin, Parts, SourceOrigin, StoreOrigin, assemble, model_spec
from cells.pins import case_pins, code_pins, machine_pins
from cells.planned import refuse_unreadable
from cells.population import refuse_foreign_pool
from cells.price_lists import refuse_cards
from cells.promotion.confirming import promotion_bytes, promotion_pins, refuse_unpromoted
from cells.room_memory import refuse_small_rooms
from cells.seed_spaces import refuse_shared_namespace
from harness import plugins
from harness.arm_folder import files_of
from harness.blobs import BlobStore
from harness.casebook import keep_task
from harness.clock import Clock, now_text
from harness.errors import ProctorError, UsageError
from harness.experiment import Experiment, ModelEntry, load_experiment
from harness.messages import ModelIdentity
from harness.registration import Registration, drift, load_registration, refuse_drift, save_registration
from harness.repository import repository_facts
from harness.values import CellKey

__all__ = [
    "Frozen",
    "freeze",
    "reopen",
    "reopen_for_judging",
    "settle",
    "settle_for_confirming",
    "settle_for_judging",
    "settle_for_pools",
]

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """A registration, the parts it was made of, its models' identities, and the run folder it belongs in."""

    registration: Registration
    parts: Parts
    identities: Mapping[str, ModelIdentity]
    folder: Path


async def freeze(path: Path, runs: Path, *, clock: Clock, say: Say = lambda _text: None) -> Frozen:
    """
    Freeze the experiment file `path` (absolute) into `runs/<id>/registration.json`; harmless when it is there already.

    Raises `UsageError` for whatever of it can't be used, `GateRefused` when a seat would be shown what is sealed,
    `Blamed` when an engine or model server does not answer.
    """
    experiment = load_experiment(path)
    promotions = promotion_bytes(experiment, SourceOrigin(path.parent))
    found = await _weigh(experiment, path, promotions, clock=clock, say=say)
    parts, registration = found.parts, found.registration
    refuse_unpromoted(registration, promotions, runs)
    refuse_shared_namespace(runs, registration)
    folder = runs / registration.id
    store = BlobStore(folder / "blobs")
    for task in parts.tasks.values():
        keep_task(store, task)
    for arm in parts.arms.values():
        store.put(arm.content)
        for data in (files_of(arm) or {}).values():
            store.put(data)
    for data in parts.corpora.values():
        store.put(data)
    for card in parts.cards.values():
        store.put(card.content)
    if parts.population is not None:
        store.put(parts.population.data)
    for data in promotions.values():
        store.put(data)
    save_registration(folder, registration)
    return replace(found, registration=load_registration(folder), folder=folder)


async def _weigh(
    experiment: Experiment, path: Path, promotions: Mapping[str, bytes], *, clock: Clock, say: Say
) -> Frozen:
    """The registration that the file at `path` comes to, unless something of it is refused; nothing is written."""
    experiment, identities = await settle(experiment, say=say)
    parts = assemble(experiment, SourceOrigin(path.parent))
    refuse_small_rooms(parts)
    refuse_leaking_tasks(parts.tasks.values())
    refuse_cards(experiment, parts.cards, identities, clock)
    registration = await _register(parts, identities, source=str(path), clock=clock, promotions=promotions)
    if parts.population is not None:
        refuse_foreign_pool(parts.population, registration.pins)
    refuse_unreadable(experiment.analysis, registration.cells)
    refuse_idle_claims(experiment, registration.cells)
    registration = replace(registration, repository=await anyio.to_thread.run_sync(repository_facts, path))
    return Frozen(registration=registration, parts=parts, identities=identities, folder=path.parent)


async def settle_for_confirming(path: Path, *, clock: Clock, say: Say) -> Frozen:
    """What a freeze of a confirmation would register but for its promotions, which aren't made yet."""
    return await _weigh(load_experiment(path), path, {}, clock=clock, say=say)


async def reopen(folder: Path, *, clock: Clock) -> Frozen:
    """
    Look again at everything that a frozen registration pins. Raises `DriftError` that names what is not as it was.

    Tasks and arm texts come from the experiment's own files where they are still there, else from the run's blobs.
    """
    frozen = load_registration(folder)
    pinned = Experiment.model_validate(dict(frozen.experiment))
    origin, experiment = _origin(frozen, pinned, folder)
    identities = {entry.name: await _identify(entry) for entry in experiment.models}
    parts = assemble(experiment, origin)
    promotions = promotion_bytes(experiment, origin)
    now = await _register(parts, identities, source=frozen.source, clock=clock, promotions=promotions)
    refuse_drift(frozen, now)
    return Frozen(registration=frozen, parts=parts, identities=identities, folder=folder)


JUDGING = ("code", "image", "policy", "walls")
"""The pins that a verdict depends on, beside those of the referee, the workspace, and each task and suite."""


async def reopen_for_judging(folder: Path, *, clock: Clock) -> tuple[Frozen, list[str]]:
    """
    Put a run's parts together for judging, from its own blobs: no model, source file or probe is needed.

    Returns them with a sentence for each thing that a verdict depends on and that is not as it was frozen.
    """
    frozen = load_registration(folder)
    experiment = Experiment.model_validate(dict(frozen.experiment))
    parts = assemble(experiment, StoreOrigin(BlobStore(folder / "blobs"), frozen.pins))
    now = await _register(parts, {}, source=frozen.source, clock=clock)
    wanted = {
        name
        for name in frozen.pins
        if name in JUDGING
        or name.startswith(("task ", "suite ", "judging image ", "plugin referees/", "plugin workspaces/"))
    }
    changed = drift(_only(frozen, wanted), _only(now, wanted))
    return Frozen(registration=frozen, parts=parts, identities={}, folder=folder), changed


async def settle_for_judging(path: Path, *, clock: Clock, say: Say) -> Frozen:
    """The parts of an experiment file for judging alone: a backend is chosen, no model is asked, nothing is written."""
    experiment = load_experiment(path)
    if experiment.workspace.backend == AUTO:
        experiment = _replaced(experiment, await _settled_backend(experiment.workspace.image, say), experiment.models)
    parts = assemble(experiment, SourceOrigin(path.parent))
    refuse_small_rooms(parts)
    registration = await _register(parts, {}, source=str(path), clock=clock)
    return Frozen(registration=registration, parts=parts, identities={}, folder=path.parent)


async def settle_for_pools(path: Path, *, clock: Clock, say: Say) -> Frozen:
    """The parts of an experiment file for making candidates: each model has answered, and nothing is written."""
    experiment, identities = await settle(load_experiment(path), say=say)
    # A pool is of all units, and is made before it is pinned.
    experiment = experiment.model_copy(update={"population": None})
    parts = assemble(experiment, SourceOrigin(path.parent))
    refuse_small_rooms(parts)
    refuse_leaking_tasks(parts.tasks.values())
    registration = await _register(parts, identities, source=str(path), clock=clock)
    return Frozen(registration=registration, parts=parts, identities=identities, folder=path.parent)


def _only(registration: Registration, names: set[str]) -> Registration:
    """The registration with the named pins alone, and nothing else that could differ."""
    pins = {name: pin for name, pin in registration.pins.items() if name in names}
    return replace(registration, pins=pins, experiment={}, cells=(), refused=(), outlook={})


def _origin(frozen: Registration, pinned: Experiment, folder: Path) -> tuple[Origin, Experiment]:
    source = None if frozen.source is None else Path(frozen.source)
    if source is None or not source.is_file():
        return StoreOrigin(BlobStore(folder / "blobs"), frozen.pins), pinned
    return SourceOrigin(source.parent), _settled_as(load_experiment(source), pinned)


def _settled_as(experiment: Experiment, pinned: Experiment) -> Experiment:
    """Settle `auto` and `choices` as they were frozen, where the file still allows it."""
    backend, models = experiment.workspace.backend, []
    if backend == AUTO:
        backend = pinned.workspace.backend
    frozen = {entry.name: entry for entry in pinned.models}
    for entry in experiment.models:
        way = frozen[entry.name].ways()[0] if entry.name in frozen else None
        models.append(_with_way(entry, entry.ways().index(way)) if way in entry.ways() else entry)
    return _replaced(experiment, backend, models)


def _with_way(entry: ModelEntry, index: int) -> ModelEntry:
    way = entry.ways()[index].model_dump()
    return ModelEntry(name=entry.name, rates=entry.rates, rate_card=entry.rate_card, **way)


def _replaced(experiment: Experiment, backend: str, models: Iterable[ModelEntry]) -> Experiment:
    workspace = experiment.workspace.model_copy(update={"backend": backend})
    return experiment.model_copy(update={"workspace": workspace, "models": list(models)})


async def settle(experiment: Experiment, *, say: Say) -> tuple[Experiment, dict[str, ModelIdentity]]:
    """Choose a backend for `auto`, and of each model's choices the first that answers; say what was chosen."""
    backend = experiment.workspace.backend
    if backend == AUTO:
        backend = await _settled_backend(experiment.workspace.image, say)
    models, identities = [], {}
    for entry in experiment.models:
        chosen, identities[entry.name] = await _first_model(entry, say)
        models.append(chosen)
    return _replaced(experiment, backend, models), identities


async def _settled_backend(image: str, say: Say) -> str:
    """The backend that `auto` comes to here, said aloud."""
    backend = await usable_backend(AUTO, image)
    engine = await backend.engine()
    facts = ", ".join(f"{key} {engine[key]}" for key in ("engine", "kernel") if key in engine)
    say(f"workspace: {backend.name} ({facts or 'it says no more'})")
    return backend.name


async def _first_model(entry: ModelEntry, say: Say) -> tuple[ModelEntry, ModelIdentity]:
    reasons = []
    for index, way in enumerate(entry.ways()):
        chosen = _with_way(entry, index)
        try:
            identity = await _identify(chosen)
        except ProctorError as error:
            if len(entry.ways()) == 1:
                raise
            reasons.append(f"{way.provider} {way.model}: {error}")
            continue
        say(f"model {entry.name}: {way.provider} serves {identity.served} ({identity.digest or 'no digest'})")
        return chosen, identity
    raise UsageError(f"model {entry.name!r}: none of its choices can be used:\n  " + "\n  ".join(reasons))


async def _identify(entry: ModelEntry) -> ModelIdentity:
    identity: ModelIdentity = await plugins.load("models", entry.ways()[0].provider)().identify(model_spec(entry))
    return identity


async def _register(
    parts: Parts,
    identities: Mapping[str, ModelIdentity],
    *,
    source: str | None,
    clock: Clock,
    promotions: Mapping[str, bytes] = MappingProxyType({}),
) -> Registration:
    cells, refused = _plan(parts)
    experiment = parts.experiment
    pins = {**code_pins(experiment), **case_pins(parts), **await machine_pins(parts, identities)}
    return Registration(
        name=experiment.name,
        question=experiment.question,
        experiment=experiment.model_dump(mode="json"),
        pins={**pins, **promotion_pins(experiment, promotions)},
        cells=tuple(cells),
        refused=tuple(refused),
        outlook={**outlook(cells, refused, experiment), **_flow(parts), **_controllers(parts)},
        frozen_at=now_text(clock),
        source=source,
    )


def _controllers(parts: Parts) -> dict[str, Any]:
    """On how many candidates of its population each controller fires, where there is a controller."""
    pool, units = (None, frozenset()) if parts.population is None else (parts.population.pool, parts.population.units)
    found = fire_rates(parts.arms, pool, sorted(units, key=str))
    return {"controllers": found} if found else {}


def _flow(parts: Parts) -> dict[str, Any]:
    """How the population came about, where there is one."""
    return {} if parts.population is None else {"population": parts.population.to_json()}


def _plan(parts: Parts) -> tuple[list[CellKey], list[dict[str, str]]]:
    """The cells in the order they are run, replicate by replicate so that arms are interleaved, and those refused."""
    experiment, cells, refused = parts.experiment, [], []
    for replicate in range(1, experiment.replicates + 1):
        for task in parts.tasks.values():
            for model in experiment.models:
                for extras in experiment.extras:
                    for arm in parts.arms:
                        key = CellKey(
                            benchmark=task.open.benchmark,
                            task=task.open.name,
                            arm=arm,
                            extras=extras,
                            model=model.name,
                            replicate=replicate,
                        )
                        if parts.population is not None and key.unit not in parts.population.units:
                            continue
                        if extras == "none" or extras in task.open.extras:
                            cells.append(key)
                        else:
                            why = f"the card of {task.key} carries {', '.join(sorted(task.open.extras)) or 'no extras'}"
                            refused.append({"cell": str(key), "gate": "extras", "detail": why})
    return cells, refused
