"""A discovery and its confirmation are read side by side and never as one set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from cells.promotion.links import confirmations_beside
from harness.errors import DeclarationError

__all__ = ["refuse_pooled"]


class _Set(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def cells(self) -> Sequence[tuple[str, str]]: ...


def refuse_pooled(sets: Iterable[_Set], folders: Iterable[Path]) -> None:
    """
    Raise `DeclarationError` for a set with cells of a run and of one that it confirms, directly or by another between.

    What confirms what is read from the run `folders` and the registrations beside them. O(cells) if anything does.
    """
    lineage = _lineage(folders)
    for each in sets if lineage else ():
        runs = {run for run, _id in each.cells}
        for run in sorted(runs & lineage.keys()):
            for discovery in sorted(runs & lineage[run]):
                raise DeclarationError(
                    f"reading {each.name!r} has cells of the discovery {discovery} and of {run}, which confirms an "
                    "effect of it: they are never pooled. Expected a reading for each, side by side"
                )


def _lineage(folders: Iterable[Path]) -> Mapping[str, frozenset[str]]:
    """By run, all that it confirms, and all that those confirm."""
    direct: dict[str, set[str]] = {}
    near = {folder.resolve().parent: folder for folder in folders}
    for folder in near.values():
        for each in confirmations_beside(folder):
            direct.setdefault(each.id, set()).update(each.discoveries)
    return {run: frozenset(_all(run, direct, set())) for run in direct}


def _all(run: str, direct: Mapping[str, set[str]], known: set[str]) -> set[str]:
    for discovery in direct.get(run, set()) - known:
        known.add(discovery)
        _all(discovery, direct, known)
    return known
