"""Readings side by side as JSON data, for scripts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from cells.declared.side_by_side import DeclaredReading, SideBySide
from cells.readings import scoreboard_to_json

__all__ = ["side_by_side_to_json"]


APART = {"board", "found"}
"""Fields of a reading that are told in their own way, or are the cells themselves."""


def side_by_side_to_json(found: SideBySide) -> dict[str, Any]:
    """All that was found; each reading's `board` is a scoreboard as `proctor score RUN --json` prints one."""
    return {
        "question": found.question,
        "declaration": found.declaration,
        "sources": dict(found.sources),
        "final": found.final,
        "accords": [asdict(accord) | {"whole": accord.whole} for accord in found.accords],
        "elsewhere": list(found.elsewhere),
        "left_out": dict(found.left_out),
        "remarks": list(found.remarks),
        "readings": [_reading(reading) for reading in found.readings],
    }


def _reading(reading: DeclaredReading) -> dict[str, Any]:
    data = {item.name: getattr(reading, item.name) for item in fields(reading) if item.name not in APART}
    plain = {name: dict(value) if isinstance(value, Mapping) else value for name, value in data.items()}
    return {**plain, "status": reading.board.status, "board": scoreboard_to_json(reading.board)}
