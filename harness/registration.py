"""
The registration: the frozen experiment, with a digest of everything that its result depends on.

Its id is taken over all that it pins and not over when or where it was frozen, so freezing the same thing twice gives
the same id. Nothing in it is ever edited; the first line of the record hangs on the digest of its bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from harness.canonical import Json, canonical_bytes, canonical_object, digest_bytes, digest_json
from harness.errors import DriftError, IntegrityError
from harness.values import CellKey

__all__ = ["Registration", "drift", "load_registration", "refuse_drift", "save_registration"]

SCHEMA = "proctor-registration/1"

_PARTS = tuple(sorted(item.name for item in fields(CellKey)))
_parts = attrgetter(*_PARTS)
_CELL = canonical_object(dict.fromkeys(_PARTS, b"%b"))
"""A cell's canonical bytes, with a place for those of each part."""


@lru_cache(maxsize=1 << 16, typed=True)
def _written(part: str | int) -> bytes:
    """The canonical bytes of a part of a cell: parts are few and cells are many."""
    return canonical_bytes(part)


@dataclass(frozen=True, kw_only=True)
class Registration:
    """
    `experiment` is the file's content with every default written out, and what `auto` was resolved to; `pins` maps a
    plain name of each thing pinned ("arm B", "image", "task quickstart/Quick/0") to a digest or to facts; `cells` are
    the declared cells in the order of the plan, `refused` those that a gate does not let be built; `outlook` is what
    was computable before the first call (cell counts, the best p-value that each registered test can reach).
    `repository` tells the git commit that the experiment file stood in, and what of it was not committed.
    """

    name: str
    question: str
    experiment: Mapping[str, Any]
    pins: Mapping[str, Any]
    cells: tuple[CellKey, ...]
    refused: tuple[Mapping[str, str], ...]
    outlook: Mapping[str, Any]
    frozen_at: str
    source: str | None
    repository: Mapping[str, Any] | None = None

    @cached_property
    def _content(self) -> dict[str, bytes]:
        """The canonical bytes of all that is pinned, by name: the id is taken over them, and they are on disk."""
        content: dict[str, Json] = {
            "schema": SCHEMA,
            "name": self.name,
            "question": self.question,
            "experiment": dict(self.experiment),
            "pins": dict(self.pins),
            "refused": [dict(row) for row in self.refused],
            "outlook": dict(self.outlook),
        }
        cells = b",".join([_CELL % tuple(map(_written, _parts(cell))) for cell in self.cells])
        return {name: canonical_bytes(value) for name, value in content.items()} | {"cells": b"[%b]" % cells}

    @cached_property
    def id(self) -> str:
        """The experiment's name and the first 12 digits of the digest of all that is pinned."""
        return f"{self.name}-{digest_bytes(canonical_object(self._content))[:12]}"

    def to_bytes(self) -> bytes:
        """The canonical bytes that are on disk."""
        where: dict[str, Any] = {"id": self.id, "frozen_at": self.frozen_at, "source": self.source}
        if self.repository is not None:
            where["repository"] = dict(self.repository)
        return canonical_object(self._content | {name: canonical_bytes(value) for name, value in where.items()})

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the bytes on disk: the record's first `prev`."""
        return digest_bytes(self.to_bytes())


def save_registration(folder: Path, registration: Registration) -> Path:
    """Write `registration.json` once; a file that is there already must hold the same registration."""
    path = folder / "registration.json"
    if path.exists():
        if load_registration(folder).id != registration.id:
            raise DriftError(f"{path} holds another registration: nothing frozen is ever edited, choose another folder")
        return path
    folder.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".new")
    with scratch.open("wb") as file:
        file.write(registration.to_bytes())
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
    return path


def load_registration(folder: Path) -> Registration:
    """Read a run's registration. Raises `IntegrityError` when its bytes are not what its id and form say."""
    path = folder / "registration.json"
    try:
        raw = path.read_bytes()
        data = json.loads(raw)
        registration = Registration(
            name=data["name"],
            question=data["question"],
            experiment=data["experiment"],
            pins=data["pins"],
            cells=tuple(CellKey(**cell) for cell in data["cells"]),
            refused=tuple(data["refused"]),
            outlook=data["outlook"],
            frozen_at=data["frozen_at"],
            source=data["source"],
            repository=data.get("repository"),
        )
    except FileNotFoundError:
        raise IntegrityError(f"{path} is missing: expected a run folder, made by `proctor freeze`") from None
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise IntegrityError(f"{path} is damaged: {type(error).__name__}: {error}") from None
    if data.get("id") != registration.id or registration.to_bytes() != raw:
        raise IntegrityError(f"{path} was edited: its content has id {registration.id}, it says {data.get('id')}")
    return registration


def drift(frozen: Registration, now: Registration) -> list[str]:
    """Every pin, setting and cell of `frozen` that is not what it was, a sentence each."""
    changed = [
        f"{name}: {_moved(frozen.pins.get(name), now.pins.get(name))}"
        for name in sorted({*frozen.pins, *now.pins})
        if frozen.pins.get(name) != now.pins.get(name)
    ]
    if dict(frozen.experiment) != dict(now.experiment):
        keys = sorted({*frozen.experiment, *now.experiment})
        differ = [key for key in keys if frozen.experiment.get(key) != now.experiment.get(key)]
        changed.append(f"experiment file: {', '.join(differ)}")
    if frozen.cells != now.cells or frozen.refused != now.refused:
        changed.append(f"cell list: {len(frozen.cells)} cells frozen, {len(now.cells)} now")
    if not changed and frozen.id != now.id:
        changed.append("its outlook (counts and attainable p-values)")
    return changed


def refuse_drift(frozen: Registration, now: Registration) -> None:
    """Raise `DriftError` that names what is not as it was frozen."""
    changed = drift(frozen, now)
    if not changed:
        return
    shown = changed if len(changed) <= 20 else [*changed[:20], f"... and {len(changed) - 20} more"]
    raise DriftError(
        f"registration {frozen.id} no longer holds:\n  "
        + "\n  ".join(shown)
        + "\nPut back what changed, or freeze again: that makes a new registration beside this one."
    )


def _moved(was: Any, is_now: Any) -> str:
    """What a pin was and is: of two tables, the parts that differ."""
    if isinstance(was, Mapping) and isinstance(is_now, Mapping):
        parts = sorted(key for key in {*was, *is_now} if was.get(key) != is_now.get(key))
        was, is_now = ({key: pin.get(key) for key in parts} for pin in (was, is_now))
    return f"frozen as {_short(was)}, is now {_short(is_now)}"


def _short(pin: Any) -> str:
    if isinstance(pin, Mapping):
        return ", ".join(f"{key} {_short(pin[key])}" for key in pin)
    if pin is None:
        return "absent"
    text = pin if isinstance(pin, str) else canonical_bytes(pin).decode()
    return text if len(text) <= 80 else f"{text[:60]}... (sha256 {digest_json(pin)[:12]})"
