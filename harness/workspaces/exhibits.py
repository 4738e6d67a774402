"""Trees in and out of a workspace: laying a task's files down, and taking out what a seat left."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import anyio.to_thread

from harness.errors import WorkspaceError
from harness.ports import Workspace
from harness.tree import Dropped, Exhibit, Tree, TreeCaps
from harness.workspaces.frames import HEADER_ROOM, FileToolError, answer, helper_argv, plain_text, request

__all__ = ["collect", "put"]

MEMBER_ROOM = 5 << 10
"""Bytes that an archive may need for one file beside its content: headers, a path of 1,024 bytes, padding."""

BATCH_FILES = 2000
BATCH_BYTES = 32 << 20


async def put(workspace: Workspace, tree: Tree, *, folder: str = "/workspace", timeout_s: float = 60.0) -> None:
    """
    Lay `tree` down below `folder`, over whatever is there.

    Raises `WorkspaceError` when it can't be done: nothing has been learned of the subject then.
    """
    for batch in _batches(tree):
        items = [{"path": path, "size": len(tree[path]), "executable": tree.files[path].executable} for path in batch]
        body = b"".join(tree[path] for path in batch)
        result = await workspace.exec(
            helper_argv(),
            stdin=request({"op": "put", "root": folder, "files": items}, body),
            timeout_s=timeout_s,
            output_bytes=HEADER_ROOM,
            cwd="/",
        )
        try:
            answer(result, f"put {len(batch)} files")
        except FileToolError as fault:
            raise WorkspaceError(f"the files of the task could not be laid into {folder}: {fault}") from fault


def _batches(tree: Tree) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for path in tree:
        if batch and (len(batch) >= BATCH_FILES or size + len(tree[path]) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += len(tree[path])
    if batch:
        yield batch


async def collect(
    workspace: Workspace, caps: TreeCaps, *, folder: str = "/workspace", timeout_s: float = 120.0
) -> Exhibit:
    """
    Take out what a seat left, as the harness itself sees it: everything alive in the workspace is killed first.

    Regular files within `caps` come out; whatever else is there is dropped and named. Nothing that a seat leaves can
    make this fail: a file it can't be read or would burst a cap is one more that is dropped. Raises `WorkspaceError`
    when the workspace itself no longer works.
    """
    await workspace.kill()
    result = await workspace.exec(
        helper_argv(),
        stdin=request({"op": "archive", "root": folder, **asdict(caps)}),
        timeout_s=timeout_s,
        output_bytes=caps.total_bytes + caps.entries * MEMBER_ROOM + HEADER_ROOM,
        cwd="/",
    )
    try:
        header, archive = answer(result, f"collect {folder}")
    except FileToolError as fault:
        raise WorkspaceError(f"what the seat left could not be collected: {fault}") from fault
    if result.status != 0 or result.stdout_cut:
        said = plain_text(result.stderr.decode("utf-8", "replace").strip()[-300:], 300)
        raise WorkspaceError(f"collecting ended with status {result.status} in the middle of the archive: {said!r}")
    left_out = _dropped(header)
    if header.get("files") == 0:
        return Exhibit(tree=Tree(), dropped=left_out)
    try:
        exhibit = await anyio.to_thread.run_sync(Exhibit.from_tar, io.BytesIO(archive), caps)
    except ValueError as error:
        raise WorkspaceError(f"the archive that came out of the workspace is not whole: {error}") from error
    return Exhibit(tree=exhibit.tree, dropped=left_out + exhibit.dropped)


def _dropped(header: Mapping[str, Any]) -> tuple[Dropped, ...]:
    rows = header.get("dropped")
    if not isinstance(rows, list):
        raise WorkspaceError("collecting answered without the list of what it left out")
    return tuple(
        Dropped(path=plain_text(row.get("path"), 512), why=plain_text(row.get("why"), 512))
        for row in rows
        if isinstance(row, dict)
    )
