"""The embedded models that are known by name, and where the file of a model is on this machine."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import Field, TypeAdapter

from harness import environment
from harness.errors import ExperimentError, unknown_name
from harness.messages import ModelSpec
from harness.models.options import Strict

__all__ = ["Entry", "ModelFile", "Wheel", "catalogue", "entry", "model_file", "stored_path"]

FILE_SCHEME = "file:"


class Wheel(Strict):
    """A wheel of the package index that carries a model's file as plain data."""

    requirement: str = Field(pattern=r"^[A-Za-z0-9._-]+==[0-9A-Za-z.]+$")
    member: str


class Entry(Strict):
    """One model: its file, pinned by SHA-256 and size in bytes, and where it may be had from."""

    name: str
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    bytes: int = Field(gt=0)
    licence: str
    chat_format: str
    context_length: int = Field(gt=0)
    hub: str | None = None
    wheel: Wheel | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFile:
    """A model's file on this machine; `entry` is None for a file of the user's own."""

    served: str
    path: Path
    entry: Entry | None


@cache
def catalogue() -> Mapping[str, Entry]:
    """All entries by name."""
    tables = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
    entries = TypeAdapter(list[Entry]).validate_python([{"name": name, **table} for name, table in tables.items()])
    return {each.name: each for each in entries}


def entry(name: str) -> Entry:
    """The entry of a name. Raises `ExperimentError` that names the nearest one, and all of them."""
    known = catalogue()
    if name not in known:
        hint = "A file of your own is named as file:/path/to/model.gguf."
        raise ExperimentError(f"{unknown_name('embedded model', name, known)} {hint}")
    return known[name]


def stored_path(wanted: Entry) -> Path:
    """Where the file of an entry is kept, whether or not it is there."""
    return environment.state_home() / "models" / f"{wanted.sha256}.gguf"


def model_file(spec: ModelSpec) -> ModelFile:
    """
    The file of `spec.model`: a name of the catalogue, or `file:` and an absolute path.

    Raises `ExperimentError` for a name that is unknown and for a file that is not there.
    """
    if spec.model.startswith(FILE_SCHEME):
        path = Path(spec.model.removeprefix(FILE_SCHEME))
        if not path.is_absolute():
            raise ExperimentError(f"model {spec.name!r}: {spec.model!r} is no absolute path: expected file:/path.gguf")
        if not path.is_file():
            raise ExperimentError(f"model {spec.name!r}: there is no file {path}")
        return ModelFile(served=path.name, path=path, entry=None)
    wanted = entry(spec.model)
    path = stored_path(wanted)
    if not path.is_file():
        raise ExperimentError(
            f"model {spec.name!r}: the file of {wanted.name} ({wanted.bytes / 1e6:.0f} MB, {wanted.licence}) is not on "
            f"this machine: fetch it with `proctor model fetch {wanted.name}`, or put it at {path}"
        )
    return ModelFile(served=wanted.name, path=path, entry=wanted)
