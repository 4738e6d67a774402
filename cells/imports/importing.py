"""The importers by name, and what both `proctor import` and a declaration's `[[imports]]` do with one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cells.declared.rows import ForeignCell
from cells.imports.foreign_files import pieces_of
from cells.imports.harbor import files_of_job, harbor_cells
from cells.imports.imported import Seen
from cells.imports.inspect_log import inspect_cells
from cells.imports.options import HarborOptions, InspectOptions, LogOptions, parse_options
from harness.errors import DeclarationError, unknown_name

__all__ = ["IMPORTERS", "Importer", "digest_of", "import_cells"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Importer:
    """How results of one harness are read: its options, its cells, and the files of one log or job that count."""

    options: type[LogOptions]
    cells: Callable[[Sequence[Path], Any, list[Seen]], Iterator[ForeignCell]]
    files: Callable[[Path], Iterable[Path]]


IMPORTERS: Final[Mapping[str, Importer]] = {
    "harbor": Importer(options=HarborOptions, cells=harbor_cells, files=files_of_job),
    "inspect": Importer(options=InspectOptions, cells=inspect_cells, files=lambda path: [path]),
}


def import_cells(
    name: str, paths: Sequence[Path], options: Any, *, seen: list[Seen] | None = None, origin: str = "the options"
) -> Iterator[ForeignCell]:
    """
    The cells that the importer `name` reads of `paths`; `seen` takes what it notes beside them.

    Raises `DeclarationError` at once for a name or options that are unknown, and on the way for what can't be read.
    """
    importer = _importer(name)
    if not paths:
        raise DeclarationError(f"{origin} name no {name} log: expected one or more")
    parsed = parse_options(importer.options, options, origin)
    return importer.cells(paths, parsed, [] if seen is None else seen)


def digest_of(name: str, path: Path) -> str:
    """
    The SHA-256 of what the importer `name` reads of one log: of the file, or of the list of a folder's files, each by
    its name within the folder and its own SHA-256.
    """
    importer = _importer(name)
    if not path.is_dir():
        return _digest(path)
    whole = hashlib.sha256()
    for file in importer.files(path):
        whole.update(f"{_digest(file)}  {file.relative_to(path).as_posix()}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def _importer(name: str) -> Importer:
    if name not in IMPORTERS:
        raise DeclarationError(unknown_name("importer", name, IMPORTERS))
    return IMPORTERS[name]


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    for piece in pieces_of(path):
        found.update(piece)
    return found.hexdigest()
