"""Everything that a declaration says cells are in, opened: files of rows, recorded runs, logs of other harnesses."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from cells.bulk import in_bulk
from cells.declared.declaration import Declaration, load_declaration
from cells.declared.gathering import gather
from cells.declared.making import cells_of
from cells.declared.naming import left_out_of, sets_of
from cells.declared.pinning import pinned_names
from cells.declared.recorded import recorded_cells
from cells.declared.rows import ForeignCell
from cells.declared.side_by_side import SideBySide, read_side_by_side
from cells.declared.source import Source
from cells.imports.imported import Seen
from cells.imports.importing import digest_of, import_cells
from cells.promotion.unpooled import refuse_pooled
from harness.errors import DeclarationError

__all__ = ["Opened", "file_digest", "open_cells", "read_declared", "write_pins"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """
    The cells of all sources as one stream, and the SHA-256 of each file; of a run, its record's. `seen` is what the
    importers note as the stream is read.
    """

    cells: Iterator[ForeignCell]
    sources: dict[str, str] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)


@in_bulk()
def read_declared(path: Path, *, files: Sequence[Path] = (), runs: Sequence[Path] = ()) -> SideBySide:
    """
    The readings of the declaration at `path`. `files` take the place of its source's files; `runs` are run folders
    beside its own.

    Raises `DeclarationError` for a declaration or file that can't be used as it stands.
    """
    declaration, digest = load_declaration(path)
    base = path.parent
    sets = sets_of(declaration, base)
    refuse_pooled(sets, [*(base / run for run in declaration.runs), *runs])
    left_out = left_out_of(declaration, sets, base)
    opened = open_cells(declaration, base, files=files, runs=runs)
    found = read_side_by_side(declaration, opened.cells, sets, left_out=left_out, digest=digest, sources=opened.sources)
    return replace(found, remarks=tuple(remark for note in opened.seen for remark in note.remarks))


@in_bulk()
def write_pins(path: Path, folder: Path, *, files: Sequence[Path] = (), runs: Sequence[Path] = ()) -> list[Path]:
    """
    Write for each reading a `cells_file` with all its cells and the digest of what the rows of each say now.

    Raises `DeclarationError` for a file that is there already, and as `read_declared` does.
    """
    declaration, _digest = load_declaration(path)
    sets = sets_of(declaration, path.parent)
    gathered = gather(open_cells(declaration, path.parent, files=files, runs=runs).cells, sets, {})
    targets = {each.name: folder / f"{each.name}.cells.txt" for each in sets}
    for target in targets.values():
        if target.exists():
            raise DeclarationError(
                f"{target} is there already: expected a new folder, so that no digest is overwritten"
            )
    folder.mkdir(parents=True, exist_ok=True)
    for each in sets:
        text = pinned_names(row for name in each.cells for row in gathered.rows[name])
        targets[each.name].write_text(text, "utf-8")
    return list(targets.values())


def open_cells(
    declaration: Declaration, base: Path, *, files: Sequence[Path] = (), runs: Sequence[Path] = ()
) -> Opened:
    """Open every source; the rows are read as they are asked for. Raises `DeclarationError` where nothing is named."""
    places = [(source, _files(source, base)) for source in declaration.sources]
    if files:
        if len(places) != 1:
            raise DeclarationError(
                f"files were given for {len(places)} sources: expected one `[[sources]]` that says what is in them"
            )
        places = [(places[0][0], list(files))]
    folders = [*(base / run for run in declaration.runs), *runs]
    sources = {str(path): file_digest(path) for _source, paths in places for path in paths}
    sources |= {str(folder): file_digest(folder / "record.jsonl") for folder in folders}
    for source, paths in places:
        _refuse_others(source.sha256, paths, sources)
    logs = [(entry, [base / name for name in entry.paths]) for entry in declaration.imports]
    for entry, paths in logs:
        sources |= {str(path): digest_of(entry.importer, path) for path in paths}
        _refuse_others(entry.sha256, paths, sources)
    if not sources:
        raise DeclarationError("the declaration names no cells: expected `sources` with files, `runs` or `imports`")
    rows = (cells_of(path, source) for source, paths in places for path in paths)
    seen: list[Seen] = []
    foreign = [
        import_cells(entry.importer, paths, entry.options, seen=seen, origin=f"the options of the import {number}")
        for number, (entry, paths) in enumerate(logs, start=1)
    ]
    cells = chain(chain.from_iterable(rows), *map(recorded_cells, folders), *foreign)
    return Opened(cells=cells, sources=sources, seen=seen)


def _files(source: Source, base: Path) -> list[Path]:
    return [base / name for name in source.files]


def file_digest(path: Path) -> str:
    """The SHA-256 of a file of cells. Raises `DeclarationError` where it can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DeclarationError(f"{path} can't be read: {error.strerror}: expected a file of cells") from None


def _refuse_others(pins: Sequence[str], paths: Sequence[Path], found: dict[str, str]) -> None:
    """Hold the files against the digests that the declaration pins; without any, every file is taken."""
    if not pins:
        return
    if len(paths) != len(pins):
        raise DeclarationError(f"{len(paths)} files are there and {len(pins)} pinned: expected as many")
    for path, pinned in zip(paths, pins, strict=True):
        if found[str(path)] != pinned:
            raise DeclarationError(
                f"{path} is not the file that was declared: its SHA-256 is {found[str(path)]}, and {pinned} was pinned"
            )
