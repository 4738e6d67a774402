"""Which characterisation of a suite counts, where a record has several of one task's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["counting"]

_UNSAID = frozenset({"not measured", "not told", "UNSCORABLE"})
"""What says nothing of a suite: the machine's doing, as far as anybody knows."""


def counting(earlier: Mapping[str, Any] | None, later: dict[str, Any]) -> dict[str, Any]:
    """
    The latest counts, unless an earlier one saw what no repetition can take back: a wrong verdict, or two verdicts on
    one candidate. Else a check would be repeated until it holds. What merely was not measured, a later one may measure.
    """
    return dict(earlier) if earlier is not None and _seen(earlier) else later


def _seen(body: Mapping[str, Any]) -> bool:
    """Whether the suite was seen not to hold."""
    bad = (row for row in body["rows"] if not row["holds"] and row["kind"] != "generated")
    flaky = (set(item["readings"]) - _UNSAID for item in body["flaky"])
    return any(row["word"] not in _UNSAID for row in bad) or any(len(readings) > 1 for readings in flaky)
