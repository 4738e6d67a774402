"""What a probe table was taken for: rows count for this very fence, image, engine, node and set of probes only."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fences.policy import FencePolicy
from fences.rendering import layer_digests
from harness.canonical import digest_bytes, digest_json
from harness.code import code_digest
from harness.errors import PluginError
from harness.plugins import load, table
from harness.ports import Probe, WorkspaceBackend
from harness.values import STRICT

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["Receipt", "node", "probes_digest", "receipt_from_json", "registered_probes", "take_receipt"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """
    The digests of the policy, of what it renders to on this backend, of the image, of the probes' sources and of
    Proctor's own code; what the engine says of itself and does not enforce (each guarantee: None, or why); the machine.
    """

    __pydantic_config__ = STRICT

    policy: str
    walls: str
    image: str
    backend: str
    engine: Mapping[str, str]
    guarantees: Mapping[str, str | None]
    node: str
    probes: str
    code: str

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical receipt."""
        return digest_json(self.to_json())

    def to_json(self) -> dict[str, object]:
        """The receipt as JSON data, for the record."""
        return {
            "policy": self.policy,
            "walls": self.walls,
            "image": self.image,
            "backend": self.backend,
            "engine": dict(self.engine),
            "guarantees": dict(self.guarantees),
            "node": self.node,
            "probes": self.probes,
            "code": self.code,
        }

    def differences(self, other: Receipt) -> tuple[str, ...]:
        """What differs, each as `field: this one's, not the other's`."""
        mine, theirs = self.to_json(), other.to_json()
        return tuple(f"{key}: {mine[key]!r}, not {theirs[key]!r}" for key in mine if mine[key] != theirs[key])


@cache
def _adapter() -> TypeAdapter[Receipt]:
    from pydantic import TypeAdapter

    return TypeAdapter(Receipt)


def receipt_from_json(data: Any) -> Receipt:
    """The receipt that a record or a kept table holds. Raises pydantic's `ValidationError` for anything else."""
    return _adapter().validate_python(data)


def registered_probes() -> tuple[Probe, ...]:
    """Every probe of the plugin table, by name. Raises `PluginError` for one that calls itself something else."""
    made: list[Probe] = []
    for name, info in table("probes").items():
        probe: Probe = load("probes", name)()
        if probe.name != name:
            raise PluginError(f"probe {name!r} ({info.target}) calls itself {probe.name!r}: expected the same name")
        made.append(probe)
    return tuple(made)


def probes_digest() -> str:
    """SHA-256 over the source of every registered probe and of the room that weighs what they bring back."""
    room = Path(__file__).parent
    return digest_json(
        {
            "probes": {name: [info.target, info.source_digest()] for name, info in table("probes").items()},
            "room": {path.name: digest_bytes(path.read_bytes()) for path in sorted(room.glob("*.py"))},
        }
    )


def node() -> str:
    """The machine as receipts and sessions name it: its name, system, kernel and architecture."""
    return f"{platform.node()} {platform.system()} {platform.release()} {platform.machine()}"


async def take_receipt(backend: WorkspaceBackend, policy: FencePolicy, image: str) -> Receipt:
    """The receipt of a table that would be taken here and now."""
    return Receipt(
        policy=policy.digest,
        walls=digest_json(layer_digests(policy, image, backend)),
        image=await backend.image_digest(image),
        backend=backend.name,
        engine=dict(await backend.engine()),
        guarantees=dict(await backend.guarantees()),
        node=node(),
        probes=probes_digest(),
        code=code_digest(),
    )
