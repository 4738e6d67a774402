"""Trees in and out of a workspace: laying a task's files down, and taking out what a seat left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import anyio
from anyio.abc import ByteStream

from harness.errors import WorkspaceError
from harness.ports import Remains, Workspace
from harness.tree import Dropped, Exhibit, ExhibitFilter, Tree, TreeCaps
from harness.workspaces.file_helper import Asking
from harness.workspaces.frames import (
    FileToolError,
    FrameError,
    Frames,
    answer,
    helper_argv,
    plain_text,
    request,
)

__all__ = ["collect", "lay", "put"]

BATCH_FILES = 2000
BATCH_BYTES = 32 << 20
ANSWER_BYTES = 1 << 16


async def lay(helper: Asking, tree: Tree, *, folder: str = "/workspace", timeout_s: float = 60.0) -> None:
    """
    Lay `tree` down below `folder` through a helper, over whatever is there.

    Raises `WorkspaceError` when it can't be done: nothing has been learned of the subject then.
    """
    for header, body in _batches(tree, folder):
        try:
            await helper.ask(header, body, timeout_s=timeout_s, what=f"put {len(header['files'])} files")
        except FileToolError as fault:
            raise _not_laid(folder, fault) from fault


async def put(workspace: Workspace, tree: Tree, *, folder: str = "/workspace", timeout_s: float = 60.0) -> None:
    """The same in a workspace without a helper: a program of its own, in a room that is used once."""
    for header, body in _batches(tree, folder):
        result = await workspace.exec(
            helper_argv(), stdin=request(header, body), timeout_s=timeout_s, output_bytes=ANSWER_BYTES, cwd="/"
        )
        try:
            await answer(result, f"put {len(header['files'])} files")
        except FileToolError as fault:
            raise _not_laid(folder, fault) from fault


def _not_laid(folder: str, fault: FileToolError) -> WorkspaceError:
    return WorkspaceError(f"the files of the task could not be laid into {folder}: {fault}")


def _batches(tree: Tree, folder: str) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Requests of a bounded size that lay all of a tree."""
    batch: list[str] = []
    size = 0
    for path in tree:
        if batch and (len(batch) >= BATCH_FILES or size + len(tree[path]) > BATCH_BYTES):
            yield _laying(tree, folder, batch)
            batch, size = [], 0
        batch.append(path)
        size += len(tree[path])
    if batch:
        yield _laying(tree, folder, batch)


def _laying(tree: Tree, folder: str, batch: list[str]) -> tuple[dict[str, Any], bytes]:
    items = [{"path": path, "size": len(tree[path]), "executable": tree.files[path].executable} for path in batch]
    return {"op": "put", "root": folder, "files": items}, b"".join(tree[path] for path in batch)


async def collect(remains: Remains, caps: TreeCaps, *, folder: str = "/workspace", timeout_s: float = 120.0) -> Exhibit:
    """
    Take out what a seat left, as the harness itself sees it, from a workspace that has ended.

    Regular files within `caps` come out one by one; whatever else is there is dropped and named. Nothing that a seat
    leaves can make this fail: a file that can't be read or would burst a cap is one more that is dropped. Raises
    `WorkspaceError` when the room that shows what is left does not work.
    """
    taking = ExhibitFilter(caps)
    ask = request({"op": "archive", "root": folder, **asdict(caps)})
    with anyio.move_on_after(timeout_s) as limit:
        async with remains.stream(helper_argv(), cwd="/") as stream:
            ending = await _taken(stream, ask, taking, caps.file_bytes + 1)
    if limit.cancelled_caught:
        raise WorkspaceError(f"collecting {folder} took longer than {timeout_s:g} s")
    if isinstance(ending, Exception):
        why = str(ending) or type(ending).__name__
        raise WorkspaceError(f"what came out of {folder} is not whole: {why}") from ending
    return taking.exhibit(left_out=_dropped(ending))


async def _taken(stream: ByteStream, ask: bytes, taking: ExhibitFilter, room: int) -> Mapping[str, Any] | Exception:
    """Take file by file until the header that ends them, which is returned, or what went wrong on the way."""
    frames = Frames(stream)
    try:
        await stream.send(ask)
        while True:
            header, data = await frames.next(room)
            if "ok" in header:
                return header
            taking.take(header.get("path"), data, executable=header.get("executable") is True)
    except (FrameError, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
        return error


def _dropped(header: Mapping[str, Any]) -> tuple[Dropped, ...]:
    rows = header.get("dropped")
    if not isinstance(rows, list):
        raise WorkspaceError("collecting answered without the list of what it left out")
    return tuple(
        Dropped(path=plain_text(row.get("path"), 512), why=plain_text(row.get("why"), 512))
        for row in rows
        if isinstance(row, dict)
    )
