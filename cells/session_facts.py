"""What a session's first line says of the machine and the code that play it: to be held against the registration."""

from __future__ import annotations

import platform
from typing import Any, cast

from cells.house import House
from fences.receipt import node
from harness import plugins
from harness.code import code_digest, proctor_version

__all__ = ["PLUGIN", "session_facts"]

PLUGIN = "plugin "
"""What the name of a plugin's pin begins with."""


async def session_facts(house: House) -> dict[str, Any]:
    """Versions and digests of what is here now, whatever the registration says of it, and the engine's own word."""
    backend = house.parts.backend
    pinned = [name.removeprefix(PLUGIN) for name in house.registration.pins if name.startswith(PLUGIN)]
    return {
        "proctor": proctor_version(),
        "code": code_digest(),
        "python": platform.python_version(),
        "node": node(),
        "backend": backend.name,
        "engine": dict(await backend.engine()),
        "guarantees": dict(await backend.guarantees()),
        "plugins": {name: _plugin(name) for name in pinned},
    }


def _plugin(name: str) -> dict[str, str | None] | None:
    """The distribution, version and source of the plugin `kind/name`, as a registration pins them; None without it."""
    kind, _, short = name.partition("/")
    info = plugins.table(cast("plugins.Kind", kind)).get(short)
    if info is None:
        return None
    return {"distribution": info.distribution, "version": info.version, "sha256": info.source_digest()}
