"""The plain facts as a controller: a sub-action of the bandit, worded as `TC` words them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arms.controllers.port import Seen
from harness.mirror import FACT_LINE, MOST_FACTS

__all__ = ["PlainFacts"]


class PlainFacts:
    """The violated assertions in their order. It fires where there is one."""

    name = "plain-facts"
    lacks: str | None = None
    claims: frozenset[str] = frozenset()
    templates: Mapping[str, str] = {"fact": FACT_LINE}
    settings: Mapping[str, Any] = {}

    def lines(self, given: Seen) -> Sequence[str] | None:
        """A line for each of at most six facts; None without one."""
        return [FACT_LINE.format(call=fact.call, expected=fact.expected) for fact in given.facts[:MOST_FACTS]] or None
