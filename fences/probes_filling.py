"""Probes of the room that a workspace has for files: bytes and numbers of them, in each folder that can be written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from fences.probes_resources import LimitProbe
from fences.weakenings import walls_changed
from harness.views import Fence, Finding, Site

__all__ = ["DiskFillProbe", "InodeFillProbe", "ShmFillProbe", "TmpFillProbe", "TmpInodesProbe"]

_FOLDER = """
import shutil
folder = args["folder"] + "/proctor-fill-%d" % os.getpid()
"""

_BYTES = (
    _FOLDER
    + """
def fill():
    os.mkdir(folder)
    taken = number = 0
    try:
        while taken <= args["cap"]:
            number += 1
            fd = os.open("%s/%d" % (folder, number), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.posix_fallocate(fd, 0, args["step"])
            finally:
                os.close(fd)
            taken += args["step"]
        return {"fact": "more bytes than the policy allows were taken"}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
attempt(args["folder"], fill)
"""
)

_NUMBERS = (
    _FOLDER
    + """
def fill():
    os.mkdir(folder)
    number = 0
    try:
        while number <= args["cap"]:
            if number % 2000 == 0:
                part = "%s/%d" % (folder, number)
                os.mkdir(part)
            number += 1
            os.close(os.open("%s/%d" % (part, number), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        return {"fact": "more files than the policy allows were made"}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
attempt(args["folder"], fill)
"""
)

_STEP_BYTES = 16 << 20


class _FillProbe(LimitProbe):
    """Files in `folder`, each of a size that the policy allows, until they are more together than it allows."""

    folder: ClassVar[str]
    body = _BYTES
    more = 2

    def arguments(self, fence: Fence, site: Site) -> dict[str, Any]:
        """Where, how much, and in which steps."""
        cap = getattr(site.caps, self.cap)
        step = max(1, min(_STEP_BYTES, site.caps.file_bytes, cap // 4))
        return {**super().arguments(fence, site), "folder": self.folder, "step": step}

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """Twice the room, and as much more memory: that is where these files are."""
        weak = super().weaken(fence, site)
        caps = weak.walls.caps
        if self.cap.endswith("_bytes"):
            caps = replace(caps, memory_bytes=caps.memory_bytes + getattr(caps, self.cap))
        return walls_changed(weak, caps=caps)


class DiskFillProbe(_FillProbe):
    """Bytes in the workspace."""

    name = "disk-fill"
    threat = "the seat fills the disk, or the memory, that everything else on the host lives on"
    guarantee, cap, folder = "workspace_bytes", "workspace_bytes", "/workspace"


class InodeFillProbe(_FillProbe):
    """Empty files in the workspace: they take no bytes, and a file system can run out of them."""

    name = "inode-fill"
    threat = "the seat takes every file number of a file system, or leaves so many files that nobody can collect them"
    guarantee, cap, folder = "workspace_inodes", "workspace_inodes", "/workspace"
    body = _NUMBERS


class TmpFillProbe(_FillProbe):
    """Bytes in `/tmp`."""

    name = "tmp-fill"
    threat = "the seat fills the host's memory through its temporary folder"
    guarantee, cap, folder = "tmp_bytes", "tmp_bytes", "/tmp"  # noqa: S108 - inside a workspace


class TmpInodesProbe(_FillProbe):
    """Empty files in `/tmp`, which are in the kernel's own memory."""

    name = "tmp-inodes"
    threat = "the seat fills the kernel's memory with files that have no bytes"
    guarantee, cap, folder = "tmp_inodes", "workspace_inodes", "/tmp"  # noqa: S108 - inside a workspace
    body = _NUMBERS


class ShmFillProbe(_FillProbe):
    """Bytes in `/dev/shm`, where a sandbox often has a memory file system that nobody limited."""

    name = "shm-fill"
    threat = "the seat fills the host's memory through shared memory"
    holds = frozenset({Finding.ABSENT, Finding.DENIED})
    guarantee, cap, folder = "shm_bytes", "shm_bytes", "/dev/shm"  # noqa: S108 - inside a workspace
