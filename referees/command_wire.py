"""
What crosses between the suite, the harness and the subject: a small JSON head and bytes, by count. This file runs
inside workspaces too, so it uses the standard library and the frames of `pytest_wire` only.
"""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

from referees.pytest_wire import WireError

__all__ = ["HEAD", "REQUEST", "lay", "packed", "unpacked"]

HEAD = 256 << 10
"""Bytes of the largest head: arguments and variables of a call."""
REQUEST = 16 << 20
"""Bytes of the largest call, its standard input included."""
_WIDTH = 8


def packed(head: dict[str, Any], *parts: bytes) -> bytes:
    """A head and parts as one body."""
    text = json.dumps({"head": head, "sizes": [len(part) for part in parts]}, separators=(",", ":")).encode("ascii")
    return len(text).to_bytes(_WIDTH, "big") + text + b"".join(parts)


def unpacked(body: bytes, count: int) -> tuple[dict[str, Any], list[bytes]]:
    """The head and `count` parts of a body. Raises `WireError` for whatever `packed` would not have made."""
    length = int.from_bytes(body[:_WIDTH], "big")
    if len(body) < _WIDTH or not 0 < length <= HEAD:
        raise WireError(f"a head of {length} bytes: expected at most {HEAD}")
    try:
        data = json.loads(body[_WIDTH : _WIDTH + length])
        head, sizes = dict(data["head"]), list(data["sizes"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise WireError(f"a head that is none: {type(error).__name__}") from None
    if len(sizes) != count or any(type(size) is not int or size < 0 for size in sizes):
        raise WireError(f"sizes {sizes!r:.80}: expected {count} of them")
    if _WIDTH + length + sum(sizes) != len(body):
        raise WireError(f"a body of {len(body)} bytes: expected {_WIDTH + length + sum(sizes)}")
    parts, start = [], _WIDTH + length
    for size in sizes:
        parts.append(body[start : start + size])
        start += size
    return head, parts


def lay(archive: bytes, folder: Path) -> None:
    """The files of a tar of the harness's own, below `folder`, each with its executable bit."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            path = folder / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            source = tar.extractfile(member)
            path.write_bytes(source.read() if source is not None else b"")
            path.chmod(member.mode & 0o755)
