"""The audits that a record keeps, as a reader of its scoreboard is told of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["audit_lines"]


def audit_lines(audits: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The verdict of each kept audit in order, none in the place of another; that there is none is said too."""
    if not audits:
        yield "Audit verdict: none is kept in this record; `proctor audit --keep` appends one."
    for number, audit in enumerate(audits, start=1):
        found = [f"{name} {count}" for name, count in audit["by_invariant"].items() if count]
        what = f", findings: {', '.join(found)}" if found else ""
        yield f"Audit verdict {number} of {len(audits)}: {audit['verdict']}, read up to head {audit['head']}{what}."
