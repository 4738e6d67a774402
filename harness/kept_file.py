"""Files that spare a later run some work: believed only when whole, and nothing fails where they can't be written."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from harness.canonical import digest_bytes
from harness.clock import fresh_token

__all__ = ["read_kept", "write_kept"]


def read_kept(path: Path) -> bytes | None:
    """What `write_kept` wrote there, or None where that is not there whole."""
    try:
        digest, _, data = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return data if digest_bytes(data).encode() == digest else None


def write_kept(path: Path, data: bytes) -> None:
    """Write `data` behind its digest, all or nothing. A folder that can't be written costs time later."""
    draft = path.with_name(f"{path.name}.{fresh_token(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(digest_bytes(data).encode() + b"\n" + data)
        os.replace(draft, path)  # noqa: PTH105 - Path.replace hides which of the two names comes first
    except OSError:
        with suppress(OSError):
            draft.unlink()
