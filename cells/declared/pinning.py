"""A digest of what a cell's rows say, so that a row which is changed after it was declared is found by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from cells.declared.rows import ForeignCell
from harness.canonical import digest_json

__all__ = ["row_digest"]

SHOWN = 16
"""Digits of a row's digest: enough for a row among those of one cell, and short enough to stand in a list."""


def row_digest(rows: Sequence[ForeignCell]) -> str:
    """The first sixteen digits of the SHA-256 of all that is counted of a cell's tries. Labels are no part of it."""
    tries = []
    for row in sorted(rows, key=lambda item: item.attempt):
        said = asdict(row)
        del said["labels"]
        tries.append(said)
    return digest_json(tries)[:SHOWN]
