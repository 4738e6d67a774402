"""
The transcript of one try of one cell: what was sent, what came back, what was run, as it happened.

One JSON object a line, each handed to the system before the next thing happens, so that the spend of a try that was
killed is known; it is forced onto the disk when the try ends, before the outcome that names it is recorded.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.canonical import canonical_bytes, digest_bytes, plain
from harness.clock import Clock, SystemClock, now_text
from harness.errors import IntegrityError
from harness.values import CellKey

__all__ = ["Transcript", "read_transcript", "transcript_path"]


def transcript_path(folder: Path, cell: CellKey, attempt: int) -> Path:
    """Where a try's transcript is in a run's folder: readable, and unique by a digest of the whole key."""
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{cell.task}-{cell.arm}-{cell.model}-r{cell.replicate}")[:80]
    return folder / "transcripts" / f"{slug}-{digest_bytes(str(cell).encode())[:8]}.{attempt}.jsonl"


class Transcript:
    """Appends events to a file. Use it as a context manager; the file must not exist yet."""

    def __init__(self, path: Path, *, clock: Clock | None = None) -> None:
        self.path = path
        self._clock = clock or SystemClock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("xb")
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Force what was written onto the disk and close the file; harmless when done twice."""
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def add(self, event: str, **data: Any) -> None:
        """Write one event. Text that is no valid Unicode is kept with its stray bytes escaped."""
        line = {"n": self._count, "at": now_text(self._clock), "event": event, **plain(data)}
        self._file.write(canonical_bytes(line) + b"\n")
        self._file.flush()
        self._count += 1

    def digest(self) -> str:
        """SHA-256 of all that was written so far."""
        return digest_bytes(self.path.read_bytes())


def read_transcript(path: Path) -> Iterator[dict[str, Any]]:
    """
    The events of a transcript. A torn last line (a process killed as it wrote) ends it; any other damage raises
    `IntegrityError`.
    """
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            if number == len(lines):
                return
            raise IntegrityError(f"{path}, line {number}: not JSON") from None
