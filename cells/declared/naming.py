"""The declared set of each reading: its cells by run and id, resolved, each once, with a digest of their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cells.declared.declaration import Declaration, LeftOutEntry, ReadingEntry
from cells.declared.rows import Name, name_of, name_text
from harness.canonical import digest_bytes, digest_names
from harness.errors import DeclarationError

__all__ = ["DeclaredSet", "left_out_of", "sets_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredSet:
    """
    The cells of one reading, in the order declared. `pins` are the digests that rows were declared with, `files` the
    digests of the lists that the names came from.

    `digest` is the SHA-256 of the canonical list of the names, sorted, so that order is nothing: as of any set of
    cells. A figure or bound over a set is told with it, and is one of no other set.
    """

    name: str
    cells: tuple[Name, ...]
    digest: str
    pins: Mapping[Name, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def sets_of(declaration: Declaration, base: Path) -> list[DeclaredSet]:
    """
    The sets of the readings; files of names are relative to `base`.

    Raises `DeclarationError` for a cell that a reading names twice, a reading that includes itself, one without a
    cell, and a file of names that can't be read.
    """
    entries = {entry.name: entry for entry in declaration.readings}
    done: dict[str, DeclaredSet] = {}
    for entry in declaration.readings:
        _resolve(entry, entries, base, done, ())
    return [done[entry.name] for entry in declaration.readings]


def _resolve(
    entry: ReadingEntry,
    entries: Mapping[str, ReadingEntry],
    base: Path,
    done: dict[str, DeclaredSet],
    path: tuple[str, ...],
) -> DeclaredSet:
    if entry.name in done:
        return done[entry.name]
    if entry.name in path:
        raise DeclarationError(f"reading {entry.name!r} includes itself, by {' -> '.join((*path, entry.name))}")
    parts = [_resolve(entries[name], entries, base, done, (*path, entry.name)) for name in entry.includes]
    cells = [name for part in parts for name in part.cells]
    pins = {name: pin for part in parts for name, pin in part.pins.items()}
    files = {name: digest for part in parts for name, digest in part.files.items()}
    listed, pinned, file = _listed(entry, base)
    named = (*cells, *listed)
    if len(set(named)) < len(named):
        twice = _again(named)
        raise DeclarationError(f"reading {entry.name!r} names the cell {name_text(twice)} twice: expected it once")
    if not named:
        raise DeclarationError(f"reading {entry.name!r} has no cell: expected `cells`, `cells_file` or `includes`")
    done[entry.name] = DeclaredSet(
        name=entry.name,
        cells=named,
        digest=digest_names(map(name_text, named)),
        pins={**pins, **pinned},
        files={**files, **file},
    )
    return done[entry.name]


def _again(names: Iterable[Name]) -> Name:
    """The first of these names that was there before; one is."""
    counts: Counter[Name] = Counter()
    for name in names:
        counts[name] += 1
        if counts[name] > 1:
            break
    return name


def left_out_of(declaration: Declaration, sets: Iterable[DeclaredSet], base: Path) -> dict[Name, str]:
    """The cells that are left out, each with why. Raises `DeclarationError` for one that a reading has."""
    taken = {name: each.name for each in sets for name in each.cells}
    found: dict[Name, str] = {}
    for entry in declaration.left_out:
        for name in _listed(entry, base)[0]:
            if name in taken:
                raise DeclarationError(f"the cell {name_text(name)} is left out, and in reading {taken[name]!r}")
            found[name] = entry.reason
    return found


def _listed(entry: ReadingEntry | LeftOutEntry, base: Path) -> tuple[list[Name], dict[Name, str], dict[str, str]]:
    """The cells that an entry names itself, the digests of rows beside them, and the digest of its file of names."""
    names = [name_of(cell) for cell in entry.cells]
    if entry.cells_file is None:
        return names, {}, {}
    path = base / entry.cells_file
    try:
        data = path.read_bytes()
        lines = data.decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DeclarationError(f"the cells_file {path} can't be read: {error}") from None
    pins: dict[Name, str] = {}
    for number, line in enumerate(lines, start=1):
        text, _, pin = line.partition("\t")
        if not text or text.startswith("#"):
            continue
        try:
            names.append(name_of(text))
        except ValueError as error:
            raise DeclarationError(f"{path}, line {number}: {error}") from None
        if pin:
            pins[names[-1]] = pin
    return names, pins, {entry.cells_file: digest_bytes(data)}
