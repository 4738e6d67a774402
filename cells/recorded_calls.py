"""The calls of a try as its transcript has them: what each used, who served it, what was reserved for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.values import Usage

__all__ = ["RecordedCall", "recorded_calls"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedCall:
    """One call: `served` is None where nobody answered it, `estimate` the tokens that it may have used at most."""

    usage: Usage
    served: str | None
    estimate: int
    output_bytes: int = 0


def recorded_calls(events: Iterable[Mapping[str, Any]]) -> Iterator[RecordedCall]:
    """
    The calls in the order they were answered; last those that were sent and never answered, with an unknown usage.

    Each answer is of its own request: several may be in flight at once.
    """
    waiting: dict[int, int] = {}
    for event in events:
        if event["event"] == "request":
            waiting[event["call"]] = event["estimate"]
        elif event["event"] in {"completion", "call_failed"} and event["call"] in waiting:
            yield RecordedCall(
                usage=Usage(**event["usage"]),
                served=event.get("served_model"),
                estimate=waiting.pop(event["call"]),
                output_bytes=len(event.get("text", "").encode()),
            )
    for estimate in waiting.values():
        yield RecordedCall(usage=Usage(), served=None, estimate=estimate)
