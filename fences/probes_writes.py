"""Probes of what can be written: the image's own files, the host's folders, the sealed half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import anyio
import anyio.to_thread

from fences.bodies import MOUNTS, WALK
from fences.classifier import Try
from fences.programs import ProgramProbe
from fences.weakenings import WRITABLE_ROOT, mounted
from harness.clock import fresh_token
from harness.views import Attempt, Fence, Finding, Site

__all__ = ["HostWriteProbe", "LinkWriteProbe", "RootWriteProbe", "SealedWriteProbe", "WritablePlacesProbe"]

_MAKE = """
def make(folder):
    path = os.path.join(folder, ".proctor-" + os.urandom(8).hex())
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)
    return {"fact": "a file could be made"}
"""


class RootWriteProbe(ProgramProbe):
    """Files made in the image's own folders, and programs of the image opened for writing (nothing is written)."""

    name = "root-write"
    threat = "the seat changes the programs that the file tool, the referee or the next seat will run"
    holds = frozenset({Finding.DENIED})
    body = (
        _MAKE
        + """
for folder in ("/", "/etc", "/usr", "/usr/bin", "/usr/local/bin", "/usr/lib", "/usr/sbin"):
    attempt(folder, lambda: make(folder))
def overwrite(path):
    os.close(os.open(path, os.O_WRONLY))
    return {"fact": "a program could be overwritten"}
for path in ("/bin/ls", "/etc/passwd", "/usr/bin/env"):  # none that is running, which would be busy
    attempt(path, lambda: overwrite(path))
"""
    )

    down = WRITABLE_ROOT


class WritablePlacesProbe(ProgramProbe):
    """
    Every file system of the workspace that is not read-only, looked through for a folder to write in. A seat has three
    of its own; anything else keeps what one seat leaves for the next, or takes what no limit counts.
    """

    name = "writable-places"
    threat = "the seat writes to a place that is not its own, which no limit counts and which may outlive the cell"
    body = (
        MOUNTS
        + WALK
        + _MAKE
        + """
closed = ("proc", "sysfs", "cgroup", "cgroup2", "devpts")
seen, left = 0, 60000
for item in mounts():
    place = item["place"]
    if item["kind"] in closed or place in OWN_FOLDERS or seen > 3:
        continue
    top = look(place)
    if top is None or not stat.S_ISDIR(top.st_mode):
        continue
    if item["read_only"]:
        attempt(place, lambda: make(place))
        continue
    for folder, folders, names in os.walk(place):
        left -= 1
        infos = {name: look(os.path.join(folder, name)) for name in folders}
        folders[:] = [name for name, info in infos.items() if info and info.st_dev == top.st_dev]
        if left < 0:
            tries.append({"what": place, "signature": "TOO MUCH"})
            break
        if os.access(folder, os.W_OK):
            attempt(folder, lambda: make(folder))
            seen += "fact" in tries[-1]
            if seen > 3:
                break
if not tries:
    tries.append({"what": "writable places", "signature": "NOTHING"})
"""
    )

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """A folder of the host, writable, below a place where no fixed list would look."""
        return mounted(fence, site.places["outside-path"], read_only=False)


class _LandingProbe(ProgramProbe):
    """A file written to a folder of the host. The evidence is the host's own: the nonce landed there or it did not."""

    folder: ClassVar[str]
    """The name in `Site.places` of the folder."""

    body = """
def write():
    with open(os.path.join(args["folder"], args["file"]), "w") as out:
        out.write(args["nonce"])
    return {"signature": "WROTE"}
attempt("host folder", write)
"""

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The folder of the host, writable."""
        return mounted(fence, site.places[self.folder], read_only=False)

    def arguments(self, fence: Fence, site: Site) -> dict[str, Any]:
        """The folder, a name that is new each time, and what is to be written."""
        del fence
        return {"folder": site.places[self.folder], "file": f"landed-{fresh_token(4)}", "nonce": fresh_token()}

    async def judge(self, tries: Sequence[Try] | str, arguments: Mapping[str, Any], site: Site) -> Attempt:
        """Whatever the program says: look on the host's side."""
        landed = Path(arguments["folder"], arguments["file"])
        if await anyio.to_thread.run_sync(_taken, landed) == arguments["nonce"]:
            return Attempt(finding=Finding.SERVED, evidence="host folder: the nonce landed on the host")
        if not await anyio.Path(arguments["folder"]).is_dir():
            return Attempt(finding=Finding.INCONCLUSIVE, evidence="the folder on the host is gone")
        return await super().judge(tries, arguments, site)


def _taken(path: Path) -> str | None:
    """What stands in the file, which is then taken away."""
    if path.is_symlink() or not path.is_file():
        return None
    text = path.read_text("utf-8", "replace")
    path.unlink()
    return text


class HostWriteProbe(_LandingProbe):
    """A file written to a folder of the host, by its own path."""

    name = "host-write"
    threat = "the seat writes to the host: a cron job, a shell's start file, another run's record"
    folder = "outside-path"


class SealedWriteProbe(_LandingProbe):
    """A file planted beside the sealed tests of a decoy task."""

    name = "sealed-write"
    threat = "the seat plants a test or a result where the referee takes its own from"
    folder = "sealed-tests-path"


class LinkWriteProbe(_LandingProbe):
    """A build folder in the workspace that is a link to a folder of the host, written through."""

    name = "link-write"
    threat = "a build folder that is a link carries what is built to a cache of the host's"
    folder = "outside-path"
    body = """
def write():
    link = "/workspace/.build-" + os.urandom(8).hex()
    os.symlink(args["folder"], link)
    try:
        with open(os.path.join(link, args["file"]), "w") as out:
            out.write(args["nonce"])
    finally:
        os.unlink(link)
    return {"signature": "WROTE"}
attempt("link", write)
"""
