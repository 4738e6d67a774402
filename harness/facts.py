"""Facts of the public tests as JSON data, in transcripts and pools: what is not told has no key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from harness.views import Fact

__all__ = ["facts_json"]


def facts_json(facts: Iterable[Fact]) -> list[dict[str, Any]]:
    """
    Each fact's `call` and `expected`, and what the candidate did instead where that is told: `observed`, `raised` or
    `ended`. `Fact(**one)` gives each again.
    """
    return [{key: value for key, value in asdict(fact).items() if value is not None} for fact in facts]
