"""Probes of the file system's walls: what of the host, of the sealed half or of another cell can be read."""

from __future__ import annotations

from typing import Any, ClassVar

from fences.bodies import MOUNTS, WALK
from fences.programs import ProgramProbe
from fences.weakenings import mounted
from fences.witnesses import vouch
from harness.views import Fence, Finding, Site
from harness.walls import GATEWAY_FOLDER, GATEWAY_SOCKET

__all__ = [
    "EngineSocketProbe",
    "HostFileProbe",
    "OtherCellProbe",
    "PathSocketsProbe",
    "SealedHalfProbe",
    "SharedFolderProbe",
    "SymlinkProbe",
]


class _DecoyProbe(ProgramProbe):
    """A probe of a decoy that stands on the host's file system; the host confirms that it is there."""

    shown: ClassVar[str]
    """The name in `Site.places` of the path that the control shows in the workspace."""

    async def witness(self, site: Site) -> str | None:
        """The decoy must answer the host with its canary."""
        assert self.canary is not None  # each of these probes names one
        return await vouch(site, self.places[:1], self.canary)

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The host's path shown in the workspace."""
        return mounted(fence, site.places[self.shown])


class HostFileProbe(_DecoyProbe):
    """A file of the host, by its own path and through every root that /proc offers."""

    name = "host-file"
    threat = "the seat reads the host's files: keys, histories, other people's work"
    places = ("host-file",)
    canary = "host-file"
    shown = "host-file-path"
    body = """
path = args["host-file"].split(" ", 1)[1]
for what, root in (("path", ""), ("/proc/1/root", "/proc/1/root"), ("/proc/self/root", "/proc/self/root")):
    attempt(what, lambda: read(root + path))
"""


class SealedHalfProbe(_DecoyProbe):
    """A decoy task's sealed tests and solution: by their path, and by a search for a name in all that is mounted."""

    name = "sealed-half"
    threat = "the seat reads the tests or the reference that judge it"
    places = ("sealed-file", "sealed-solution")
    canary = "sealed-file"
    shown = "sealed-path"
    body = (
        MOUNTS
        + WALK
        + """
tests = args["sealed-file"].split(" ", 1)[1]
attempt("tests", lambda: read(tests))
attempt("solution", lambda: read(args["sealed-solution"].split(" ", 1)[1]))
def search(name):
    for path, info in entries():
        if os.path.basename(path) == name:
            return read(path)
    return {"signature": "NOTHING"}
attempt("search", lambda: search(os.path.basename(tests)))
"""
    )


class OtherCellProbe(_DecoyProbe):
    """
    The files of a second workspace that is open at the same time. It wrote them itself, to its own folders and to one
    that the host shows to it alone; the control shows that one to both.
    """

    name = "other-cell"
    threat = "two seats see each other's work, or leave each other messages"
    places = ("neighbour-file", "neighbour-name")
    canary = "neighbour-file"
    shown = "neighbour-path"
    body = """
name = args["neighbour-name"]
for folder in ("/workspace", "/tmp", "/dev/shm", "/var/tmp"):
    attempt(folder, lambda: read(folder + "/" + name))
attempt("shared folder", lambda: read(args["neighbour-file"].split(" ", 1)[1]))
"""


class SharedFolderProbe(_DecoyProbe):
    """
    The folders that every program may write to. The control shows a folder of the host in the place of `/tmp`, as a
    sandbox without one of its own does, in which another cell has left its file.
    """

    name = "shared-folder"
    threat = "a temporary folder is the host's or another cell's, and carries messages in and out"
    holds = frozenset({Finding.ABSENT})
    places = ("neighbour-file", "neighbour-name")
    canary = "neighbour-file"
    body = """
for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/dev/mqueue"):
    attempt(folder, lambda: read(folder + "/" + args["neighbour-name"]))
"""

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """A folder of the host as the temporary one."""
        return mounted(fence, site.places["neighbour-path"], target="/tmp", read_only=False)  # noqa: S108 - in a workspace


class EngineSocketProbe(_DecoyProbe):
    """
    The container engine's socket, and a decoy of one that answers with a canary. A socket that is in the workspace and
    turns the seat down is not held: one group or one user away, it is the host's root.
    """

    name = "engine-socket"
    threat = "the seat asks the container engine for a container with the host's disk in it"
    holds = frozenset({Finding.ABSENT})
    places = ("engine-socket",)
    canary = "engine-socket"
    shown = "engine-socket-path"
    body = """
def ping(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(path)
        client.sendall(b"GET /_ping HTTP/1.0\\r\\n\\r\\n")
        answer = client.recv(4096)
    if answer.startswith(b"HTTP/") and b"Api-Version" in answer:
        return {"fact": "an engine answered"}
    return answer or {"signature": "EMPTY"}
attempt("decoy", lambda: ping(args["engine-socket"].split(" ", 1)[1]))
for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock"):
    attempt(path, lambda: ping(path))
"""


class PathSocketsProbe(_DecoyProbe):
    """
    Unix sockets at any path that a mount has brought in, each of which is called. Only the gateway's own is let be,
    where the policy has one; one that is there and turns the seat down is not held.
    """

    name = "path-sockets"
    threat = "a service of the host is mounted where no other probe looks for it"
    holds = frozenset({Finding.ABSENT})
    canary = "engine-socket"
    places = ("engine-socket",)
    shown = "engine-socket-path"
    body = (
        MOUNTS
        + WALK
        + """
own = {(os.stat(folder).st_dev, folder) for folder in OWN_FOLDERS if os.path.isdir(folder)}
def call(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(path)
    return {"fact": "a socket took the call"}
def scan():
    found = 0
    for path, info in entries():
        seats_own = any(inside(path, folder) and info.st_dev == device for device, folder in own)
        if stat.S_ISSOCK(info.st_mode) and not seats_own and path != args["gateway"]:
            found += 1
            attempt("socket " + path, lambda: call(path))
            if found == 3:
                break
    return {"fact": "sockets are there"} if found else {"signature": "NOTHING"}
attempt("scan", scan)
"""
    )

    def arguments(self, fence: Fence, site: Site) -> dict[str, Any]:
        """The gateway's own socket, where the policy has one."""
        del site
        own = f"{GATEWAY_FOLDER}/{GATEWAY_SOCKET}"
        return {"gateway": own if fence.walls.network == "gateway" else None}


class SymlinkProbe(_DecoyProbe):
    """Links from the seat's own folder to a file of the host: absolute, relative, through a folder, and magic ones."""

    name = "symlink-out"
    threat = "a link in the workspace leads whoever follows it to the host's files"
    places = ("host-file",)
    canary = "host-file"
    shown = "host-file-path"
    body = """
path = args["host-file"].split(" ", 1)[1]
def through(target, rest=""):
    link = "/workspace/.link-" + os.urandom(8).hex()
    os.symlink(target, link)
    try:
        return read(link + rest)
    finally:
        os.unlink(link)
attempt("absolute", lambda: through(path))
attempt("relative", lambda: through("../" * 20 + path.lstrip("/")))
attempt("folder", lambda: through(os.path.dirname(path), "/" + os.path.basename(path)))
attempt("magic", lambda: through("/proc/self/root", path))
"""
