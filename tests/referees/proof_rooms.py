"""Rooms without walls or programs for the proof referees: a script says what each program prints and leaves."""

from __future__ import annotations

import hashlib
import io
import struct
import tarfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from harness.errors import WorkspaceError
from harness.walls import ExecResult

__all__ = ["Played", "ScriptedRooms", "vo"]


def vo(library: bytes, *others: tuple[str, bytes]) -> bytes:
    """A compiled file of Rocq's form, with a segment `library` and the `others`."""
    data, table = bytearray(b"Coq!" + struct.pack(">IQ", 81600, 0)), bytearray()
    parts = [("library", library), *others]
    for name, body in parts:
        digest = hashlib.md5(body, usedforsecurity=False).digest()
        table += struct.pack(">I", len(name)) + name.encode() + struct.pack(">QQ16s", len(data), len(body), digest)
        data += body + digest
    struct.pack_into(">Q", data, 8, len(data))
    return bytes(data + struct.pack(">I", len(parts)) + table)


@dataclass(frozen=True, kw_only=True)
class Played:
    """What one program did: its end and outputs, and the files that it left; without `room` it took that with it."""

    status: int | None = 0
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    cut: bool = False
    room: bool = True
    left: Mapping[str, bytes] = field(default_factory=dict)


Script = Callable[[Sequence[str], Mapping[str, bytes]], Played]
"""Plays a program, given its words and the files of its room."""


class ScriptedRooms:
    """
    Opens rooms that play by the script; `ran` keeps the words of each program, `held` the files of its room, and
    `addresses` the kilobytes of address space that it may have.
    """

    def __init__(self, script: Script, *, memory_bytes: int = 3 << 30) -> None:
        self.script = script
        self.memory_bytes = memory_bytes
        self.ran: list[list[str]] = []
        self.held: list[dict[str, bytes]] = []
        self.addresses: list[str] = []

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Any]:
        """One fresh room."""
        yield _Room(self)


class _Room:
    def __init__(self, rooms: ScriptedRooms) -> None:
        self.rooms = rooms
        self.files: dict[str, bytes] = {}
        self.lost = False

    async def facts(self) -> Mapping[str, Any]:
        return {"memory_bytes": self.rooms.memory_bytes}

    async def exec(
        self, argv: Sequence[str], *, stdin: bytes = b"", output_bytes: int = 1 << 20, **_: Any
    ) -> ExecResult:
        done = ExecResult(stdout=b"", stderr=b"", status=0, seconds=0.1)
        if self.lost:
            raise WorkspaceError("the container is not running")
        if argv == ["true"]:
            return done
        if argv[0] == "tar":
            with tarfile.open(fileobj=io.BytesIO(stdin)) as archive:
                for entry in archive:
                    found = archive.extractfile(entry)
                    assert found is not None
                    self.files[entry.name] = found.read()
            return done
        if "head -c" in argv[2]:
            data = self.files.get(argv[4])
            return replace(done, status=44) if data is None else replace(done, stdout=data[:output_bytes])
        words = list(argv[7:])
        self.rooms.ran.append(words)
        self.rooms.addresses.append(argv[6])
        self.rooms.held.append(dict(self.files))
        played = self.rooms.script(words, self.files)
        self.files |= played.left
        self.lost = not played.room
        return replace(
            done,
            status=played.status,
            stdout=played.stdout.encode(),
            stderr=played.stderr.encode(),
            timed_out=played.timed_out,
            stdout_cut=played.cut,
        )

    async def sweep(self) -> int | None:
        return 0
