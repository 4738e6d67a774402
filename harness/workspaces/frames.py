"""What travels between the file tool and its far end inside a workspace: how it is started, asked and understood."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream

from harness.errors import ProctorError, WorkspaceError
from harness.walls import ExecResult

__all__ = [
    "BODY_ROOM",
    "HEADER_ROOM",
    "FileAbsent",
    "FileFailed",
    "FileRefused",
    "FileToolError",
    "FrameError",
    "Frames",
    "answer",
    "helper_argv",
    "plain_text",
    "request",
    "served",
]

HEADER_ROOM = 4 << 20
"""Bytes that the header of an answer may take beside its body; the longest one lists what a collection left out."""

BODY_ROOM = 256 << 20
"""Bytes that the body of a request may have."""

_LENGTHS = struct.Struct(">II")
_CHUNK = 1 << 16
_PARTS = ("cell_paths", "cell_archive", "cell_helper")

# It can't be looked into by others of its user from its first step on: what it is sent and says is not theirs to write.
_BOOT = """
import ctypes
ctypes.CDLL(None).prctl({dumpable}, 0, 0, 0, 0)
import sys, types
for name, text in {parts!r}:
    part = types.ModuleType("harness.workspaces." + name)
    sys.modules[part.__name__] = part
    if name == {last!r}:
        part.__name__ = "__main__"
    exec(compile(text, name + ".py", "exec", dont_inherit=True), part.__dict__)
"""
_PR_SET_DUMPABLE = 4


class FileToolError(ProctorError):
    """A file tool's request was not served. The message is fit to be shown to the seat."""


class FileRefused(FileToolError):  # noqa: N818  # says what became of the request, as in "denied", "absent"
    """The path leads somewhere that the file tool does not go: out of its roots, through a link, to a device."""


class FileAbsent(FileToolError):  # noqa: N818  # likewise
    """There is nothing at the path."""


class FileFailed(FileToolError):  # noqa: N818  # likewise
    """The request was right and could not be done: no match, no room, a far end that was killed."""


class FrameError(Exception):
    """What came is no frame, or one over its caps."""


_SORTS = {"refused": FileRefused, "absent": FileAbsent, "failed": FileFailed}


@cache
def helper_argv() -> tuple[str, ...]:
    """The command that runs the far end: its text travels with it, so the image needs nothing of ours."""
    folder = resources.files("harness.workspaces")
    parts = [(name, folder.joinpath(f"{name}.py").read_text(encoding="utf-8")) for name in _PARTS]
    boot = _BOOT.format(dumpable=_PR_SET_DUMPABLE, parts=parts, last=_PARTS[-1])
    return ("python3", "-I", "-S", "-c", boot)


def request(header: Mapping[str, Any], body: bytes = b"") -> bytes:
    """One request as a frame. Raises `FileFailed` for a body that the far end would not take."""
    if len(body) > BODY_ROOM:
        raise FileFailed(f"{header['op']}: {len(body)} bytes at once: expected at most {BODY_ROOM}")
    text = json.dumps(header).encode("ascii")
    return _LENGTHS.pack(len(text), len(body)) + text + body


class Frames:
    """Reads frames from a stream. No more is taken in than one read's worth over what a frame's caps allow."""

    def __init__(self, stream: ByteReceiveStream) -> None:
        self._stream = stream
        self._held = bytearray()

    @property
    def quiet(self) -> bool:
        """Whether nothing has come beyond the frames that were read."""
        return not self._held

    async def next(self, room: int) -> tuple[dict[str, Any], bytes]:
        """
        The next header and a body of at most `room` bytes.

        Raises `FrameError` for what is no frame or is over a cap, before memory is taken for it, and what the stream
        raises when it ends.
        """
        await self._fill(_LENGTHS.size)
        head, size = _LENGTHS.unpack_from(self._held)
        if head > HEADER_ROOM or size > room:
            raise FrameError(f"a frame of {head} and {size} bytes: expected at most {HEADER_ROOM} and {room}")
        body = _LENGTHS.size + head
        await self._fill(body + size)
        header = _header(bytes(self._held[_LENGTHS.size : body]))
        data = bytes(self._held[body : body + size])
        del self._held[: body + size]
        return header, data

    async def _fill(self, size: int) -> None:
        while len(self._held) < size:
            self._held += await self._stream.receive(_CHUNK)


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a header that is no JSON: {text[:40]!r}") from error
    if not isinstance(header, dict):
        raise FrameError(f"a header that is no JSON object: {text[:40]!r}")
    return header


def served(header: Mapping[str, Any], what: str) -> None:
    """Raise the `FileToolError` that the far end answered, if it answered one."""
    if header.get("ok") is not True:
        fault = _SORTS.get(str(header.get("sort")), FileFailed)
        raise fault(f"{what}: {plain_text(header.get('said'), 1000)}")


async def answer(result: ExecResult, what: str) -> tuple[Mapping[str, Any], bytes]:
    """
    The header and the body of the answer to one request that was one program of its own.

    Raises a `FileToolError` for what the far end said no to, and for an answer that is no answer: the far end runs as
    the seat, and the seat may have killed or forged it. Raises `WorkspaceError` where the image has no `python3`, or
    where the exit status is not known.
    """
    if result.timed_out:
        raise FileFailed(f"{what}: took longer than its time limit of {result.seconds:.0f} s and was stopped")
    if result.status is None:
        raise WorkspaceError(f"{what}: how the file tool ended is not known, so nothing can be said of the file")
    if result.status in {126, 127} and not result.stdout:
        said = result.stderr.decode("utf-8", "replace").strip()[:300]
        raise WorkspaceError(f"{what}: the workspace has no usable python3 ({said!r}): add python3 to its image")
    try:
        header, data = await Frames(_Given(result.stdout)).next(len(result.stdout))
    except (FrameError, anyio.EndOfStream) as error:
        ended = f"status {result.status}" + (", output cut at its cap" if result.stdout_cut else "")
        raise FileFailed(f"{what}: the file tool ended in the middle of its answer ({ended})") from error
    served(header, what)
    return header, data


class _Given(ByteReceiveStream):
    """Bytes that are all there, as a stream."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def receive(self, max_bytes: int = _CHUNK) -> bytes:
        if not self._data:
            raise anyio.EndOfStream
        data, self._data = self._data[:max_bytes], self._data[max_bytes:]
        return data

    async def aclose(self) -> None:
        """Nothing is open."""


def plain_text(value: object, limit: int) -> str:
    """`value` as text of at most `limit` characters that is always encodable as UTF-8."""
    return str(value)[:limit].encode("utf-8", "backslashreplace").decode("utf-8")
