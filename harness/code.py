"""The digest of Proctor's own code: what executes is what is pinned, not a version number."""

from __future__ import annotations

import importlib.util
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from harness.canonical import digest_bytes, digest_json

__all__ = ["ROOMS", "code_digest", "proctor_version", "source_files"]

ROOMS = ("harness", "arms", "referees", "fences", "cells")


def proctor_version() -> str:
    """The installed distribution's version, or `unknown` when it runs from a folder that was never installed."""
    try:
        return version("proctor")
    except PackageNotFoundError:
        return "unknown"


def source_files(room: str, folder: Path) -> dict[str, str]:
    """The SHA-256 of every file of a room that a result can depend on, by path; the page at its door is none."""
    return {
        f"{room}/{path.relative_to(folder).as_posix()}": digest_bytes(path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and path.name != "README.md"
    }


@cache
def code_digest() -> str:
    """SHA-256 over every source and data file of the five rooms, by path."""
    files: dict[str, str] = {}
    for room in ROOMS:
        spec = importlib.util.find_spec(room)
        assert spec is not None
        assert spec.origin is not None
        files |= source_files(room, Path(spec.origin).parent)
    return digest_json(files)
