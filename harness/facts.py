"""What public tests tell as JSON data, in transcripts and pools: what is not told has no key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from harness.views import Fact, PublicReading

__all__ = ["facts_json", "unbuilt_json"]


def facts_json(facts: Iterable[Fact]) -> list[dict[str, Any]]:
    """
    Each fact's `call` and `expected`, and what the candidate did instead where that is told: `observed`, `raised` or
    `ended`. `Fact(**one)` gives each again.
    """
    return [{key: value for key, value in asdict(fact).items() if value is not None} for fact in facts]


def unbuilt_json(reading: PublicReading) -> dict[str, str]:
    """`unbuilt` of a reading that has it, for its object."""
    return {} if reading.unbuilt is None else {"unbuilt": reading.unbuilt}
