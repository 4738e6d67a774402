"""
The two ends of a promotion where both are at hand: the discovery's line, and the registrations that pin it.

Nothing here reads what a promotion says beyond its line: bytes are held against bytes, and that is quick.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.blobs import BlobStore
from harness.errors import IntegrityError
from harness.record import Entry, decode_line, encode_line
from harness.registration import load_registration

__all__ = [
    "KIND",
    "PIN",
    "Confirmation",
    "confirmations_beside",
    "end_faults",
    "line_bytes",
    "line_of_file",
    "stands_in",
]

KIND = "effect.promoted"
"""The kind of entry that a promotion is."""

PIN = "promotion "
"""Pins of promotions begin so; the file's name follows."""

_MARK = f'"{PIN}'.encode()


@dataclass(frozen=True, kw_only=True, slots=True)
class Confirmation:
    """A registration that pins promotions: its folder and id, whether anything of it was played, and its pins."""

    folder: Path
    id: str
    played: bool
    pins: Mapping[str, Mapping[str, Any]]

    @property
    def discoveries(self) -> frozenset[str]:
        """The runs whose effects it confirms."""
        return frozenset(str(pin.get("discovery")) for pin in self.pins.values())


def line_bytes(entry: Entry) -> bytes:
    """The line of the record that an entry is, with its end."""
    return encode_line(seq=entry.seq, at=entry.at, kind=entry.kind, body=entry.body, prev=entry.prev)[0] + b"\n"


def line_of_file(data: bytes) -> Entry:
    """The entry in a promotion's file. Raises `ValueError` where its bytes are not what its digest says."""
    entry = decode_line(data.removesuffix(b"\n"))
    if entry.kind != KIND:
        raise ValueError(f"it is a line {entry.kind}: expected {KIND}, as `proctor promote` writes it")
    return entry


def confirmations_beside(folder: Path) -> Iterator[Confirmation]:
    """Every registration in the same folder of runs that pins a promotion; one that is damaged is passed over."""
    for path in sorted(folder.resolve().parent.glob("*/registration.json")):
        found = _confirmation(path)
        if found is not None:
            yield found


def _confirmation(path: Path) -> Confirmation | None:
    """Most registrations confirm nothing: what they say is read for that only if a promotion can be in it."""
    try:
        raw = path.read_bytes()
        data = json.loads(raw) if _MARK in raw else {}
        pins = {name: dict(pin) for name, pin in data.get("pins", {}).items() if name.startswith(PIN)}
        played = (path.parent / "record.jsonl").exists()
        return Confirmation(folder=path.parent, id=data["id"], played=played, pins=pins) if pins else None
    except (OSError, ValueError, RecursionError, KeyError, AttributeError, TypeError):
        return None


def stands_in(folder: Path, line: Entry) -> list[str]:
    """What is wrong with the discovery's end in its run `folder`; nothing where the run is not at hand."""
    if not (folder / "registration.json").exists():
        return []
    try:
        frozen = load_registration(folder)
    except IntegrityError as error:
        return [f"the discovery's registration: {error}"]
    if frozen.digest != line.body.get("registration"):
        return [f"it is of registration {line.body.get('registration')}: the one in {folder.name} is {frozen.digest}"]
    if _line(folder / "record.jsonl", line.seq) != line_bytes(line):
        return [f"line {line.seq + 1} of the record of {folder.name} is not this promotion"]
    return []


def _line(path: Path, seq: int) -> bytes | None:
    """A line of a record, unread; None where there is none. Memory is flat in the length of the record."""
    try:
        with path.open("rb") as file:
            return next((line for at, line in enumerate(file) if at == seq), None)
    except OSError:
        return None


def end_faults(folder: Path) -> Iterator[tuple[str, str]]:
    """
    Where and what is wrong with the promotions of a run: those that it pins stand in the records of their discoveries,
    and those that registrations beside it pin as its own stand in its.
    """
    here = folder.resolve()
    for other in confirmations_beside(here):
        for name, pin in other.pins.items():
            home = here.parent / Path(str(pin.get("discovery"))).name
            if here == other.folder:
                yield from ((f"registration, {name}", what) for what in _pinned(other, pin, home))
            elif here == home:
                yield from ((f"{name}, which {other.id} confirms", what) for what in _pinned(other, pin, home))


def _pinned(confirmation: Confirmation, pin: Mapping[str, Any], home: Path) -> list[str]:
    """What is wrong with one pin of a confirmation."""
    try:
        data = BlobStore(confirmation.folder / "blobs").get(str(pin.get("sha256")))
    except IntegrityError:  # told of the confirmation itself, as of any pin whose bytes are gone
        return []
    try:
        line = line_of_file(data)
    except ValueError as error:
        return [str(error)]
    if pin.get("line") != f"{line.seq}:{line.sha256}":
        return [f"its promotion is line {line.seq}:{line.sha256}, and {pin.get('line')} is pinned"]
    return stands_in(home, line)
