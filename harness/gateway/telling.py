"""What the transcript is told of the gateway: every request, until there are too many to be worth a line each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

from harness.seats.bounded import clipped

__all__ = ["Log", "Standing"]

Standing: TypeAlias = Literal["served", "refused", "failed"]

MOST = 1000
"""Lines for requests that cost no call of the model; a seat that floods the gateway shall not fill the disk."""


class Log:
    """Writes each request down as an event `gateway`, and counts them all by what became of them."""

    def __init__(self, event: Callable[..., None]) -> None:
        self._event = event
        self._lines = 0
        self._left_out: Counter[str] = Counter()
        self._unused: set[str] = set()
        self.counts: Counter[str] = Counter()

    @property
    def flooded(self) -> bool:
        """Whether the lines for requests without a call are used up."""
        return self._lines >= MOST

    def tell(
        self,
        standing: Standing,
        *,
        status: int | None,
        why: str | None = None,
        wire: str | None = None,
        path: str | None = None,
        call: int | None = None,
        **sizes: Any,
    ) -> None:
        """One request, or one connection that came to none."""
        self.counts[standing] += 1
        if call is None:
            if self.flooded:
                self._left_out[standing] += 1
                return
            self._lines += 1
        shown = None if path is None else clipped(path, 200)
        self._event("gateway", standing=standing, status=status, why=why, wire=wire, path=shown, call=call, **sizes)

    def first(self, unused: Iterable[str]) -> list[str]:
        """Those of the fields that no event has named yet: what an agent says of the sampling is told once."""
        new = sorted(set(unused) - self._unused)
        self._unused.update(new)
        return new

    def close(self) -> None:
        """Tell how many were not written down, if any."""
        for standing, count in sorted(self._left_out.items()):
            why = f"{count} more like these, not written down"
            self._event("gateway", standing=standing, status=None, why=why, wire=None, path=None, call=None)
