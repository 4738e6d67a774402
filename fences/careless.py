"""
What a careless harness would have in place of ours: the positive controls of probes alone use these, with a guard of
ours lifted. They are bounded by us, in bytes, entries and time, and meet nothing but what an attempt laid out itself.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import ByteStream, SocketStream

from harness.ports import Workspace

__all__ = ["ByteProxy", "Unpacked", "believing_frames", "read_everything", "unpack_as_it_is"]

_ARCHIVE_BYTES = 96 << 20
_ENTRIES = 20_000
_READ_BYTES = 128 << 20
_CHUNK = 1 << 16
_GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


@dataclass(kw_only=True)
class Unpacked:
    """What was read on the host: files by path (bytes that are no UTF-8 as surrogates), and what a reader waits for."""

    files: dict[str, bytes] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)


async def unpack_as_it_is(workspace: Workspace, *, folder: str = "/workspace") -> Unpacked | str:
    """
    The careless collector: an archive made in the workspace, unpacked on the host with no filter, and every file of it
    read, through links too. Returns why not, if there is no archive.
    """
    made = await workspace.exec(
        ["tar", "-cf", "-", "-C", folder, "."], output_bytes=_ARCHIVE_BYTES, timeout_s=60, cwd="/"
    )
    if not made.stdout:
        return f"no archive could be made (exit {made.status})"
    return await anyio.to_thread.run_sync(_unpacked, made.stdout)


def _unpacked(archive: bytes) -> Unpacked:
    place = Path(tempfile.mkdtemp(prefix="proctor-careless-"))
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), errorlevel=0) as opened:
            # Named, since later versions of Python refuse by themselves what this control is about.
            trusting = getattr(tarfile, "fully_trusted_filter", None)
            if trusting is not None:
                opened.extraction_filter = staticmethod(trusting)
            opened.extractall(place)  # noqa: S202 - it is what the control shows
        return _read_through(place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _read_through(place: Path) -> Unpacked:
    found, room = Unpacked(), _READ_BYTES
    for path in _paths(place):
        name = os.path.relpath(path, place)
        try:
            kind = path.stat().st_mode
            if stat.S_ISREG(kind):
                with path.open("rb") as file:
                    found.files[name] = file.read(room)
                room -= len(found.files[name])
            else:
                found.waiting.append(name)
        except OSError:
            continue
    return found


def _paths(place: Path) -> Iterator[Path]:
    """The files below `place`, links to folders followed."""
    seen = 0
    for folder, _, names in os.walk(place, followlinks=True):
        for name in names:
            seen += 1
            if seen > _ENTRIES:
                return
            yield Path(folder) / name


async def read_everything(
    workspace: Workspace, argv: Sequence[str], *, most: int, seconds: float
) -> tuple[bytes, bool]:
    """
    The careless reader: a program's output up to its end, however long that is, and whether the end was seen. `most`
    bytes and `seconds` are our own bounds.
    """
    held = bytearray()
    async with workspace.stream(argv) as stream:
        with anyio.move_on_after(seconds):
            try:
                while len(held) < most:
                    held += await stream.receive()
            except _GONE:
                return bytes(held), True
    return bytes(held), False


@dataclass(frozen=True, kw_only=True)
class ByteProxy:
    """The careless gateway: it hands on whatever comes, to whatever listens on this `port` of the host, and back."""

    port: int

    async def serve(self, client: SocketStream) -> None:
        """Join one connection to the other side until that is through."""
        async with client:
            try:
                upstream = await anyio.connect_tcp("127.0.0.1", self.port)
            except OSError:
                return
            async with upstream, anyio.create_task_group() as tasks:
                tasks.start_soon(_pump, client, upstream)
                await _pump(upstream, client)
                tasks.cancel_scope.cancel()


async def _pump(source: ByteStream, sink: ByteStream) -> None:
    try:
        while True:
            await sink.send(await source.receive(_CHUNK))
    except anyio.EndOfStream:
        with suppress(*_GONE):
            await sink.send_eof()
    except _GONE:
        return


def believing_frames(output: bytes) -> tuple[bytes, bytes]:
    """
    A program's two outputs as a harness has them that takes whatever looks like an engine's frame for one, wherever it
    stands: eight bytes, of which the first says which output, and the last four how long it is.
    """
    parts: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
    at = 0
    while at < len(output):
        head = output[at : at + 8]
        if len(head) == 8 and head[0] in parts and head[1:4] == b"\0\0\0":
            size = int.from_bytes(head[4:], "big")
            parts[head[0]] += output[at + 8 : at + 8 + size]
            at += 8 + size
        else:
            parts[1] += output[at : at + 1]
            at += 1
    return bytes(parts[1]), bytes(parts[2])
