"""How a controller's options are checked when it is made: at registration, and never at their first use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from harness.errors import PluginError, unknown_name

__all__ = ["choice", "finite", "weights"]


def finite(where: str, name: str, value: object, *, high: float) -> float:
    """`value` as a finite number from 0 to `high`, or `PluginError`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise PluginError(f"{where}: {name} is {value!r}: expected a finite number")
    if not 0 <= value <= high:
        raise PluginError(f"{where}: {name} is {value!r}: expected a number from 0 to {high:g}")
    return float(value)


def weights(where: str, name: str, value: object, *, known: Mapping[str, float]) -> dict[str, float]:
    """`value` as a table of some of the `known` names, the others as they are there, or `PluginError`."""
    if not isinstance(value, Mapping):
        raise PluginError(f"{where}: {name} is {value!r}: expected a table of {', '.join(known)}")
    for key in value:
        if key not in known:
            raise PluginError(f"{where}: {name}: {unknown_name('weight', str(key), known)}")
    found = {key: finite(where, f"{name}.{key}", value.get(key, default), high=1e6) for key, default in known.items()}
    if not any(found.values()):
        raise PluginError(f"{where}: {name} are all 0, so that it never fires: expected one over 0 at least")
    return found


def choice(where: str, name: str, value: object, *, known: Sequence[str], least: int) -> tuple[str, ...]:
    """`value` as a list of at least so many different `known` names, in its own order, or `PluginError`."""
    if not isinstance(value, (list, tuple)):
        raise PluginError(f"{where}: {name} is {value!r}: expected a list of {', '.join(known)}")
    for item in value:
        if item not in known:
            raise PluginError(f"{where}: {name}: {unknown_name('name', str(item), known)}")
    if len(set(value)) != len(value) or len(value) < least:
        raise PluginError(f"{where}: {name} is {list(value)!r}: expected at least {least} different ones")
    return tuple(value)
