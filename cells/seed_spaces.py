"""Namespaces of seeds: no two experiments of a runs folder draw from one, nor from two that could be confused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from harness.errors import GateRefused
from harness.registration import Registration
from harness.seeds import spaces_clash

__all__ = ["refuse_shared_namespace"]


def refuse_shared_namespace(runs: Path, registration: Registration) -> None:
    """
    Raise `GateRefused` (gate `seeds`) when another run below `runs` has drawn from a namespace like the registration's.

    A registration that was frozen and never run has drawn nothing and is in nobody's way.
    """
    ours = registration.experiment["seat"]["seed_namespace"]
    for name, theirs in _drawn_from(runs):
        if name != registration.id and spaces_clash(ours, theirs):
            like = "the namespace" if ours == theirs else f"too like {theirs!r} (one begins with the other), that"
            raise GateRefused(
                "seeds",
                f"seat.seed_namespace {ours!r} is {like} of {name}, which has been run: expected one that no other run "
                "has drawn from. Choose another, or another folder of runs",
            )


def _drawn_from(runs: Path) -> Iterator[tuple[str, str]]:
    """The id and namespace of every registration below `runs` that has a record."""
    for path in sorted(runs.glob("*/registration.json")):
        if (path.parent / "record.jsonl").exists():
            content = json.loads(path.read_bytes())
            yield content["id"], content["experiment"]["seat"]["seed_namespace"]
