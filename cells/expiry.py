"""Bounds that were told once and have expired: stored output of `proctor score --json` against the sets as they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cells.bounds import DeclaredSet, expired_bounds
from harness.errors import UsageError
from harness.written import json_of

__all__ = ["expired_since", "expiry_lines"]


def expired_since(path: Path, now: Mapping[str, Any]) -> list[str]:
    """
    A line for each bound in the stored output at `path` that is of another set than the one in force `now`.

    `now` is the same output made again: of a run, whose set in force is the amended one where there is one, or of a
    declaration's readings, which are matched by name. Raises `UsageError` for a file that is no such output, and for
    one of another run.
    """
    stored = _load(path)
    try:
        if "readings" in now:
            return _of_readings(stored, now)
        return _of_run(stored, now)
    except (KeyError, TypeError, AttributeError) as error:
        kind = "--declaration" if "readings" in now else "of a run"
        raise UsageError(
            f"{path} is no output of `proctor score --json` {kind}, by its {error}: expected one that was stored"
        ) from None


def expiry_lines(path: Path, expired: list[str]) -> list[str]:
    """The same in lines for a person, who is told that all holds, too."""
    if not expired:
        return [f"every bound of {path} is of the set as it is"]
    return [
        f"{len(expired)} bounds of {path} have expired, and hold for no set of today:",
        *(f"- {one}" for one in expired),
    ]


def _load(path: Path) -> Mapping[str, Any]:
    try:
        data: Any = json_of(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} can't be read as JSON: {error}; expected what `proctor score --json` printed"
        ) from None
    if not isinstance(data, dict):
        raise UsageError(f"{path} holds no JSON object: expected what `proctor score --json` printed")
    return data


def _of_run(stored: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    if stored["registration_id"] != now["registration_id"]:
        raise UsageError(
            f"the stored scoreboard is of {stored['registration_id']}: expected one of {now['registration_id']}"
        )
    in_force = _set((now["amended"] or now)["over"])
    lines = expired_bounds(stored, in_force)
    if stored["amended"] is not None:
        lines += [f"as amended: {line}" for line in expired_bounds(stored["amended"], in_force)]
    return lines


def _of_readings(stored: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    sets = {reading["name"]: _set(reading["board"]["over"]) for reading in now["readings"]}
    lines: list[str] = []
    for reading in stored["readings"]:
        name = reading["name"]
        if name in sets:
            lines += [f"reading {name}: {line}" for line in expired_bounds(reading["board"], sets[name])]
        else:
            then = _set(reading["board"]["over"])
            lines.append(f"reading {name}: its bounds have expired: taken over {then}, and it is declared no more")
    return lines


def _set(data: Mapping[str, Any]) -> DeclaredSet:
    return DeclaredSet(digest=data["digest"], cells=data["cells"])
