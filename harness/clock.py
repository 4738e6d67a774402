"""The one reader of the clock and the one source of randomness; tests put their own in its place."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime

__all__ = ["Clock", "SystemClock", "fresh_token", "now_text", "pause"]


class Clock:
    """What the harness may ask of time: `now` for dates, `monotonic` for durations in seconds."""

    def now(self) -> datetime:
        """The current time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds from an arbitrary point that never go backwards."""
        return time.monotonic()


@dataclass(frozen=True)
class SystemClock(Clock):
    """The machine's own clock: no date in a record is ever typed by hand."""


def now_text(clock: Clock) -> str:
    """The current time as RFC 3339 text in UTC, to the millisecond."""
    return clock.now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fresh_token(n_bytes: int = 16) -> str:
    """`n_bytes` bytes of the system's randomness, as hexadecimal text: canaries, nonces, workspace names."""
    return secrets.token_hex(n_bytes)


def pause(seconds: float) -> None:
    """Wait in a worker thread; what runs on an event loop sleeps there."""
    time.sleep(seconds)
