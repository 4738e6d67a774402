"""
Logs of Inspect as cells: `.eval` archives and `.json` files, finished or not, read sample by sample.

What a log holds is told by its first bytes, not by its name. A log of an eval that was killed has no header at its end:
then the one that was written at its start is read.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from cells.declared.rows import ForeignCell
from cells.imports.archive import Archive
from cells.imports.fields import Fields
from cells.imports.foreign_files import open_regular, pieces_of, skim_file
from cells.imports.imported import Seen
from cells.imports.inspect_header import HEADER, planned_names, read_header
from cells.imports.inspect_sample import cells_of_sample, name_of, wanted_of_sample
from cells.imports.inspect_tries import Tries
from cells.imports.options import InspectOptions
from cells.imports.skim import skim, skim_elements
from harness.errors import DeclarationError

__all__ = ["inspect_cells"]

_SAMPLE: Final = re.compile(r"samples/(?P<name>.+_epoch_[0-9]+)(?:\.json|/sample\.json)", re.DOTALL)
"""A sample in one member, or the first of the members of one that was written in parts."""
_PART: Final = re.compile(r"samples/.+_epoch_[0-9]+/.+", re.DOTALL)
_METADATA: Final = "metadata.json"


def inspect_cells(logs: Sequence[Path], options: InspectOptions, seen: list[Seen]) -> Iterator[ForeignCell]:
    """
    The cells of the `logs`, in the order of each; what is noted beside them goes to `seen`.

    Raises `DeclarationError` for what can't be read as Inspect writes it, and for a sample that two logs hold: a log of
    a retry has the samples of the one before.
    """
    runs: dict[str, Path] = {}
    owners: dict[str, Path] = {}
    for path in logs:
        note = Seen(log=str(path))
        seen.append(note)
        with open_regular(path) as file:
            packed = file.read(4) == b"PK\x03\x04"
        for cell in _of_archive(path, options, note) if packed else _of_json(path, options, note):
            if (other := runs.setdefault(cell.cell.run, path)) != path:
                raise DeclarationError(f"{path} and {other} are the same eval {cell.cell.run}: expected each log once")
            uuid = cell.labels.get("uuid")
            if uuid is not None and (other := owners.setdefault(uuid, path)) != path:
                raise DeclarationError(
                    f"{path} has the sample {cell.cell.id} of {other}: one retries the other, so give the later alone"
                )
            yield cell


def _of_json(path: Path, options: InspectOptions, note: Seen) -> Iterator[ForeignCell]:
    header = Fields(skim_file(path, HEADER), str(path))
    log = read_header(header, note)
    tries = Tries()
    try:
        for number, data in enumerate(skim_elements(pieces_of(path), "samples", wanted_of_sample(options)), start=1):
            where = f"{path}, sample {number}"
            yield from tries.numbered(cells_of_sample(data, log, where, options))
    except ValueError as error:
        raise DeclarationError(f"{path} {error}") from None
    _settle(header, tries, note)


def _of_archive(path: Path, options: InspectOptions, note: Seen) -> Iterator[ForeignCell]:
    with Archive(path) as archive:
        last = {member.filename: member for member in archive.members}
        header = _archived_header(archive, last)
        log = read_header(header, note)
        tries = Tries()
        for member in archive.members:
            name = _SAMPLE.fullmatch(member.filename)
            if name is not None:
                where = f"{path}, member {member.filename[:200]!r}"
                data = _archived_sample(archive, member, last, options)
                if (called := name_of(Fields(data, where))) != name["name"]:
                    raise DeclarationError(f"{where} holds the sample {called!r}: expected the one that it is named by")
                yield from tries.numbered(cells_of_sample(data, log, where, options))
            elif member.filename.startswith("samples/") and not _PART.fullmatch(member.filename):
                raise DeclarationError(
                    f"{path}, member {member.filename[:200]!r}: expected samples/ID_epoch_N.json among the samples"
                )
        _settle(header, tries, note)


def _archived_header(archive: Archive, last: dict[str, zipfile.ZipInfo]) -> Fields:
    for name in ("header.json", "_journal/start.json"):
        if name in last:
            where = f"{archive.path}, member {name!r}"
            try:
                return Fields(skim(archive.read(last[name]), HEADER), where)
            except ValueError as error:
                raise DeclarationError(f"{where} {error}") from None
    raise archive.fault("has neither header.json nor _journal/start.json: expected a log that Inspect wrote")


def _archived_sample(
    archive: Archive, member: zipfile.ZipInfo, last: dict[str, zipfile.ZipInfo], options: InspectOptions
) -> Any:
    wanted = wanted_of_sample(options)
    try:
        data = skim(archive.read(member), wanted)
        beside = member.filename.removesuffix("sample.json") + _METADATA
        if wanted["metadata"] and member.filename.endswith("/sample.json") and beside in last:
            data = {**data, "metadata": skim(archive.read(last[beside]), wanted["metadata"])}
    except ValueError as error:
        raise DeclarationError(f"{archive.path}, member {member.filename[:200]!r} {error}") from None
    return data


def _settle(header: Fields, tries: Tries, note: Seen) -> None:
    """What is known once all samples are read."""
    note.results = len(tries.names)
    note.planned, names = planned_names(header)
    note.absent = [name for name in names if name not in tries.names]
    if tries.superseded:
        note.remarks.append(f"{tries.superseded} samples were run again in the same log: each run is a try of its own")
    if not tries.names and note.planned:
        note.remarks.append("no sample is in the log: was it written with log_samples off?")
