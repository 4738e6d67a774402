"""
Searching an image for sealed text: in a room of its own, where no seat ever is, and by hashes, so that not even that
room is told what is sealed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from harness.errors import WorkspaceError
from harness.ports import Workspace
from harness.tasks.git_history import search_history
from harness.tasks.leaks import Leak, LeakReport, sealed_marks
from harness.tasks.mark_search import Search
from harness.tasks.task import Task
from harness.tree import TreeCaps
from harness.workspaces.exhibits import collect

__all__ = ["GIT_CAPS", "scan_image"]

GIT_CAPS = TreeCaps(total_bytes=1 << 30, file_bytes=1 << 30, entries=200_000, depth=16)
"""How much of a repository in an image is taken out to be looked into."""

_PATIENCE_S = 600.0
_REPORT_BYTES = 4 << 20


@cache
def _argv() -> tuple[str, ...]:
    text = resources.files("harness.tasks").joinpath("mark_search.py").read_text(encoding="utf-8")
    return ("python3", "-I", "-S", "-c", text)


async def scan_image(room: Workspace, tasks: Sequence[Task], *, tops: Sequence[str] = ("/",)) -> LeakReport:
    """
    Search every file that `room`, a fresh workspace of the image, shows; git repositories are taken out and looked into
    on this side. Time grows with the bytes of the image. Raises `WorkspaceError` when the search itself failed.
    """
    sealed = sealed_marks(*tasks)
    asked = json.dumps({"marks": sealed.told, "tops": list(tops)}).encode()
    done = await room.exec(_argv(), stdin=asked, timeout_s=_PATIENCE_S, output_bytes=_REPORT_BYTES, cwd="/")
    report = _report(done.stdout, done.status, done.stderr)
    leaks = list(sealed.leaks(report["hits"]))
    unread = [Leak(where=item["where"], what=item["why"]) for item in report["unread"]]
    forbidden = [one for task in tasks for one in task.sealed.card.get("leaks", {}).get("forbidden_commits", ())]
    async with room.remains() as rest:
        for folder in report["git"]:
            search = Search(sealed.marks)
            exhibit = await collect(rest, GIT_CAPS, folder=folder)
            found = search_history(exhibit.tree, f"image:{folder}", search, forbidden)
            leaks += [*sealed.leaks(search.hits), *(Leak(where=item.where, what=item.what) for item in found)]
            unread += [Leak(where=item["where"], what=item["why"]) for item in search.unread]
            unread += [Leak(where=f"image:{folder}/{item.path}", what=item.why) for item in exhibit.dropped]
    return LeakReport(leaks=tuple(leaks), unread=tuple(unread), files=report["files"], too_short=sealed.too_short)


def _report(stdout: bytes, status: int | None, stderr: bytes) -> dict[str, Any]:
    try:
        report: dict[str, Any] = json.loads(stdout)
    except ValueError:
        said = stderr.decode("utf-8", "replace").strip()[-300:]
        raise WorkspaceError(f"the search of the image ended with status {status} and no report: {said!r}") from None
    return report
