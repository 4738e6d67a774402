"""How units are called in a sentence."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Labels"]


class Labels:
    """Names units: by the task alone where benchmark and model are the same in all."""

    def __init__(self, units: Iterable[str]) -> None:
        self._bare = len({unit.rpartition("|")[0] for unit in units}) <= 1

    def of(self, unit: str) -> str:
        """What the unit is called."""
        return unit.rpartition("|")[2] if self._bare else unit
