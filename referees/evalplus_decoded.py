"""
A record as it was decoded once: its calls as a candidate's process gets them, kept for later runs.

It lies below the state folder, under a name that says what it was made of, and is as trusted as the expected values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from harness import environment
from harness.kept_file import read_kept, write_kept

__all__ = ["TIERS", "Decoded", "Tier", "keep", "recall"]

Tier: TypeAlias = Literal["public", "hidden"]
TIERS: tuple[Tier, Tier] = ("public", "hidden")
_HEAD = ("task_id", "entry_point", "reference", "prelude", "atol", "counts")


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """What a suite is made of, beside the options. `inputs` are the calls of each tier, `counts` how many they are."""

    task_id: str
    entry_point: str
    reference: str
    prelude: str
    atol: float
    inputs: Mapping[Tier, bytes]
    counts: Mapping[Tier, int]


def recall(name: str) -> Decoded | None:
    """What was kept under `name`, or None if nothing whole is there."""
    data = read_kept(_path(name))
    if data is None:
        return None
    head, _, body = data.partition(b"\n")
    told = json.loads(head)
    public = told.pop("public_bytes")
    return Decoded(**told, inputs={"public": body[:public], "hidden": body[public:]})


def keep(name: str, decoded: Decoded) -> None:
    """Keep `decoded` for `recall`."""
    public, hidden = (decoded.inputs[tier] for tier in TIERS)
    head = {key: getattr(decoded, key) for key in _HEAD}
    write_kept(_path(name), json.dumps({**head, "public_bytes": len(public)}).encode() + b"\n" + public + hidden)


def _path(name: str) -> Path:
    return environment.state_home() / "decoded" / name
