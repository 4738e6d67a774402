"""What travels between the file tool and its far end inside a workspace: how it is started, asked and understood."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from harness.errors import ProctorError, WorkspaceError
from harness.walls import ExecResult

__all__ = [
    "HEADER_ROOM",
    "FileAbsent",
    "FileFailed",
    "FileRefused",
    "FileToolError",
    "answer",
    "helper_argv",
    "plain_text",
    "request",
]

HEADER_ROOM = 8 << 20
"""Bytes of output that an answer's header may take beside its body."""

_LENGTHS = struct.Struct(">II")

_BOOT = """
import sys, types
paths = types.ModuleType("harness.workspaces.cell_paths")
sys.modules[paths.__name__] = paths
exec(compile({paths!r}, "cell_paths.py", "exec", dont_inherit=True), paths.__dict__)
exec(compile({helper!r}, "cell_helper.py", "exec", dont_inherit=True), {{"__name__": "__main__"}})
"""


class FileToolError(ProctorError):
    """A file tool's request was not served. The message is fit to be shown to the seat."""


class FileRefused(FileToolError):  # noqa: N818  # says what became of the request, as in "denied", "absent"
    """The path leads somewhere that the file tool does not go: out of its roots, through a link, to a device."""


class FileAbsent(FileToolError):  # noqa: N818  # likewise
    """There is nothing at the path."""


class FileFailed(FileToolError):  # noqa: N818  # likewise
    """The request was right and could not be done: no match, no room, a far end that was killed."""


_SORTS = {"refused": FileRefused, "absent": FileAbsent, "failed": FileFailed}


@cache
def helper_argv() -> tuple[str, ...]:
    """The command that runs the far end: its text travels with it, so the image needs nothing of ours."""
    folder = resources.files("harness.workspaces")
    paths, helper = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("cell_paths.py", "cell_helper.py"))
    return ("python3", "-I", "-S", "-c", _BOOT.format(paths=paths, helper=helper))


def request(header: Mapping[str, Any], body: bytes = b"") -> bytes:
    """One request as a frame."""
    text = json.dumps(header).encode("ascii")
    return _LENGTHS.pack(len(text), len(body)) + text + body


def answer(result: ExecResult, what: str) -> tuple[Mapping[str, Any], bytes]:
    """
    The header and the rest of the output of one answered request.

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
    header, rest = _split(result, what)
    if header.get("ok") is True:
        return header, rest
    fault = _SORTS.get(str(header.get("sort")), FileFailed)
    raise fault(f"{what}: {plain_text(header.get('said'), 1000)}")


def _split(result: ExecResult, what: str) -> tuple[Mapping[str, Any], bytes]:
    out = result.stdout
    try:
        head, body = _LENGTHS.unpack_from(out)
        header = json.loads(out[_LENGTHS.size : _LENGTHS.size + head])
    except (struct.error, ValueError, RecursionError):
        header, body, head = None, 0, 0
    rest = out[_LENGTHS.size + head :]
    if not isinstance(header, dict) or len(rest) < body:
        ended = f"status {result.status}" + (", output cut at its cap" if result.stdout_cut else "")
        raise FileFailed(f"{what}: the file tool ended in the middle of its answer ({ended})")
    return header, rest


def plain_text(value: object, limit: int) -> str:
    """`value` as text of at most `limit` characters that is always encodable as UTF-8."""
    return str(value)[:limit].encode("utf-8", "backslashreplace").decode("utf-8")
