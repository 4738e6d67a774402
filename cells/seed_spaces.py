"""Namespaces of seeds: no two experiments of a runs folder draw from one, nor from two that could be confused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from harness.errors import GateRefused, IntegrityError
from harness.registration import Registration
from harness.seeds import spaces_clash

__all__ = ["refuse_shared_namespace"]


def refuse_shared_namespace(runs: Path, registration: Registration) -> None:
    """
    Raise `GateRefused` (gate `seeds`) when another run below `runs` has drawn from a namespace like the registration's.

    A registration that was frozen and never run has drawn nothing and is in nobody's way. Raises `IntegrityError` for
    one that was run and can't be read.
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
            yield _named(path)


def _named(path: Path) -> tuple[str, str]:
    """The id and namespace of one. What it has drawn can't be told of one that is damaged, so it is not passed over."""
    try:
        content = json.loads(path.read_bytes())
        return content["id"], content["experiment"]["seat"]["seed_namespace"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise IntegrityError(
            f"{path} is damaged: {type(error).__name__}: {error}. Which seeds that run has drawn can't be told: put "
            "the file back, or choose another folder of runs"
        ) from None
