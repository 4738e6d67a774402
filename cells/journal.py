"""What a run writes down: the record, what it says so far, and whoever is watching, always in that order."""

from __future__ import annotations

from typing import Any, Protocol

import anyio

from cells.plan import Progress, read_run
from harness.canonical import plain
from harness.record import Entry, Record

__all__ = ["Journal", "Watcher"]


class Watcher(Protocol):
    """Somebody who is told what the record was told; nothing depends on it."""

    def saw(self, kind: str, body: Any, progress: Progress) -> None:
        """An entry is on the disk."""
        ...

    def note(self, text: str) -> None:
        """Something worth a line that is no entry."""
        ...


class Journal:
    """The open record of a run with its progress. Entries are written one at a time; a cancellation loses none."""

    def __init__(self, record: Record, watcher: Watcher) -> None:
        self.record = record
        self.progress, _head = read_run(record.path.parent)
        self.watcher = watcher
        self._lock = anyio.Lock()

    async def add(self, kind: str, body: Any) -> Entry:
        """
        Append an entry; it is on the disk when this returns. The disk is waited for outside the event loop. Texts come
        from seats, servers and candidates: one that JSON can't hold is kept with its stray characters escaped.
        """
        body = plain(body)
        with anyio.CancelScope(shield=True):
            async with self._lock:
                entry = await anyio.to_thread.run_sync(self.record.append, kind, body)
                self.progress.add(kind, body)
        self.watcher.saw(kind, body, self.progress)
        return entry
