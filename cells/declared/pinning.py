"""A digest of what a cell's rows say, so that a row which is changed after it was declared is found by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, is_dataclass

from cells.declared.rows import ForeignCell
from harness.canonical import digest_json

__all__ = ["pinned_names", "row_digest"]

SHOWN = 16
"""Digits of a row's digest: enough for a row among those of one cell, and short enough to stand in a list."""


def row_digest(rows: Sequence[ForeignCell]) -> str:
    """The first sixteen digits of the SHA-256 of all that is counted of a cell's tries. Labels are no part of it."""
    tries = []
    for row in sorted(rows, key=lambda item: item.attempt):
        said = {item.name: getattr(row, item.name) for item in fields(row) if item.name not in {"cell", "labels"}}
        plain = {
            name: asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
            for name, value in said.items()
        }
        tries.append({**row.cell._asdict(), **plain})
    return digest_json(tries)[:SHOWN]


def pinned_names(cells: Iterable[ForeignCell]) -> str:
    """The text of a `cells_file`: the name of each cell and, after a tab, the digest of its rows."""
    rows: dict[str, list[ForeignCell]] = {}
    for cell in cells:
        rows.setdefault(str(cell.cell), []).append(cell)
    return "".join(f"{name}\t{row_digest(of_cell)}\n" for name, of_cell in rows.items())
