"""The walls that a positive control takes down, one at a time, and how a row of the probe table names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

from harness.views import Fence
from harness.walls import Mount

__all__ = [
    "ANY_CALL",
    "HOST_PIDS",
    "KEEPER_NOT_APART",
    "NEW_PRIVILEGES",
    "ROOT",
    "UNCONFINED",
    "UNMASKED",
    "WRITABLE_ROOT",
    "NotMeasuredError",
    "described",
    "mounted",
    "rules_changed",
    "walls_changed",
    "with_capability",
]


UNCONFINED: Mapping[str, Any] = MappingProxyType(
    {"keep_capabilities": True, "new_privileges": True, "system_calls": "any", "masked": False, "run_as_root": True}
)
"""Root with capabilities, and the filter of system calls taken down with them."""

NEW_PRIVILEGES: Mapping[str, Any] = MappingProxyType({"new_privileges": True})
"""Set-user-id programs work."""

HOST_PIDS: Mapping[str, Any] = MappingProxyType({"host_namespaces": ("pid",)})
"""The host's own process tree."""

ANY_CALL: Mapping[str, Any] = MappingProxyType({"system_calls": "any"})
"""The filter of system calls alone."""

KEEPER_NOT_APART: Mapping[str, Any] = MappingProxyType({"keeper_apart": False})
"""The first process runs as the seat's own user."""

ROOT: Mapping[str, Any] = MappingProxyType({"run_as_root": True})
"""Programs run as root, with whatever else holds them."""

UNMASKED: Mapping[str, Any] = MappingProxyType({"masked": False})
"""All that /proc and /sys tell of the host."""

WRITABLE_ROOT: Mapping[str, Any] = MappingProxyType({"read_only_root": False, "run_as_root": True})
"""Root on a root file system that can be written."""


class NotMeasuredError(Exception):
    """
    A probe's `weaken` raises it where this host has nothing to expose, with the reason.

    The row then says "not measured": such a probe can't vouch, and a policy may require that it does.
    """


def with_capability(name: str) -> Mapping[str, Any]:
    """Root with one capability, and no filter in the way of what it is for."""
    return MappingProxyType({"capabilities": (name,), "system_calls": "any", "run_as_root": True})


def walls_changed(fence: Fence, **changes: Any) -> Fence:
    """The fence with some of its walls changed; the fields are those of `Walls`."""
    return replace(fence, walls=replace(fence.walls, **changes))


def rules_changed(fence: Fence, **changes: Any) -> Fence:
    """The fence with some of its tool rules changed; the fields are those of `ToolRules`."""
    return replace(fence, rules=replace(fence.rules, **changes))


def mounted(fence: Fence, source: str, *, target: str | None = None, read_only: bool = True) -> Fence:
    """The fence with the host's path `source` shown in the workspace, under the same name unless `target` is given."""
    mount = Mount(source=source, target=target or source, read_only=read_only)
    return walls_changed(fence, mounts=(*fence.walls.mounts, mount))


def described(strict: Fence, weak: Fence) -> str:
    """What was taken down, in words that are the same for every run: no path, address or value of this one."""
    said = []
    layers = (
        ("", strict.walls, weak.walls),
        ("caps.", strict.walls.caps, weak.walls.caps),
        ("rules.", strict.rules, weak.rules),
        ("gateway.", strict.gateway, weak.gateway),
    )
    for layer, before, after in layers:
        for item in fields(after):
            old, new = getattr(before, item.name), getattr(after, item.name)
            if old != new and item.name != "caps":
                shown = f"={_shown(new)}" if isinstance(new, bool | str | tuple) and _shown(new) else ""
                said.append(f"{layer}{item.name}{shown}")
    said += [f"without {guard}" for guard in weak.lifted if guard not in strict.lifted]
    return ", ".join(said) or "nothing"


def _shown(value: object) -> str:
    """A value that is the same for every run: a tuple only if it holds plain words, such as names of capabilities."""
    if isinstance(value, tuple):
        plain = all(isinstance(item, str) and "/" not in item for item in value)
        return ",".join(value) if plain else ""
    return str(value)
