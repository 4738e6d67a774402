"""What a registration pins: our own code and plugins, arms, tasks and suites, and the machine that cells run on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cells.arm_making import registered_names
from cells.parts import Parts
from cells.price_lists import card_pins
from fences.rendering import layer_digests
from harness import plugins
from harness.arm_folder import files_of
from harness.blobs import BlobStore
from harness.canonical import digest_bytes, digest_json
from harness.casebook import keep_task
from harness.code import code_digest, proctor_version
from harness.errors import PluginError
from harness.experiment import Experiment
from harness.messages import ModelIdentity
from harness.ports import Arm
from harness.tasks.profiles import profile

__all__ = ["case_pins", "code_pins", "machine_pins"]


def code_pins(experiment: Experiment) -> dict[str, Any]:
    """Proctor's own code, and each plugin that takes part, with where it comes from."""
    pins: dict[str, Any] = {"code": {"sha256": code_digest(), "version": proctor_version()}}
    wanted: list[tuple[plugins.Kind, str]] = [
        ("seats", experiment.seat.kind),
        ("referees", experiment.referee.name),
        ("workspaces", experiment.workspace.backend),
        *(("models", entry.ways()[0].provider) for entry in experiment.models),
        *(("arms", name) for name in registered_names(experiment.arms)),
        *(("probes", name) for name in plugins.table("probes")),
    ]
    for kind, name in wanted:
        info = plugins.table(kind)[name]
        pins[f"plugin {kind}/{name}"] = {
            "distribution": info.distribution,
            "version": info.version,
            "target": info.target,
            "sha256": info.source_digest(),
        }
    return pins


def case_pins(parts: Parts) -> dict[str, Any]:
    """Arms byte by byte, both halves of each task, and its suite as the referee knows it."""
    pins: dict[str, Any] = {
        f"arm {name}": {"sha256": digest_bytes(arm.content), "bytes": len(arm.content), **_file_pins(arm, parts)}
        for name, arm in parts.arms.items()
    }
    pins |= card_pins(parts.cards)
    if parts.population is not None:
        entry = parts.population.entry
        pins[f"pool {entry.pool}"] = {"sha256": entry.sha256, "header": digest_json(dict(parts.population.pool.header))}
    pins |= {f"profile {name}": profile(name).to_json() for name in _profiles(parts.experiment)}
    nowhere = _NoStore()
    for key, task in parts.tasks.items():
        pins[f"task {key}"] = asdict(keep_task(nowhere, task))
        pins[f"suite {key}"] = _suite_pin(key, dict(parts.referee.suite(task.sealed)))
    return pins


def _file_pins(arm: Arm, parts: Parts) -> dict[str, Any]:
    """The digest of every file of an arm that is a folder, and of the corpus of one that has one."""
    files, corpus = files_of(arm), parts.corpora.get(arm.name)
    pins: dict[str, Any] = {} if corpus is None else {"corpus": digest_bytes(corpus)}
    if files is not None:
        pins["files"] = {path: digest_bytes(data) for path, data in sorted(files.items())}
    return pins


def _suite_pin(key: str, suite: Mapping[str, Any]) -> dict[str, str]:
    """The digest that verdicts name as their suite, and one over all that the referee says of it."""
    named = suite.get("digest")
    if not isinstance(named, str) or not named:
        raise PluginError(f"the referee's suite of {key} has digest {named!r}: expected the text that verdicts carry")
    return {"digest": named, "sha256": digest_json(suite)}


def _profiles(experiment: Experiment) -> list[str]:
    """The named parts of benchmarks that its tasks are taken from."""
    return sorted({entry.profile for entry in experiment.tasks if entry.profile is not None})


class _NoStore(BlobStore):
    """Gives the digests that a store would, and keeps nothing."""

    def __init__(self) -> None:
        super().__init__(Path())

    def put(self, data: bytes) -> str:
        return digest_bytes(data)


async def machine_pins(parts: Parts, identities: Mapping[str, ModelIdentity]) -> dict[str, Any]:
    """The image's content, the policy and what it renders to, and each model as its server names it."""
    image = parts.experiment.workspace.image
    pins: dict[str, Any] = {
        "image": {"name": image, "digest": await parts.backend.image_digest(image)},
        "policy": parts.policy.digest,
        **layer_digests(parts.policy, image, parts.backend),
        "seat options": dict(parts.seat.options()),
    }
    for name in sorted({parts.judging_image(task) for task in parts.tasks.values()} - {image}):
        pins[f"judging image {name}"] = {"digest": await parts.backend.image_digest(name)}
    for name, identity in identities.items():
        pins[f"model {name}"] = {"served": identity.served, "digest": identity.digest}
        if pins["seat options"].get("max_prompt_tokens") is not None:
            pins[f"prompt count {name}"] = {"by": identity.prompt_count}
    return pins
