"""
Probes of what is taken out of a workspace at the end, in the language of that layer: things that a seat may leave, and
the harness's own collector.

The controls have a careless collector in its place, which unpacks an archive on the host as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import anyio.to_thread

from fences.careless import Unpacked, unpack_as_it_is
from fences.classifier import DENIED, Try, weigh
from fences.programs import run_program
from harness.ports import Workspace
from harness.tree import Exhibit, TreeCaps
from harness.views import Attempt, Fence, Finding, Site

__all__ = [
    "ArchiveEnvironmentProbe",
    "ArchiveLinksProbe",
    "ArchiveManyProbe",
    "ArchiveNamesProbe",
    "ArchiveSizeProbe",
    "ArchiveSpecialProbe",
    "Taken",
]

_CAPS = TreeCaps(total_bytes=6 << 20, file_bytes=1 << 20, entries=200, depth=8)
"""Far below what a run allows, so that passing them takes little."""

_SIGNS = DENIED | {"DROPPED", "WITHIN"}
"""`DROPPED`: the collector left it out and said so. `WITHIN`: what came out keeps to the caps."""

_PREPARE = """
os.chdir("/workspace")
def lay():
    told = args
LAYING
    return {"fact": "laid"}
attempt("lay", lay)
"""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What came out: files by path, what was left out by path, and what a reader on the host would wait for."""

    files: Mapping[str, bytes]
    dropped: Mapping[str, str]
    waiting: Sequence[str] = ()

    @classmethod
    def of(cls, found: Exhibit | Unpacked) -> Taken:
        """What a collector brought, ours or the careless one."""
        if isinstance(found, Unpacked):
            return cls(files=found.files, dropped={}, waiting=found.waiting)
        files = {path: file.data for path, file in found.tree.files.items()}
        return cls(files=files, dropped={item.path: item.why for item in found.dropped})

    def where(self, name: str) -> Try | None:
        """The try that a laid thing amounts to, unless it came out as a file."""
        if name in self.waiting:
            return Try(what=name, fact="a reader on the host would wait for it for ever")
        if name in self.dropped:
            return Try(what=name, signature="DROPPED")
        return None if name in self.files else Try(what=name, signature="NOTHING")


class _ArchiveProbe(ABC):
    """One kind of thing that a seat leaves, which is then collected from the workspace that has ended."""

    name: ClassVar[str]
    threat: ClassVar[str]
    laying: ClassVar[str]
    """The body that lays it out in the workspace; it finds what it is told as `told`."""
    canary: ClassVar[str | None] = None
    language: ClassVar[str] = "archive"
    holds: frozenset[Finding] = frozenset({Finding.DENIED})
    alone: ClassVar[bool] = True
    structural: ClassVar[bool] = False

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The careless collector in place of ours."""
        del site
        return replace(fence, lifted=("archive-filter",))

    def told(self, site: Site) -> dict[str, Any]:
        """What the laying program is told."""
        del site
        return {}

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Lay it out, end the workspace, collect, and look at what came."""
        body = _PREPARE.replace("LAYING", self.laying.strip("\n"))
        laid = await run_program(workspace, body, self.told(site))
        if isinstance(laid, str) or laid[0].fact is None:
            why = laid if isinstance(laid, str) else laid[0].signature
            return Attempt(finding=Finding.INCONCLUSIVE, evidence=f"it could not be laid out: {why}")
        found = await _collected(workspace, careless="archive-filter" in fence.lifted)
        if isinstance(found, str):
            return Attempt(finding=Finding.INCONCLUSIVE, evidence=found)
        tries = await anyio.to_thread.run_sync(self.judge, Taken.of(found), site)
        canary = site.canaries[self.canary] if self.canary else None
        return weigh(tries, canary=canary, absent=frozenset({"NOTHING"}), denied=_SIGNS)

    @abstractmethod
    def judge(self, taken: Taken, site: Site) -> list[Try]:
        """The tries that what came out amounts to."""


async def _collected(workspace: Workspace, *, careless: bool) -> Exhibit | Unpacked | str:
    from harness.workspaces.exhibits import collect

    if careless:
        return await unpack_as_it_is(workspace)
    async with workspace.remains() as rest:
        return await collect(rest, _CAPS)


class ArchiveLinksProbe(_ArchiveProbe):
    """Links to a file and a folder of the host: absolute, relative, and a second name of a link."""

    name = "archive-links"
    threat = "what a seat linked to is read on the host, and lands in the exhibit that a referee judges"
    canary = "host-file"
    laying = """
    os.symlink(told["file"], "absolute")
    os.symlink("../" * 12 + told["file"].lstrip("/"), "relative")
    os.symlink(told["folder"], "folder")
    os.link("absolute", "second", follow_symlinks=False)
"""
    links = ("absolute", "relative", "folder", "second")

    def told(self, site: Site) -> dict[str, Any]:
        """Where the links lead."""
        return {"file": site.places["host-file-path"], "folder": site.places["home"]}

    def judge(self, taken: Taken, site: Site) -> list[Try]:
        """The host's file came out under some name, or each link was left out."""
        canary = site.canaries["host-file"].encode()
        through = [
            Try(what=path.split("/")[0], got=data) for path, data in sorted(taken.files.items()) if canary in data
        ]
        return through[:1] or [
            taken.where(link) or Try(what=link, got=taken.files.get(link, b"")) for link in self.links
        ]


class ArchiveEnvironmentProbe(_ArchiveProbe):
    """A link to `/proc/self/environ`: whoever follows it on the host reads the environment of the harness itself."""

    name = "archive-environment"
    threat = "a link makes the harness hand out its own environment, keys included"
    laying = '    os.symlink("/proc/self/environ", "environ")\n'

    def judge(self, taken: Taken, site: Site) -> list[Try]:
        """It is the harness's own, byte for byte, or it was left out."""
        del site
        data = taken.files.get("environ")
        if data is None:
            return [taken.where("environ") or Try(what="environ", signature="NOTHING")]
        own = Path("/proc/self/environ").read_bytes()
        if data and data == own:
            return [Try(what="environ", fact="it holds the environment of the harness")]
        return [Try(what="environ", signature=f"{len(data)} bytes that are not the harness's environment")]


class ArchiveSpecialProbe(_ArchiveProbe):
    """A FIFO, a socket and, where the seat can make one, a device: opening them on the host waits, or worse."""

    name = "archive-special"
    threat = "the harness opens something that is no file, and waits for ever"
    laying = """
    os.mkfifo("fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
    try:
        os.mknod("device", 0o20600, os.makedev(1, 5))
    except OSError:
        pass
"""

    def judge(self, taken: Taken, site: Site) -> list[Try]:
        """Each that was laid was left out."""
        del site
        # An archive has no sockets, and only some users can make a device: these may well not be there.
        names = ["fifo", *(name for name in ("socket", "device") if name in {*taken.files, *taken.dropped})]
        return [taken.where(name) or Try(what=name, got=taken.files[name]) for name in names]


class ArchiveSizeProbe(_ArchiveProbe):
    """A file that is all hole and far over the cap for one, and files that are over the cap for all together."""

    name = "archive-size"
    threat = "what a seat leaves fills the harness's memory, or the record's disk"
    laying = """
    fd = os.open("hole", os.O_WRONLY | os.O_CREAT, 0o600)
    os.ftruncate(fd, told["hole"])
    os.close(fd)
    for number in range(told["many"]):
        with open("part-%d" % number, "wb") as part:
            part.write(b"x" * told["size"])
"""

    def told(self, site: Site) -> dict[str, Any]:
        """How much is laid: a tenth more than the caps, and a hole of 60 MB or what a file may have."""
        size = min(_CAPS.file_bytes * 9 // 10, site.caps.file_bytes)
        return {"hole": min(60 << 20, site.caps.file_bytes), "size": size, "many": _CAPS.total_bytes * 11 // 10 // size}

    def judge(self, taken: Taken, site: Site) -> list[Try]:
        """The caps were kept, and what was over them was said."""
        del site
        total = sum(map(len, taken.files.values()))
        if total > _CAPS.total_bytes or max(map(len, taken.files.values()), default=0) > _CAPS.file_bytes:
            return [Try(what="bytes", fact="more came out than the caps allow")]
        said = bool(taken.files) and any(name.startswith("part-") for name in taken.dropped)
        whole = Try(what="all together", signature="WITHIN" if said else "nothing says what was left out")
        return [taken.where("hole") or Try(what="hole", got=taken.files["hole"]), whole]


class ArchiveManyProbe(_ArchiveProbe):
    """A thousand small files, and folders in folders deeper than the cap."""

    name = "archive-many"
    threat = "so many names, or folders so deep, that whoever walks them does not come back"
    laying = """
    os.mkdir("heap")
    for number in range(told["entries"]):
        os.close(os.open("heap/%d" % number, os.O_WRONLY | os.O_CREAT, 0o600))
    deep = "deep"
    for _ in range(told["depth"]):
        os.mkdir(deep)
        deep += "/d"
    os.mkdir(deep)
    with open(deep + "/file", "w") as file:
        file.write("far down")
"""

    def told(self, site: Site) -> dict[str, Any]:
        """How many: five times the cap, or what the workspace may hold."""
        return {"entries": min(5 * _CAPS.entries, site.caps.workspace_inodes // 2), "depth": 4 * _CAPS.depth}

    def judge(self, taken: Taken, site: Site) -> list[Try]:
        """The caps were kept, and that something was left out was said."""
        del site
        deepest = max((path.count("/") for path in taken.files), default=0)
        if len(taken.files) > _CAPS.entries or deepest > _CAPS.depth:
            return [Try(what="entries", fact="more came out, or from deeper down, than the caps allow")]
        said = bool(taken.files) and bool(taken.dropped)
        return [Try(what="entries", signature="WITHIN" if said else "nothing says what was left out")]


class ArchiveNamesProbe(_ArchiveProbe):
    """Names that are no text, that hold a newline or a terminal's commands, or that begin with two dots."""

    name = "archive-names"
    threat = "a file's name is taken for two, for a command, or for a way out of the folder"
    laying = """
    for name in (b"no-\\xff\\xfe-text", b"two\\nlines", b"\\x1b[2Jclear", b"..hidden"):
        with open(name, "wb") as file:
            file.write(b"content")
"""
    laid: ClassVar[frozenset[str]] = frozenset({"two\nlines", "\x1b[2Jclear", "..hidden"})

    def judge(self, taken: Taken, site: Site) -> list[Try]:
        """Names that are text came out as they were, or were left out; nothing else came."""
        outside = sorted(Path(site.places["outside-path"]).iterdir())
        if outside:
            return [Try(what="outside", fact="something was written outside of the exhibit")]
        for path, data in taken.files.items():
            try:
                path.encode()
            except UnicodeEncodeError:
                return [Try(what="no text", fact="a name that is no text came out")]
            if path not in self.laid or data != b"content":
                return [Try(what="names", fact="a name came out that nobody laid")]
        left = len(taken.files) + len(taken.dropped)
        return [Try(what="names", signature="DROPPED" if left == len(self.laid) + 1 else f"{left} of 4 were told of")]
