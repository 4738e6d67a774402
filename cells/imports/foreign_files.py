"""Files that another harness left: opened only if they are plain files, read in pieces, never through a link."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from cells.imports.skim import Wanted, skim
from harness.errors import DeclarationError

__all__ = ["open_regular", "pieces_of", "skim_file"]

_PIECE: Final = 1 << 18


def open_regular(path: Path) -> BinaryIO:
    """The file, open for reading. Raises `DeclarationError` for one that can't be read, a link, a device or a pipe."""
    try:
        # A pipe would wait for its writer, and a link may lead anywhere.
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise DeclarationError(f"{path} can't be read: {error.strerror or error}") from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise DeclarationError(f"{path} is no plain file: expected one that another harness wrote")
    return os.fdopen(number, "rb")


def pieces_of(path: Path) -> Iterator[bytes]:
    """The file's bytes as they come."""
    with open_regular(path) as file:
        while piece := file.read(_PIECE):
            yield piece


def skim_file(path: Path, wanted: Wanted) -> Any:
    """What is wanted of a file of JSON. Raises `DeclarationError` that names the file and where it is not JSON."""
    try:
        return skim(pieces_of(path), wanted)
    except ValueError as error:
        raise DeclarationError(f"{path} {error}") from None
