"""
The one door for built-ins and third parties: an entry-point group a kind.

A taken name is an error, a plugin that does not load stops whatever asked for it, and each plugin is known by its
distribution, version and the digest of its source, all of which a registration pins.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from harness.canonical import digest_bytes, digest_json
from harness.code import ROOMS
from harness.errors import PluginError, unknown_name

__all__ = ["KINDS", "Kind", "PluginInfo", "load", "table"]

Kind: TypeAlias = Literal["arms", "referees", "probes", "seats", "models", "workspaces"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class PluginInfo:
    """Where a plugin comes from. `target` is `module:attribute`."""

    kind: Kind
    name: str
    target: str
    distribution: str
    version: str

    def source_digest(self) -> str:
        """
        SHA-256 over the source that the plugin is made of: its module where that is one of Proctor's own (all of whose
        code is pinned beside it), else every file of its top-level package.
        """
        module = self.target.partition(":")[0]
        top = module.partition(".")[0]
        module = module if top in ROOMS else top
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None:
            raise PluginError(f"{self.kind} plugin {self.name!r}: module {module!r} is not found")
        origin = Path(spec.origin)
        if spec.submodule_search_locations is None:
            return digest_bytes(origin.read_bytes())
        files = sorted(path for path in origin.parent.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return digest_json(
            {path.relative_to(origin.parent).as_posix(): digest_bytes(path.read_bytes()) for path in files}
        )


def _info(kind: Kind, point: EntryPoint) -> PluginInfo:
    dist = point.dist
    return PluginInfo(
        kind=kind,
        name=point.name,
        target=point.value,
        distribution=dist.name if dist is not None else "unknown",
        version=dist.version if dist is not None else "unknown",
    )


@cache
def table(kind: Kind) -> Mapping[str, PluginInfo]:
    """All plugins of a kind by name. Raises `PluginError` when two distributions claim one name."""
    found: dict[str, PluginInfo] = {}
    for point in entry_points(group=f"proctor.{kind}"):
        info = _info(kind, point)
        known = found.get(info.name)
        if known is not None and known != info:
            raise PluginError(
                f"{kind} name {info.name!r} is taken twice: by {known.distribution} ({known.target}) and by "
                f"{info.distribution} ({info.target}). Uninstall one of them, or rename its entry point."
            )
        found[info.name] = info
    return dict(sorted(found.items()))


def load(kind: Kind, name: str) -> Any:
    """
    The callable that makes plugin `name`. Raises `PluginError` when it is unknown or can't be imported.

    A probe, model provider or workspace backend is made with no argument, a referee with the mapping of its options, a
    seat with its options as keyword arguments, and so an arm that an experiment gives any.
    """
    known = table(kind)
    if name not in known:
        raise PluginError(unknown_name(kind.removesuffix("s"), name, known))
    info = known[name]
    point = EntryPoint(name=name, value=info.target, group=f"proctor.{kind}")
    try:
        made = point.load()
    except Exception as error:  # whatever a plugin's import raises, the answer is the same: stop, and say which one
        raise PluginError(
            f"{kind} plugin {name!r} ({info.target}, from {info.distribution} {info.version}) does not load: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not callable(made):
        raise PluginError(f"{kind} plugin {name!r} ({info.target}) is {type(made).__name__}: expected a callable")
    return made
